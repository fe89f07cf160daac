"""The frozen trunk: hidden states of the lower layers, computed once and shared by every run."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sentigeo import layers as layers_module
from sentigeo import tokens as tokens_module
from sentigeo.encoder import Encoder
from sentigeo.layers import attend, attend_from_cls, feed_forward
from sentigeo.progress import track
from sentigeo.store import Store, code_version, hash_json, load_array
from sentigeo.tokens import TokenIds, token_batches

BATCH_TOKENS = 3072  # activations of this many tokens stay in the processor's cache


@dataclass(frozen=True)
class Trunk:
    """Hidden states of one layer for every token of n texts.

    Attributes:
        layer: Which layer's output; 0 is the embeddings, 4.5 the attention half of the fifth layer.
        hidden: (t, d) float32, memory-mapped, texts end to end; for the last layer only [CLS].
        starts: (n + 1,) where each text begins.
    """

    layer: float
    hidden: np.ndarray
    starts: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """(n,) tokens of each text."""
        return np.diff(self.starts)


def load_trunks(
    tokens: TokenIds, encoder: Encoder, layers: Sequence[float], store: Store
) -> dict[float, Trunk]:
    """Return the trunks at some layers of a BERT-like encoder; one pass computes all of them.

    Of the last layer only [CLS] is kept, for nothing else of it is read.
    """
    key = {
        "encoder": encoder.sha256,
        "tokens": hash_json([tokens.ids.tolist(), tokens.starts.tolist()]),
        "layers": sorted(layers),
        "code": code_version(sys.modules[__name__], tokens_module, layers_module),
    }
    folder = store.folder("trunk", key, lambda part: _compute(tokens, encoder, layers, part))
    ends = np.arange(len(tokens.starts))
    return {
        layer: Trunk(
            layer,
            load_array(folder / f"layer_{layer:g}.npy"),
            ends if layer == encoder.layers else tokens.starts,
        )
        for layer in layers
    }


@torch.inference_mode()
def _compute(tokens: TokenIds, encoder: Encoder, layers: Sequence[float], folder: Path) -> None:
    """Write each layer's hidden states to `layer_<l>.npy`, one batch at a time."""
    rows = {layer: len(tokens.ids) for layer in layers}
    if encoder.layers in rows:
        rows[encoder.layers] = len(tokens.lengths)
    arrays = {
        layer: np.lib.format.open_memmap(
            folder / f"layer_{layer:g}.npy", "w+", np.float32, (count, encoder.width)
        )
        for layer, count in rows.items()
    }
    batches = token_batches(np.arange(len(tokens.lengths)), tokens.lengths, BATCH_TOKENS)
    for batch in track(batches, "trunk", weights=[int(tokens.lengths[b].sum()) for b in batches]):
        ids, mask = pad([tokens[row] for row in batch], tokens.padding)
        states = _run_layers(encoder.model, ids, mask, min(max(layers), encoder.layers - 1))
        for layer, array in arrays.items():
            if layer == encoder.layers:
                last = encoder.model.encoder.layer[-1]
                array[batch] = attend_from_cls(last, states[layer - 1], mask).numpy()
                continue
            found = states[layer].numpy()
            for position, row in enumerate(batch):
                begin, end = tokens.starts[row], tokens.starts[row + 1]
                array[begin:end] = found[position, : end - begin]
    for array in arrays.values():
        array.flush()


def _run_layers(
    model: Any, ids: torch.Tensor, mask: torch.Tensor, last: float
) -> dict[float, torch.Tensor]:
    """Return the hidden states after every half layer up to `last`, and compute no more."""
    states = {0.0: model.embeddings(ids)}
    for step in range(int(2 * last)):
        layer = model.encoder.layer[step // 2]
        below = states[step / 2]
        states[(step + 1) / 2] = (
            feed_forward(layer, below) if step % 2 else attend(layer, below, mask)
        )
    return states


def pad(rows: Sequence[np.ndarray], filling: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Stack rows of token ids into a (b, w) tensor and a (b, w) mask that is true at tokens."""
    width = max(len(row) for row in rows)
    ids = torch.full((len(rows), width), filling, dtype=torch.long)
    mask = torch.zeros(len(rows), width, dtype=torch.bool)
    for position, row in enumerate(rows):
        ids[position, : len(row)] = torch.from_numpy(row.astype(np.int64))
        mask[position, : len(row)] = True
    return ids, mask
