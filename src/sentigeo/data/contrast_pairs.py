"""Contrast pairs: natural ones (reviews and their edits), two easier tiers, a user's own."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from sentigeo.data.reviews import identify_source, read_file_or_hub, read_packaged
from sentigeo.data.tables import (
    label_names,
    read_table,
    refuse_rows,
    require_columns,
    text_and_label,
)
from sentigeo.errors import UserError
from sentigeo.hashes import hash_json
from sentigeo.paths import DATA
from sentigeo.profile import Profile
from sentigeo.text import clean_text

Edit = tuple[int, int, str]  # where it begins in a review as packaged, how much goes, what comes


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
    reviews, rows = read_packaged("imdb")["text"], []
    for line in (DATA / "natural_pairs.jsonl").read_text("utf-8").splitlines():
        pair = json.loads(line)
        found = reviews.iloc[pair["row"]]
        edited = clean_text(apply_edits(found, pair["edits"]))
        if hashlib.sha256(edited.encode()).hexdigest() != pair["sha256"]:
            raise UserError(f"The edits of pair {pair['pair']} do not fit the packaged reviews.")
        facts = {"pair": pair["pair"], "part": pair["part"], "row": pair["row"]}
        facts["phenomenon"] = pair["kind"]
        rows.append(
            facts | {"label": 1 - pair["label"], "text": clean_text(found), "edited": False}
        )
        rows.append(facts | {"label": pair["label"], "text": edited, "edited": True})
    columns = ["pair", "part", "label", "phenomenon", "text", "row", "edited"]
    return pd.DataFrame(rows)[columns]


def load_easier_pairs() -> pd.DataFrame:
    """Return minimal pairs with plain wording: `pair`, `tier`, `label`, `phenomenon`, `text`."""
    return read_table(DATA / "easier_pairs.tsv").astype({"label": int})


def load_own_pairs(profile: Profile, classes: Sequence[str]) -> pd.DataFrame:
    """Return a user's own pairs, clean: `pair`, `label` (class number), `phenomenon`, `text`.

    Both rows of a pair stand together. Without `contrast_pairs` in the profile there are no rows.
    """
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
    known = identify_source(profile.contrast_pairs, None)
    return known or hash_json(_read_own_pairs(profile.contrast_pairs).to_dict("list"))


def _read_own_pairs(name: str) -> pd.DataFrame:
    """Read `pair`, `label`, `text` (clean) and `phenomenon`, all str, and check every row."""
    table = read_file_or_hub(name, revision=None)
    require_columns(table, ["pair", "label", "text"], name)
    pairs = text_and_label(table, "text", "label", name)
    pairs["text"] = [clean_text(text) for text in pairs["text"]]
    refuse_rows(pairs["text"] == "", f"{name}, column 'text': only mark-up in")
    pairs["pair"] = label_names(table["pair"])
    refuse_rows(pairs["pair"] == "", f"{name}, column 'pair': no name in")
    kinds = label_names(table["phenomenon"]) if "phenomenon" in table else [""] * len(table)
    return pairs.assign(phenomenon=[kind or "own" for kind in kinds])


def _number_labels(labels: pd.Series, profile: Profile, classes: Sequence[str]) -> pd.Series:
    """Turn labels into class numbers: all are the reviews' labels, or class names, or numbers."""
    ways = [[*profile.labels], [*classes], [str(number) for number in range(len(classes))]]
    names = max(ways, key=lambda names: labels.isin(names).sum())
    unknown = np.flatnonzero(~labels.isin(names))
    if len(unknown):
        known = " or ".join(dict.fromkeys(", ".join(names) for names in ways if names))
        raise UserError(
            f"{profile.contrast_pairs}, column 'label', row {unknown[0] + 1}: unknown label "
            f"{labels[unknown[0]]!r}; use {known}, the same throughout."
        )
    return labels.map({name: number for number, name in enumerate(names)}).astype(int)
