"""What extraction leaves on disk, read without torch: vectors of texts, and the frozen trunk."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from sentigeo.cache import is_whole, load_array
from sentigeo.errors import UserError
from sentigeo.hashes import hash_array

Pooling = Literal["cls", "mean", "max"]
POOLINGS: tuple[Pooling, ...] = ("cls", "mean", "max")
Kind = tuple[int, Pooling]  # a layer, and how its token vectors become one
Part = tuple[np.ndarray, np.ndarray]  # (b,) rows, and (t, d) hidden states of their tokens


@dataclass(frozen=True)
class Vectors:
    """The vectors of n texts, of some layers and poolings."""

    texts: int  # n
    layers: int  # of the encoder; layer 0 is its embeddings
    kinds: tuple[Kind, ...]  # k layers with their pooling, in the order of the shards' first axis
    shards: tuple[Path, ...]  # folders with `rows.npy` (b,) and `vectors.npy` (k, b, d), float32
    below: "Vectors | None" = None  # has the layers that fine-tuning left alone

    @property
    def readable(self) -> list[Kind]:
        """Every layer and pooling that `matrix` returns, in order."""
        lower = [
            kind for kind in (self.below.kinds if self.below else ()) if kind[0] <= self.layers
        ]
        return sorted({*lower, *self.kinds}, key=lambda kind: (kind[0], POOLINGS.index(kind[1])))

    def matrix(self, layer: int | Sequence[int] = -1, pooling: Pooling = "cls") -> np.ndarray:
        """Return the (n, d) vectors of a layer, -1 the last, or the mean of several layers."""
        if not isinstance(layer, int | np.integer):
            found = [self.matrix(one, pooling) for one in layer]
            return np.asarray(np.mean(found, axis=0, dtype=np.float32))
        number = resolve_layer(int(layer), self.layers)
        if (number, pooling) in self.kinds:
            return self._gather(self.kinds.index((number, pooling)))
        if self.below is None:
            raise UserError(f"The {pooling} vectors of layer {number} were not extracted.")
        return self.below.matrix(number, pooling)

    def _gather(self, place: int) -> np.ndarray:
        found = np.empty((self.texts, 0), np.float32)
        for shard in self.shards:  # one at a time: a memory-mapped file stays open
            vectors = load_array(shard / "vectors.npy")[place]
            if not found.size:
                found = np.empty((self.texts, vectors.shape[1]), np.float32)
            found[load_array(shard / "rows.npy")] = vectors
        return found

    def describe(self, root: Path) -> dict[str, Any]:
        """Return all of this as JSON values; shards relative to the cache folder `root`."""
        shards = [str(shard.relative_to(root)) for shard in self.shards]
        below = self.below and self.below.describe(root)
        return vars(self) | {"shards": shards, "below": below}


def open_vectors(facts: dict[str, Any], root: Path) -> Vectors:
    """Return what `describe` described, after a check that every shard is there and whole."""
    shards = tuple(root / name for name in facts["shards"])
    if not all(shard.is_dir() and is_whole(shard) for shard in shards):
        raise UserError("The cached vectors are missing or damaged: run 'make report' again.")
    kinds = tuple((layer, pooling) for layer, pooling in facts["kinds"])
    below = open_vectors(facts["below"], root) if facts["below"] else None
    return Vectors(facts["texts"], facts["layers"], kinds, shards, below)


def resolve_layer(layer: int, layers: int) -> int:
    """Count a layer from the bottom; -1 is the last of an encoder with so many layers."""
    number = layer + layers + 1 if layer < 0 else layer
    if not 0 <= number <= layers:
        raise UserError(
            f"There is no layer {layer}: the encoder has 0 (its embeddings) to {layers}."
        )
    return number


@dataclass(frozen=True)
class Trunk:
    """Hidden states of a lower layer for every token of n texts, shared by every run above it."""

    layer: int  # 0 is the embeddings
    shards: Sequence[np.ndarray]  # (t, d) float32 each, memory-mapped, texts end to end
    shard: np.ndarray  # (n,) shard of each text
    begins: np.ndarray  # (n,) where each text begins in its shard
    lengths: np.ndarray  # (n,) tokens of each text
    sha256: str  # over what the states depend on

    def __getitem__(self, row: int) -> np.ndarray:
        begin, shard = self.begins[row], self.shards[self.shard[row]]
        return np.asarray(shard[begin : begin + self.lengths[row]])

    @classmethod
    def join(cls, layer: int, parts: Sequence[Part], lengths: np.ndarray, sha256: str) -> Self:
        """Make a trunk of shards that hold texts in the order of their rows."""
        shard, begins = np.zeros(len(lengths), np.int64), np.zeros(len(lengths), np.int64)
        for number, (rows, _) in enumerate(parts):
            shard[rows] = number
            begins[rows] = np.cumsum(lengths[rows]) - lengths[rows]
        return cls(layer, [hidden for _, hidden in parts], shard, begins, lengths, sha256)


def vectors_as_trunk(layer: int, vectors: np.ndarray) -> Trunk:
    """Make a trunk of texts of one token: (n, d) vectors for a classification head to train on."""
    rows = np.arange(len(vectors))
    return Trunk.join(layer, [(rows, vectors)], np.ones_like(rows), hash_array(vectors))
