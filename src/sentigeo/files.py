"""Files: written whole or not at all, and what identifies what they hold."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np


def hash_json(value: Any) -> str:
    """Return the SHA-256 of a JSON value; the order of keys does not matter."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def hash_array(array: np.ndarray) -> str:
    """Return the SHA-256 of an array's shape, type and values."""
    form = json.dumps([list(array.shape), str(array.dtype)])
    return hashlib.sha256(form.encode() + np.ascontiguousarray(array).tobytes()).hexdigest()


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_files(folder: Path, pattern: str) -> dict[str, str]:
    """Return the SHA-256 of the files of a folder that match a pattern."""
    files = sorted(path for path in folder.glob(pattern) if path.is_file())
    return {str(path.relative_to(folder)): hash_file(path) for path in files}


def write_text(path: Path, text: str) -> None:
    """Write a text file so that a reader sees the old file or the new one, never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".part-{token_hex(8)}-{path.name}")
    part.write_text(text, "utf-8")
    part.replace(path)


def save_arrays(folder: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays as `<name>.npy` files."""
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)


def load_array(path: Path) -> np.ndarray:
    """Memory-map a `.npy` file; an array that would have to be unpickled is refused."""
    array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    return array
