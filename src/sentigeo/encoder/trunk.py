"""The frozen trunk: hidden states of a lower layer, computed once and shared by every run."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from sentigeo.encoder.tokens import TokenIds
from sentigeo.files import hash_array

Rng = np.random.Generator
FEWEST_TOKENS = 32  # of a text that a training step sees, however small the share


@dataclass(frozen=True)
class Trunk:
    """Hidden states of one layer for every token of n texts."""

    layer: float  # 0 is the embeddings, 4.5 the attention half of the fifth layer
    shards: Sequence[np.ndarray]  # (t, d) float32 each, memory-mapped, texts end to end
    shard: np.ndarray  # (n,) shard of each text
    begins: np.ndarray  # (n,) where each text begins in its shard
    lengths: np.ndarray  # (n,) tokens of each text
    sha256: str  # over what the states depend on

    def __getitem__(self, row: int) -> np.ndarray:
        begin, shard = self.begins[row], self.shards[self.shard[row]]
        return np.asarray(shard[begin : begin + self.lengths[row]])


def join_shards(
    layer: float, shards: Sequence[tuple[np.ndarray, np.ndarray]], lengths: np.ndarray, sha256: str
) -> Trunk:
    """Make a trunk of shards: (b,) rows and (t, d) hidden states of each, in the same order."""
    shard, begins = np.zeros(len(lengths), np.int64), np.zeros(len(lengths), np.int64)
    for number, (rows, _) in enumerate(shards):
        shard[rows] = number
        begins[rows] = np.cumsum(lengths[rows]) - lengths[rows]
    return Trunk(layer, [hidden for _, hidden in shards], shard, begins, lengths, sha256)


def vectors_as_trunk(layer: int, vectors: np.ndarray) -> Trunk:
    """Make a trunk whose texts are one token long: (n, d) vectors for a head to train on."""
    rows = np.arange(len(vectors))
    return Trunk(layer, [vectors], 0 * rows, rows, 0 * rows + 1, hash_array(vectors))


def make_batch(
    source: TokenIds | Trunk, rows: np.ndarray, share: float = 1.0, rng: Rng | None = None
) -> tuple[Tensor, Tensor]:
    """Stack rows into (b, w) token ids or (b, w, d) hidden states, and a (b, w) mask of tokens.

    Of hidden states, `rng` draws a share of each text's; [CLS] always stays.
    """
    if isinstance(source, TokenIds):
        return pad([source[row] for row in rows], source.padding)
    places = [_draw_tokens(int(source.lengths[row]), share, rng) for row in rows]
    width = max(len(place) for place in places)
    hidden = torch.zeros(len(rows), width, source.shards[0].shape[1])
    mask = torch.zeros(len(rows), width, dtype=torch.bool)
    target = hidden.numpy()
    for position, (row, place) in enumerate(zip(rows, places, strict=True)):
        text = source[row]
        target[position, : len(place)] = text if len(place) == len(text) else text[place]
        mask[position, : len(place)] = True
    return hidden, mask


def pad(rows: Sequence[np.ndarray], filling: int) -> tuple[Tensor, Tensor]:
    """Stack rows of token ids into a (b, w) tensor and a (b, w) mask that is true at tokens."""
    width = max(len(row) for row in rows)
    ids = torch.full((len(rows), width), filling, dtype=torch.long)
    mask = torch.zeros(len(rows), width, dtype=torch.bool)
    for position, row in enumerate(rows):
        ids[position, : len(row)] = torch.from_numpy(row.astype(np.int64))
        mask[position, : len(row)] = True
    return ids, mask


def _draw_tokens(length: int, share: float, rng: Rng | None) -> np.ndarray:
    count = min(length, max(FEWEST_TOKENS, math.ceil(share * length)))
    if rng is None or count == length:
        return np.arange(length)
    others = rng.choice(length - 1, count - 1, replace=False) + 1
    return np.concatenate([[0], np.sort(others)])
