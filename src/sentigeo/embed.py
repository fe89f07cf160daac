"""Texts to vectors: any layer, any pooling, texts of any length."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from accelerate import Accelerator

from sentigeo.encoder import Encoder
from sentigeo.errors import UserError
from sentigeo.extract import extract
from sentigeo.store import Store
from sentigeo.tokens import Truncation, encode_texts, window_texts
from sentigeo.vectors import POOLINGS, Pooling, resolve_layer


def embed_texts(
    texts: Sequence[str],
    encoder: Encoder,
    layer: int | Sequence[int] = -1,
    pooling: Pooling = "cls",
    max_length: int | None = None,
    window: int | None = None,
    *,
    overlap: int | None = None,
    truncation: Truncation = "head",
    store: Store | None = None,
) -> np.ndarray:
    """Return the (n, d) float32 vectors of n texts.

    Args:
        texts: n texts; an empty one has the vector of its special tokens.
        encoder: Any encoder; of BERT-like ones only what is asked for is computed.
        layer: Layers are counted from 0, the embeddings; -1 is the last. Several are averaged.
        pooling: The first token, the mean or the maximum over all tokens, special ones included.
        max_length: Token budget of a text; by default the most that the encoder reads.
        window: Tokens of a window. With it no text is cut: a longer one is read in overlapping
            windows, and its vector is their mean weighted by tokens.
        overlap: Tokens that neighbouring windows share; an eighth of a window by default.
        truncation: What to keep of a text beyond its budget, where there are no windows.
        store: Where shards are kept, so that a run that was stopped goes on; without it in a
            folder that is gone afterwards.
    """
    wanted = [int(layer)] if isinstance(layer, int | np.integer) else [int(one) for one in layer]
    if pooling not in POOLINGS or not wanted:
        raise UserError(f"Give at least one layer, and a pooling of {', '.join(POOLINGS)}.")
    if isinstance(texts, str):
        raise UserError("Give a list of texts, not one text.")
    if window is not None and max_length is not None:
        raise UserError("Give max_length, which cuts texts, or window, which does not; not both.")
    if store is None and Accelerator().num_processes > 1:
        raise UserError("Several processes share their work through a store: give one.")
    numbers = sorted({resolve_layer(one, encoder.layers) for one in wanted})
    if window is None:
        limit = encoder.max_length if max_length is None else max_length
        tokens = encode_texts(texts, encoder.tokenizer, limit, truncation)
        owners = np.arange(len(tokens.lengths))
    else:
        overlap = window // 8 if overlap is None else overlap
        tokens, owners = window_texts(texts, encoder.tokenizer, window, overlap)
    with tempfile.TemporaryDirectory() as folder:
        place = store or Store(Path(folder))
        vectors, _ = extract(tokens, encoder, place, [(number, pooling) for number in numbers])
        found = vectors.matrix(wanted, pooling) if len(texts) else np.empty((0, encoder.width))
    return mean_of_windows(found, owners, tokens.lengths).astype(np.float32, copy=False)


def mean_of_windows(vectors: np.ndarray, owners: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Combine (windows, d) vectors into one a text, weighted by the windows' tokens.

    Args:
        vectors: A row a window; windows of a text stand together, texts in order.
        owners: (windows,) text of each window.
        lengths: (windows,) tokens of each window.
    """
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    if len(starts) == len(owners):
        return vectors
    weights = np.add.reduceat(lengths, starts)
    return np.add.reduceat(vectors * lengths[:, None], starts) / weights[:, None]
