"""The handcrafted texts: contrastive samples, word senses, and pairs, also a user's own."""

import hashlib
import json
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any

import numpy as np
import pandas as pd
import yaml

from sentigeo.data import tables
from sentigeo.errors import UserError
from sentigeo.hashes import hash_json
from sentigeo.paths import DATA
from sentigeo.profile import ENGLISH, Profile
from sentigeo.text import clean_text

FILES = "*.[cjt]s*"  # of the data folder: .csv, .jsonl and .tsv
HANDCRAFTED_CLASSES = ["negative", "positive"]  # the only classes the handcrafted texts speak of
Edit = tuple[int, int, str]  # where it begins in a review as packaged, how much goes, what comes


def why_unfit(classes: list[str], language: str) -> str:
    """Say why the handcrafted reviews are of no use for some classes in a language, if so."""
    if language != ENGLISH:
        return f"they are English, and the language of the reviews is '{language}'"
    if classes != HANDCRAFTED_CLASSES:
        return f"they are {' or '.join(HANDCRAFTED_CLASSES)}; the classes are {', '.join(classes)}"
    return ""


def load_contrastive() -> pd.DataFrame:
    """Return contrastive training samples: `id`, `text`, `label`, `phenomenon`, `core` (of 8)."""
    samples = tables.read_table(DATA / "contrastive_train.csv").astype({"label": int})
    samples["core"] = samples["core"] == "1"
    return samples


def take_dose(samples: pd.DataFrame, dose: int) -> pd.DataFrame:
    """Return the first `dose` samples, half of them positive: 8 are part of 32, these of 128."""
    if dose > len(samples) or dose % 2:
        raise UserError(
            f"A dose of {dose} contrastive samples is not possible: it must be an even number up "
            f"to {len(samples)}."
        )
    return samples.head(dose)


def draw_dose(labels: np.ndarray, dose: int, seed: int) -> np.ndarray:
    """Draw the places of `dose` out of (n,) samples, half positive; those of a seed are nested."""
    rng = np.random.default_rng(seed)
    sides = [rng.permutation(np.flatnonzero(labels == label))[: dose // 2] for label in (0, 1)]
    return np.stack(sides, axis=1).ravel()


def load_source_sentence() -> str:
    """Return the one text that the source study prints; it is negative."""
    return str(yaml.safe_load((DATA / "sources.yaml").read_text("utf-8"))["sentence"])


def load_challenge() -> pd.DataFrame:
    """Return minimal pairs, two rows each: columns `id`, `pair`, `text`, `label`, `phenomenon`."""
    pairs = tables.read_table(DATA / "challenge_pairs.csv").astype({"label": int})
    pairs.insert(0, "id", pairs["pair"] + pairs["label"].map({0: "-", 1: "+"}))
    return pairs


def load_senses() -> pd.DataFrame:
    """Return sentences with an ambiguous word in one of its senses: `word`, `sense`, `text`."""
    return tables.read_table(DATA / "word_senses.csv")


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """Return a text with some places replaced, all counted in the text as it was."""
    for begin, length, words in reversed(edits):
        text = text[:begin] + words + text[begin + length :]
    return text


def load_natural_pairs() -> pd.DataFrame:
    """Rebuild the natural pairs from the packaged reviews; two rows each, the review first.

    Columns are `pair`, `part` (`train` for doses, `test`), `label`, `phenomenon`, `text`, `row` (of
    the review in the packaged file) and `edited`.
    """
    reviews, rows = tables.read_packaged("imdb")["text"], []
    for line in (DATA / "natural_pairs.jsonl").read_text("utf-8").splitlines():
        pair = json.loads(line)
        found = reviews.iloc[pair["row"]]
        edited = clean_text(apply_edits(found, pair["edits"]))
        if hashlib.sha256(edited.encode()).hexdigest() != pair["sha256"]:
            raise UserError(f"The edits of pair {pair['pair']} do not fit the packaged reviews.")
        sides = (1 - pair["label"], clean_text(found), False), (pair["label"], edited, True)
        for label, text, new in sides:
            rows.append((pair["pair"], pair["part"], label, pair["kind"], text, pair["row"], new))
    columns = ["pair", "part", "label", "phenomenon", "text", "row", "edited"]
    return pd.DataFrame(rows, columns=columns)


def load_easier_pairs() -> pd.DataFrame:
    """Return minimal pairs with plain wording: `pair`, `tier`, `label`, `phenomenon`, `text`."""
    return tables.read_table(DATA / "easier_pairs.tsv").astype({"label": int})


def load_own_pairs(profile: Profile, classes: Sequence[str]) -> pd.DataFrame:
    """Return a user's own pairs, if there are any, clean, the two rows of a pair together."""
    columns = ["pair", "label", "phenomenon", "text"]
    if profile.contrast_pairs is None:
        return pd.DataFrame(columns=columns).astype({"label": int})
    pairs, where = _read_own_pairs(profile.contrast_pairs), profile.contrast_pairs
    pairs["label"] = _number_labels(pairs["label"], profile, classes)
    counts = pairs.groupby("pair", sort=False)["label"].agg(["size", "nunique"])
    for pair, texts, found in counts[(counts != 2).any(axis=1)].itertuples():
        raise UserError(
            f"{where}, pair '{pair}': {texts} text(s) of {found} class(es); a pair is two texts, "
            "one of each of two classes."
        )
    order = pd.factorize(pairs["pair"])[0].argsort(kind="stable")
    return pairs[columns].iloc[order].reset_index(drop=True)


def identify_own_pairs(profile: Profile) -> Any:
    """Return what identifies a user's own pairs, if there are any: for a hub's newest, its rows."""
    if profile.contrast_pairs is None:
        return None
    known = tables.identify_source(profile.contrast_pairs, None)
    return known or hash_json(_read_own_pairs(profile.contrast_pairs).to_dict("list"))


def _read_own_pairs(name: str) -> pd.DataFrame:
    """Read `pair`, `label`, `text` (clean) and `phenomenon`, all str, and check every row."""
    table = tables.read_file_or_hub(name, revision=None)
    tables.require_columns(table, ["pair", "label", "text"], name)
    pairs = tables.text_and_label(table, "text", "label", name)
    pairs["text"] = [clean_text(text) for text in pairs["text"]]
    tables.refuse_rows(pairs["text"] == "", f"{name}, column 'text': only mark-up in")
    pairs["pair"] = tables.label_names(table["pair"])
    tables.refuse_rows(pairs["pair"] == "", f"{name}, column 'pair': no name in")
    kinds = tables.label_names(table["phenomenon"]) if "phenomenon" in table else [""] * len(table)
    return pairs.assign(phenomenon=[kind or "own" for kind in kinds])


def _number_labels(labels: pd.Series, profile: Profile, classes: Sequence[str]) -> pd.Series:
    """Turn labels into class numbers: all are the reviews' labels, or class names, or numbers."""
    ways = [[*profile.labels], [*classes], [str(number) for number in range(len(classes))]]
    names = max(ways, key=lambda names: labels.isin(names).sum())
    known = " or ".join(dict.fromkeys(", ".join(names) for names in ways if names))
    where = f"{profile.contrast_pairs}, column 'label'"
    return tables.number_labels(labels, names, where, f"use {known}, the same throughout.")


def show_pairs(challenge: pd.DataFrame) -> pd.DataFrame:
    """Write each pair as one `text`, its differences as `{negative | positive}`; one row each."""
    rows = []
    for pair, sides in challenge.sort_values("label", kind="stable").groupby("pair", sort=False):
        negative, positive = (text.split() for text in sides["text"])
        rows.append((pair, sides["phenomenon"].iloc[0], _merge(negative, positive)))
    return pd.DataFrame(rows, columns=["pair", "phenomenon", "text"])


def _merge(negative: list[str], positive: list[str]) -> str:
    parts = []
    matcher = SequenceMatcher(None, negative, positive, autojunk=False)
    for kind, i, j, k, m in matcher.get_opcodes():
        left, right = " ".join(negative[i:j]), " ".join(positive[k:m])
        parts.append(left if kind == "equal" else f"{{{left or '-'} | {right or '-'}}}")
    return " ".join(parts)
