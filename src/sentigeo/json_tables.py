"""Tables in JSON, whatever their shape: lists, objects, lists side by side, parts of an object."""

import json
from pathlib import Path
from typing import Any

import pandas as pd

from sentigeo.errors import UserError


def read_json(path: Path) -> pd.DataFrame:
    """Read a JSON file of any of these shapes; an error names the line or the entry."""
    try:
        found = _parse(path.read_text("utf-8-sig"))
    except json.JSONDecodeError as error:
        raise UserError(f"{path}, line {error.lineno}: not valid JSON ({error.msg}).") from None
    if isinstance(found, dict) and not _has_entries(found):
        return _read_part(found, path)
    return _rows_of(found, str(path))


def read_json_lines(path: Path) -> pd.DataFrame:
    """Read a file of one JSON value a line, all texts or all objects."""
    rows, numbers = [], []
    for number, line in enumerate(path.read_text("utf-8-sig").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            rows.append(_parse(line))
        except json.JSONDecodeError as error:
            raise UserError(f"{path}, line {number}: not valid JSON ({error.msg}).") from None
        numbers.append(f"line {number}")
    return _rows_of_one_kind(rows, numbers, str(path))


def repair(text: str) -> str:
    """Replace halves of surrogate pairs: JSON can hold them, but no file in UTF-8."""
    return text.encode("utf-8", "replace").decode()


def _parse(text: str) -> Any:
    """Parse JSON; keys are repaired, because they become the names of columns."""
    return json.loads(text, object_pairs_hook=lambda pairs: {repair(k): v for k, v in pairs})


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
    table.attrs |= {"part": name, "others": [own for own in parts if own != name]}
    return table


def _rows_of(found: Any, where: str) -> pd.DataFrame:
    """Make a table of a list, of an object's entries, or of lists side by side."""
    if isinstance(found, list):
        return _rows_of_one_kind(found, [f"entry {n}" for n in range(1, len(found) + 1)], where)
    if not isinstance(found, dict):
        raise UserError(f"{where} holds {_kind(found)} where texts are expected, in a list.")
    if found and all(isinstance(value, list) for value in found.values()):
        return pd.DataFrame(found, dtype=object)
    names = [f"entry '{name}'" for name in found]
    table = _rows_of_one_kind(list(found.values()), names, where)
    if "key" not in table:
        table.insert(0, "key", list(found))
    return table


def _rows_of_one_kind(rows: list[Any], names: list[str], where: str) -> pd.DataFrame:
    """Make a table of texts or of objects; a missing text is null, and nothing else may be."""
    first = next((place for place, row in enumerate(rows) if row is not None), None)
    kind = "a text" if first is None else _kind(rows[first])
    if first is not None and kind not in ("a text", "an object"):
        raise UserError(f"{where}, {names[first]}: {kind} where a text or an object is expected.")
    for row, name in zip(rows, names, strict=True):
        if _kind(row) != kind and (row is not None or kind == "an object"):
            raise UserError(f"{where}, {name}: {_kind(row)}, while others are {kind}.")
    if kind == "a text":
        return pd.DataFrame({"text": rows}, dtype=object)
    if any(isinstance(value, dict) for row in rows for value in row.values()):
        return pd.json_normalize(rows, max_level=1).astype(object)
    return pd.DataFrame(rows, dtype=object)


def _kind(value: Any) -> str:
    """Say what a JSON value is."""
    kinds = {str: "a text", dict: "an object", list: "a list", bool: "true or false"}
    return "null" if value is None else kinds.get(type(value), "a number")
