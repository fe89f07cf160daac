"""How texts are read, and what is decided about them: by a classifier, or by a probe."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from transformers import AutoModelForSequenceClassification
from transformers.utils import cached_file

from sentigeo.analysis.probes import fit_probe
from sentigeo.cache import Store
from sentigeo.encoder.bert_layers import hidden_states, pool
from sentigeo.encoder.encoder import Encoder, find_encoder, load_with_head
from sentigeo.encoder.extract import embed_texts
from sentigeo.encoder.tokens import Truncation, encode_texts
from sentigeo.encoder.trunk import make_batch
from sentigeo.encoder.vectors import POOLINGS, Pooling
from sentigeo.errors import UserError
from sentigeo.figures.style import Colouring
from sentigeo.progress import track

SENTENCE_POOLING = "1_Pooling/config.json"  # as sentence-transformers saves it
BATCH = 32
LEARNT = 5_000  # texts that a probe learns from
SMALL = 20  # texts of a group, of which a fifth would be too few
Decide = Callable[[Sequence[str]], np.ndarray]  # texts to (n, classes) probabilities


@dataclass(frozen=True)
class Reading:
    """How texts become vectors: an encoder, its last layer's pooling, and the token budget."""

    encoder: Encoder
    pooling: Pooling
    max_length: int
    truncation: Truncation = "first+last"

    def vectors(self, texts: Sequence[str], store: Store) -> np.ndarray:
        """Return the (n, d) vectors of many texts; what was read is kept in the store."""
        cut: dict[str, Any] = {"max_length": self.max_length, "truncation": self.truncation}
        return embed_texts(texts, self.encoder, pooling=self.pooling, store=store, **cut)

    def vectors_of_few(self, texts: Sequence[str]) -> np.ndarray:
        """Return the same for a few texts at once, without a store and a progress bar."""
        model, top = self.encoder.model, self.encoder.layers

        def read(ids: Tensor, mask: Tensor) -> Tensor:
            *_, (_, states) = hidden_states(model, ids, mask, 0.0, top, False)
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
    """Return the pooling that a person asked for, or for `auto` the one that suits an encoder.

    A sentence encoder names its own, a classifier is read at its first token, others by the mean.
    """
    if wanted in POOLINGS:
        return wanted
    if wanted != "auto":
        raise UserError(f"There is no pooling '{wanted}': give {', '.join(POOLINGS)} or auto.")
    usual: Pooling = "cls" if is_classifier(encoder) else "mean"
    return _saved_pooling(source, encoder.revision) or usual


def _saved_pooling(source: str, revision: str | None) -> Pooling | None:
    """Return the pooling that the folder of a sentence encoder names, if there is one."""
    faults = ("missing_entries", "connection_errors")
    quiet: dict[str, Any] = {f"_raise_exceptions_for_{fault}": False for fault in faults}
    path = cached_file(find_encoder(source)[0], SENTENCE_POOLING, revision=revision, **quiet)
    try:
        facts = dict(json.loads(Path(path).read_text("utf-8"))) if path else {}
    except (ValueError, TypeError):
        raise UserError(f"{SENTENCE_POOLING} of '{source}' is not a JSON object.") from None
    modes: dict[str, Pooling] = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max"}
    named = [own for mode, own in modes.items() if facts.get(f"pooling_mode_{mode}")]
    named += [own for own in POOLINGS if facts.get("pooling_mode") in (own, [own])]
    return named[0] if len(named) == 1 else None


def is_classifier(encoder: Encoder) -> bool:
    """Tell whether a model was saved as a classifier of texts into one of several classes."""
    config = encoder.model.config
    kinds = getattr(config, "architectures", None) or [""]
    one_of_several = getattr(config, "problem_type", None) != "multi_label_classification"
    return one_of_several and "ForSequenceClassification" in kinds[0] and config.num_labels > 1


def decide_by_classifier(
    source: str, revision: str | None, reading: Reading
) -> tuple[Decide, list[str]]:
    """Return what a model's classification head decides, and the names of its classes."""
    model, _ = load_with_head(AutoModelForSequenceClassification, source, revision, seed=0)
    model.eval().to(reading.encoder.model.device)

    def read(ids: Tensor, mask: Tensor) -> Tensor:
        logits: Tensor = model(ids, attention_mask=mask.long()).logits
        return logits.softmax(dim=-1)

    labels: dict[int, str] = model.config.id2label  # type: ignore[assignment,union-attr]
    names = [labels[number] for number in sorted(labels)]
    return lambda texts: reading.in_batches(texts, read), names


def choose_decision(
    source: str, reading: Reading, vectors: np.ndarray, known: Colouring
) -> tuple[Decide, Sequence[str]]:
    """Return what decides, and about which classes: a classifier itself, else a probe of groups."""
    if is_classifier(reading.encoder):
        return decide_by_classifier(source, reading.encoder.revision, reading)
    return decide_by_probe(vectors, known.groups, reading), known.names


def decide_many(decide: Decide, texts: Sequence[str]) -> np.ndarray:
    """Return the (n, classes) probabilities of many texts; short ones are decided together."""
    order = np.argsort([len(text) for text in texts], kind="stable")
    parts = np.array_split(order, max(1, len(order) // (8 * BATCH)))
    found = [decide([texts[row] for row in part]) for part in track(parts, "deciding")]
    return np.concatenate(found)[np.argsort(order)]


def decide_by_probe(vectors: np.ndarray, groups: np.ndarray, reading: Reading) -> Decide:
    """Return what logistic regression on (n, d) vectors of (n,) groups decides.

    It learns from about as many of each group, in random order; a fifth of them chooses its
    strength, or all of them where a group is very small.
    """
    rng = np.random.default_rng(0)
    order, present = rng.permutation(len(groups)), np.unique(groups)
    even = [order[groups[order] == own][: LEARNT // len(present)] for own in present]
    rows = rng.permutation(np.concatenate(even))
    cut = len(rows) // 5
    train, chosen = (rows[cut:], rows[:cut]) if min(map(len, even)) >= SMALL else (rows, rows)
    probe = fit_probe(vectors[train], groups[train], vectors[chosen], groups[chosen])

    def decide(texts: Sequence[str]) -> np.ndarray:
        found = np.zeros((len(texts), int(groups.max()) + 1))
        found[:, probe.classes_] = probe.predict_proba(reading.vectors_of_few(texts))
        return found

    return decide
