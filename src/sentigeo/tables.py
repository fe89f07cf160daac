"""Read a table of texts from a file, with errors that name file, column and row."""

import csv
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from sentigeo.errors import UserError
from sentigeo.json_tables import read_json, read_json_lines


def read_table(path: Path) -> pd.DataFrame:
    """Read a CSV, TSV, JSON, JSONL, Parquet or plain text file.

    CSV and TSV cells stay text, so that "NA" or "123" is not taken for something else. Plain text
    has one text a line. JSON can be a list of objects, a list of texts, an object of either, or
    lists by name; where all this stands in a part of a larger object, the part with most entries is
    read. Objects within rows become columns such as `review.text`.

    Returns:
        One row a text. Texts without a name are in the column `text`, the names of an object's
        entries in `key`; `attrs["part"]` names the part that was read of a larger object.

    Raises:
        UserError: The file is missing, of an unknown kind, malformed, empty or not UTF-8.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        known = ", ".join(FILE_ENDINGS)
        raise UserError(f"{path} has the ending {path.suffix!r}; files can end in {known}.")
    if not path.is_file():
        raise UserError(f"There is no file {path}.")
    if not path.stat().st_size:
        raise UserError(f"{path} is empty.")
    try:
        table = reader(path)
    except UnicodeDecodeError:
        line = _undecodable_line(path.read_bytes())
        raise UserError(f"{path} is not UTF-8 text: see line {line}; save it as UTF-8.") from None
    except RecursionError:
        raise UserError(f"{path} cannot be read: it is nested too deeply.") from None
    except (ValueError, OSError) as error:
        reason = " ".join(str(error).split()).removeprefix("Error tokenizing data. C error: ")
        raise UserError(f"{path} cannot be read: {reason.rstrip('.')}.") from None
    if table.empty:
        raise UserError(f"{path} holds no rows.")
    return table


def text_and_label(
    table: pd.DataFrame, text_column: str, label_column: str, where: str
) -> pd.DataFrame:
    """Return columns `text` (str) and `label` (str) of a table, every row checked.

    Args:
        table: One row a text.
        text_column: Name of the column that holds the text.
        label_column: Name of the column that holds the label.
        where: What to call the table in an error.

    Raises:
        UserError: A column is missing; a text is empty or not text; a label is missing.
    """
    for column in (text_column, label_column):
        if column not in table.columns:
            found = ", ".join(str(name) for name in table.columns)
            raise UserError(f"{where} has no column '{column}'; its columns are {found}.")
    texts, labels = table[text_column], table[label_column]
    blank = [not isinstance(text, str) or not text.strip() for text in texts]
    refuse_rows(blank, f"{where}, column '{text_column}': empty or not text in")
    names = label_names(labels)
    refuse_rows([name == "" for name in names], f"{where}, column '{label_column}': no label in")
    return pd.DataFrame({"text": texts.to_list(), "label": names})


def refuse_rows(bad: Iterable[bool], complaint: str) -> None:
    """Raise an error that names the first bad rows, if there are any."""
    rows = [number for number, is_bad in enumerate(bad, start=1) if is_bad]
    if rows:
        shown = ", ".join(str(row) for row in rows[:5])
        more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
        raise UserError(f"{complaint} row {shown}{more} (counted from 1 without a header).")


def label_names(labels: Iterable[object]) -> list[str]:
    """Name label values: `1`, `1.0` and `"1"` are one label, missing values have no name."""
    return [_label_name(label) for label in labels]


def is_missing(value: Any) -> bool:
    """Tell whether a cell is empty: None, NaN, NA or NaT."""
    return pd.api.types.is_scalar(value) and bool(pd.isna(value))


def _label_name(label: object) -> str:
    if is_missing(label):
        return ""
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    return str(label).strip()


def _undecodable_line(content: bytes) -> int:
    try:
        content.decode("utf-8")
    except UnicodeDecodeError as error:
        return content[: error.start].count(b"\n") + 1
    raise ValueError("the content is UTF-8")


def _read_delimited(path: Path, separator: str, quoted: bool = True) -> pd.DataFrame:
    with path.open(encoding="utf-8-sig") as file:
        names = file.readline()
    if separator not in names and ";" in names:  # as spreadsheets write it in half of Europe
        separator = ";"
    table = pd.read_csv(
        path, sep=separator, dtype=str, keep_default_na=False, encoding="utf-8-sig",
        quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE,
    )  # fmt: skip
    if not isinstance(table.index, pd.RangeIndex):  # pandas takes what is too much as row names
        raise UserError(f"{path} has more fields in its rows than names in its first line.")
    return table


def _read_tabbed(path: Path) -> pd.DataFrame:
    """Read a TSV file; where a quotation mark would swallow the next lines, it is just a mark."""
    table = _read_delimited(path, "\t")
    cells = table.to_numpy().ravel()
    if any(isinstance(cell, str) and "\t" in cell and "\n" in cell for cell in cells):
        return _read_delimited(path, "\t", quoted=False)
    return table


def _read_text(path: Path) -> pd.DataFrame:
    lines = path.read_text("utf-8-sig").split("\n")
    return pd.DataFrame({"text": lines[:-1] if lines[-1] == "" else lines}, dtype=object)


_READERS: dict[str, Callable[[Path], pd.DataFrame]] = {
    ".csv": lambda path: _read_delimited(path, ","),
    ".tsv": _read_tabbed,
    ".json": read_json,
    ".jsonl": read_json_lines,
    ".parquet": pd.read_parquet,
    ".txt": _read_text,
}
FILE_ENDINGS = tuple(_READERS)
