"""Your own texts and their labels, as a file holds them, and how an encoder reads them."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from transformers.utils import cached_file

from sentigeo.cache import Store
from sentigeo.data.tables import is_missing, label_names, read_table, refuse_rows
from sentigeo.encoder.bert_layers import hidden_states, make_batch, pool
from sentigeo.encoder.encoder import Encoder, find_encoder
from sentigeo.encoder.extract import embed_texts
from sentigeo.encoder.tokens import Truncation, encode_texts
from sentigeo.encoder.vectors import POOLINGS, Pooling
from sentigeo.errors import UserError
from sentigeo.paths import locate
from sentigeo.text import clean_text, repair

LEAST = 5  # different texts that can be mapped
LONGEST = 1_000_000  # characters: beyond this a file was probably not cut into texts
MOST_LABELS = 20
MOST_NAMED = 10  # fields that could hold labels
BATCH = 32  # texts of a batch when only a few are read
SENTENCE_POOLING = "1_Pooling/config.json"  # as sentence-transformers saves it


@dataclass(frozen=True)
class OwnTexts:
    """n texts of a file."""

    name: str  # of the file
    rows: np.ndarray  # (n,) in which they stand, counted from 1
    texts: list[str]  # as they are
    clean: list[str]  # without mark-up, as the encoder reads them
    labels: np.ndarray | None  # (n,) class numbers, if there are any
    classes: list[str]  # their names
    notes: list[str]  # what was decided while reading, one sentence each


def read_own_texts(source: str, text_field: str = "", label_field: str = "") -> OwnTexts:
    """Read texts, and labels if their field is named, from a file of any known kind."""
    path = locate(source) or Path(source)
    if path.is_dir():
        raise UserError(f"{path} is a folder; give a file of texts.")
    table = read_table(path)
    table.columns = [repair(str(name)) for name in table.columns]
    fields = f"its fields are {', '.join(table.columns)}."
    for field in filter(None, (text_field, label_field)):
        if field not in table:
            raise UserError(f"{path} has no field '{field}'; {fields}")
    if label_field and label_field == text_field:
        raise UserError(f"{path}: '{label_field}' cannot be both the texts and their labels.")
    field = text_field or _pick_field(table.drop(columns=[label_field] if label_field else []))
    if not field:
        raise UserError(f"{path} has no field of texts; {fields}")
    where = f"{path}, '{field}'"
    texts = _check_texts(table[field], where)
    clean = [clean_text(text) for text in texts]
    kept = np.flatnonzero([text != "" for text in clean])
    different = len({clean[row] for row in kept})
    if not different:
        raise UserError(f"{where}: all texts are empty.")
    if different == 1 < len(kept):
        raise UserError(f"{where}: all {len(kept):,} texts are the same.")
    if different < LEAST:
        raise UserError(f"{where}: at least {LEAST} different texts are needed, not {different}.")
    labels, classes = None, list[str]()
    if label_field:
        labels, classes = _number_labels(table[label_field], kept, f"{path}, '{label_field}'")
    notes = _describe(table, field, label_field, kept, different)
    texts, clean = ([each[row] for row in kept] for each in (texts, clean))
    return OwnTexts(path.name, kept + 1, texts, clean, labels, classes, notes)


def _pick_field(table: pd.DataFrame) -> str:
    """Return the field `text`, or the one with the longest texts, or nothing."""
    if "text" in table:
        return "text"
    filled = {str(name): values.dropna() for name, values in table.items()}
    texts = [name for name, values in filled.items() if {*values.map(type)} == {str}]
    return max(texts, key=lambda name: filled[name].str.len().sum(), default="")


def _check_texts(values: pd.Series, where: str) -> list[str]:
    """Return a text for every row, empty where there is none; refuse other values."""
    texts = ["" if is_missing(value) else value for value in values]
    refuse_rows((not isinstance(text, str) for text in texts), f"{where}: not a text in")
    too_long = f"{where}: more than {LONGEST:,} characters, so cut it into texts, in"
    refuse_rows((len(text) > LONGEST for text in texts), too_long)
    return [repair(text) for text in texts]


def _number_labels(values: pd.Series, kept: np.ndarray, where: str) -> tuple[np.ndarray, list[str]]:
    names = np.array([repair(name) for name in label_names(values)], dtype=object)
    refuse_rows(np.isin(np.arange(len(names)), kept) & (names == ""), f"{where}: no label in")
    classes, labels = np.unique(names[kept], return_inverse=True)
    if not 2 <= len(classes) <= MOST_LABELS:
        raise UserError(f"{where}: {len(classes)} labels; from 2 to {MOST_LABELS} can be compared.")
    return labels, classes.tolist()


def _describe(
    table: pd.DataFrame, field: str, label_field: str, kept: np.ndarray, different: int
) -> list[str]:
    part = f" of the part '{table.attrs['part']}'" if "part" in table.attrs else ""
    notes = [f"Texts are taken from the field '{field}'{part}."]
    if table.attrs.get("others"):
        notes.append(f"Parts that are not read: {', '.join(table.attrs['others'])}.")
    others = [name for name in table.columns if name != field and _is_label(table[name])]
    if others and not label_field:
        notes.append(f"Labels could be in {', '.join(others[:MOST_NAMED])}; none are used.")
    empty = np.setdiff1d(np.arange(len(table)), kept) + 1
    if len(empty):
        shown = ", ".join(map(str, empty[:5])) + (" ..." if len(empty) > 5 else "")
        left_out = f"{len(empty):,} of {len(table):,} ({shown})"
        notes.append(f"Rows without a text are left out: {left_out}.")
    if different < len(kept):
        notes.append(f"Repeated texts are kept: {len(kept) - different:,}.")
    return notes


def _is_label(values: pd.Series) -> bool:
    """Return whether the values of a field are few and repeated, so that they may be classes."""
    try:
        return 2 <= values.nunique() <= min(MOST_LABELS, len(values) - 1)
    except TypeError:  # lists or objects
        return False


@dataclass(frozen=True)
class Reading:
    """How texts become vectors: an encoder, its last layer's pooling, and the token budget."""

    encoder: Encoder
    pooling: Pooling
    max_length: int
    truncation: Truncation = "first+last"

    def vectors(self, texts: Sequence[str], store: Store) -> np.ndarray:
        """Return the (n, d) vectors of many texts, and keep them in the store."""
        options: dict[str, Any] = {"max_length": self.max_length, "truncation": self.truncation}
        return embed_texts(texts, self.encoder, pooling=self.pooling, store=store, **options)

    def vectors_of_few(self, texts: Sequence[str]) -> np.ndarray:
        """Return the (n, d) vectors of a few texts, without a store or a progress bar."""
        model, top = self.encoder.model, self.encoder.layers

        def read(ids: Tensor, mask: Tensor) -> Tensor:
            *_, (_, states) = hidden_states(model, ids, mask, 0, top, False)
            return pool(states, mask, self.pooling)

        return self.in_batches(texts, read)

    @torch.inference_mode()
    def in_batches(self, texts: Sequence[str], read: Callable[..., Tensor]) -> np.ndarray:
        """Return what a function of (b, w) token ids and their mask gives, one row per text."""
        tokens = encode_texts(texts, self.encoder.tokenizer, self.max_length, self.truncation)
        found = []
        for rows in np.split(np.arange(len(texts)), range(BATCH, len(texts), BATCH)):
            batch = (part.to(self.encoder.model.device) for part in make_batch(tokens, rows))
            found.append(read(*batch).cpu())
        return np.asarray(torch.cat(found).numpy())


def pick_pooling(encoder: Encoder, source: str, wanted: str = "auto") -> Pooling:
    """Return the pooling asked for; `auto` is a sentence encoder's, a classifier's cls, or mean."""
    if wanted in POOLINGS:
        return wanted
    if wanted != "auto":
        raise UserError(f"There is no pooling '{wanted}': give {', '.join(POOLINGS)} or auto.")
    usual: Pooling = "cls" if is_classifier(encoder) else "mean"
    return _saved_pooling(source, encoder.revision) or usual


def _saved_pooling(source: str, revision: str | None) -> Pooling | None:
    faults = ("missing_entries", "connection_errors")
    quiet: dict[str, Any] = {f"_raise_exceptions_for_{fault}": False for fault in faults}
    path = cached_file(find_encoder(source)[0], SENTENCE_POOLING, revision=revision, **quiet)
    try:
        facts = dict(json.loads(Path(path).read_text("utf-8"))) if path else {}
    except (ValueError, TypeError):
        raise UserError(f"{SENTENCE_POOLING} of '{source}' is not a JSON object.") from None
    modes: dict[str, Pooling] = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max"}
    named = [modes[mode] for mode in modes if facts.get(f"pooling_mode_{mode}")]
    named += [name for name in POOLINGS if facts.get("pooling_mode") in (name, [name])]
    return named[0] if len(named) == 1 else None


def is_classifier(encoder: Encoder) -> bool:
    """Return whether a model was saved as a classifier of texts into one of several classes."""
    config = encoder.model.config
    kinds = getattr(config, "architectures", None) or [""]
    one_of_several = getattr(config, "problem_type", None) != "multi_label_classification"
    return one_of_several and "ForSequenceClassification" in kinds[0] and config.num_labels > 1
