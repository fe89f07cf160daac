"""Cached arrays: addressed by what they depend on, written atomically, verified on read."""

import errno
import hashlib
import json
import os
import shutil
import time
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from sentigeo.errors import CacheNotice, UserError

Arrays = dict[str, np.ndarray]


class Store:
    """A folder of cached arrays.

    An entry is a folder named after the SHA-256 of its key. It holds one `.npy` file an array,
    which large arrays are memory-mapped from, and `entry.json` with the key and every file's
    SHA-256. Nothing is ever unpickled.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def arrays(
        self, kind: str, key: Mapping[str, Any], compute: Callable[[], Mapping[str, np.ndarray]]
    ) -> Arrays:
        """Return the arrays stored under a key; compute and store them if need be.

        Args:
            kind: What the arrays are, in a word; the sub-folder they live in.
            key: Everything the arrays depend on, as JSON values.
            compute: Makes the arrays.

        Returns:
            Read-only arrays by name, memory-mapped.
        """
        folder = self.root / kind / hash_json(key)
        if folder.is_dir():
            found = _read_entry(folder)
            if found is not None:
                return found
            warnings.warn(
                f"The cached {kind} in {folder.name[:12]} is damaged; it is computed again.",
                CacheNotice,
                stacklevel=2,
            )
            shutil.rmtree(folder)
        _write_entry(folder, key, compute())
        stored = _read_entry(folder)
        if stored is None:
            raise UserError(f"The cache folder {self.root} does not keep what is written to it.")
        return stored


def hash_json(value: Any) -> str:
    """Return the SHA-256 of a JSON value; the order of keys does not matter."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def code_version(*modules: ModuleType) -> str:
    """Return one SHA-256 over the source files of the modules that make a result."""
    return hash_json({str(m.__name__): hash_file(Path(str(m.__file__))) for m in modules})


def write_text(path: Path, text: str) -> None:
    """Write a text file so that a reader sees the old file or the new one, never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".part-{os.getpid()}-{path.name}")
    part.write_text(text, "utf-8")
    part.replace(path)


def _write_entry(folder: Path, key: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    part = folder.with_name(f".part-{os.getpid()}-{folder.name}")
    try:
        _sweep(folder.parent)
        part.mkdir(parents=True)
        for name, array in arrays.items():
            np.save(part / f"{name}.npy", array, allow_pickle=False)
        files = {path.name: hash_file(path) for path in sorted(part.glob("*.npy"))}
        write_text(part / "entry.json", json.dumps({"key": key, "files": files}, indent=1))
        part.rename(folder)
    except OSError as error:
        # Another process may have finished the same entry first: then its copy is as good.
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise UserError(f"Cannot write to the cache folder {folder.parent}: {error}.") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _sweep(folder: Path) -> None:
    """Remove what killed runs left half-written more than a day ago."""
    for part in folder.glob(".part-*"):
        if time.time() - part.stat().st_mtime > 86_400:
            shutil.rmtree(part, ignore_errors=True)


def _read_entry(folder: Path) -> Arrays | None:
    """Load an entry's arrays, or return None when any byte of it is not as it was written.

    An entry that cannot be read for another reason, such as its permissions, is left alone.
    """
    try:
        files = json.loads((folder / "entry.json").read_text("utf-8"))["files"]
        if any(hash_file(folder / name) != digest for name, digest in files.items()):
            return None
        return {
            Path(name).stem: np.load(folder / name, mmap_mode="r", allow_pickle=False)
            for name in files
        }
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
    except OSError as error:
        raise UserError(f"Cannot read the cache folder {folder}: {error}.") from None
