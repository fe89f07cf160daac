"""Cached results: addressed by what they depend on, written atomically, verified on read."""

import hashlib
import json
import shutil
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np
import xxhash

from sentigeo.errors import CacheNotice, UserError
from sentigeo.hashes import hash_json
from sentigeo.paths import write_text

Arrays = Mapping[str, np.ndarray]
Key = Mapping[str, Any]  # everything that a result depends on, as JSON values
Fill = Callable[[Path], None]  # writes the files of a result into an empty folder
ENTRY = "entry.json"


class Store:
    """A folder of cached results.

    An entry is a folder named after the SHA-256 of its key, within one for its kind. It holds the
    result's files and `entry.json` with the key, every file's checksum, and the other entries that
    it rests on: without them it is of no use. Nothing is ever unpickled.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def arrays(self, kind: str, key: Key, compute: Callable[[], Arrays]) -> dict[str, np.ndarray]:
        """Return arrays stored under a key, memory-mapped; compute and store them if need be."""
        folder = self.folder(kind, key, lambda part: save_arrays(part, compute()))
        return {path.stem: load_array(path) for path in sorted(folder.glob("*.npy"))}

    def folder(self, kind: str, key: Key, fill: Fill, rests_on: Sequence[Path] = ()) -> Path:
        """Return the folder stored under a key; have it filled and stored if need be."""
        return self.find(kind, key) or self.put(kind, key, fill, rests_on)

    def find(self, kind: str, key: Key) -> Path | None:
        """Return the folder stored under a key, if there is one; a damaged one is removed."""
        folder = self.place(kind, key)
        if not folder.is_dir():
            return None
        if is_whole(folder):
            return folder
        notice = f"The cached {kind} in {folder.name[:12]} is damaged; it is computed again."
        warnings.warn(notice, CacheNotice, stacklevel=3)
        shutil.rmtree(folder, ignore_errors=True)  # another process may be at it too
        return None

    def put(self, kind: str, key: Key, fill: Fill, rests_on: Sequence[Path] = ()) -> Path:
        """Have a folder filled and store it under a key."""
        folder = self.place(kind, key)
        part = folder.with_name(f".part-{token_hex(8)}-{folder.name[:8]}")
        others = [str(other.relative_to(self.root)) for other in rests_on]
        try:
            _sweep(folder.parent)
            part.mkdir(parents=True)
            fill(part)
            files = {path.name: _checksum(path) for path in sorted(part.iterdir())}
            facts = {"key": key, "rests_on": others, "files": files}
            write_text(part / ENTRY, json.dumps(facts, indent=1))
            part.rename(folder)
        except OSError as error:
            if not (folder.is_dir() and is_whole(folder)):  # another process may have been first
                why = f"Cannot write to the cache folder {folder.parent}: {error}."
                raise UserError(why) from None
        finally:
            shutil.rmtree(part, ignore_errors=True)
        return folder

    def place(self, kind: str, key: Key) -> Path:
        """Return where the entry of a key is, or will be."""
        return self.root / kind / hash_json(key)


def save_arrays(folder: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write arrays as `<name>.npy` files."""
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array, allow_pickle=False)


def load_array(path: Path) -> np.ndarray:
    """Memory-map a `.npy` file; an array that would have to be unpickled is refused."""
    array: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    return array


def package_versions(*packages: str) -> dict[str, str]:
    """Return the installed versions of packages that make a result."""
    return {name: version(name) for name in packages}


def _sweep(folder: Path) -> None:
    """Remove what killed runs left half-written more than a day ago."""
    for part in folder.glob(".part-*"):
        with suppress(FileNotFoundError):  # finished or swept by another process meanwhile
            if time.time() - part.stat().st_mtime > 86_400:
                shutil.rmtree(part, ignore_errors=True)


def is_whole(folder: Path) -> bool:
    """Return whether every byte of an entry is as it was written.

    An entry that cannot be read for another reason, such as its permissions, is left alone.
    """
    try:
        entry = json.loads((folder / ENTRY).read_text("utf-8"))
        whole = all(_checksum(folder / name) == digest for name, digest in entry["files"].items())
        return whole and all(is_whole(folder.parents[1] / name) for name in entry["rests_on"])
    except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
        return False
    except OSError as error:
        raise UserError(f"Cannot read the cache folder {folder}: {error}.") from None


def _checksum(path: Path) -> str:
    """Return a fast checksum, which finds damage; it is no proof of origin."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, xxhash.xxh3_128).hexdigest()
