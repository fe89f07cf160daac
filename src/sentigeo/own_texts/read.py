"""A person's own texts: which field they are in, which rows are left out, what their labels are."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from sentigeo.data.tables import is_missing, label_names, read_table, refuse_rows
from sentigeo.errors import UserError
from sentigeo.paths import locate
from sentigeo.text import clean_text, repair

LEAST = 5  # different texts that can be mapped
LONGEST = 1_000_000  # characters: beyond this a file was probably not cut into texts
MOST_LABELS = 20
MOST_NAMED = 10  # fields that could hold labels
TEXT_FIELD = "text"  # taken where there is one


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
    """Read a person's texts and labels, if there are any, from a file that `read_table` knows.

    The file is looked for from here and from the repository; without a field, texts are taken from
    `text`, or from the one with the longest texts.
    """
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
    texts, clean = ([own[row] for row in kept] for own in (texts, clean))
    return OwnTexts(path.name, kept + 1, texts, clean, labels, classes, notes)


def _pick_field(table: pd.DataFrame) -> str:
    """Return the field `text`, or the one whose texts are longest on average, or nothing."""
    if TEXT_FIELD in table:
        return TEXT_FIELD
    lengths = {}
    for name, values in table.items():
        found = values.dropna()
        if len(found) and all(isinstance(value, str) for value in found):
            lengths[str(name)] = sum(map(len, found))
    return max(lengths, key=lengths.__getitem__, default="")


def _check_texts(values: pd.Series, where: str) -> list[str]:
    """Return a text for every row, empty where there is none; refuse what is something else."""
    texts = ["" if is_missing(value) else value for value in values]
    refuse_rows((not isinstance(text, str) for text in texts), f"{where}: not a text in")
    too_long = f"{where}: more than {LONGEST:,} characters, so cut it into texts, in"
    refuse_rows((len(text) > LONGEST for text in texts), too_long)
    return [repair(text) for text in texts]


def _number_labels(values: pd.Series, kept: np.ndarray, where: str) -> tuple[np.ndarray, list[str]]:
    """Return the class numbers of the rows that are kept, and the names of the classes."""
    names = np.array([repair(name) for name in label_names(values)], dtype=object)
    refuse_rows(np.isin(np.arange(len(names)), kept) & (names == ""), f"{where}: no label in")
    names = names[kept]
    classes = sorted(set(names))
    if not 2 <= len(classes) <= MOST_LABELS:
        raise UserError(f"{where}: {len(classes)} labels; from 2 to {MOST_LABELS} can be compared.")
    return np.array([classes.index(name) for name in names]), classes


def _describe(
    table: pd.DataFrame, field: str, label_field: str, kept: np.ndarray, different: int
) -> list[str]:
    """Say which field was read, what was left out, and what else there is."""
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
    """Tell whether a field has so few different values, some repeated, that these are classes."""
    try:
        return 2 <= values.nunique() <= min(MOST_LABELS, len(values) - 1)
    except TypeError:  # lists or objects
        return False
