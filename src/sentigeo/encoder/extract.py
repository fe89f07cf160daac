"""One pass of an encoder over texts, in shards that survive an interruption."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor

from sentigeo.cache import Store, package_versions
from sentigeo.code_hash import hash_code
from sentigeo.cores import run_in_threads
from sentigeo.encoder.bert_layers import BERT_LIKE, hidden_states, pool
from sentigeo.encoder.encoder import Encoder
from sentigeo.encoder.tokens import TokenIds, Truncation, encode_texts, token_batches, window_texts
from sentigeo.encoder.trunk import Trunk, join_shards, make_batch
from sentigeo.encoder.vectors import POOLINGS, Kind, Pooling, Vectors, resolve_layer
from sentigeo.errors import UserError
from sentigeo.files import hash_json, load_array, save_arrays
from sentigeo.progress import track

BATCH_TOKENS = 2048  # activations of this many tokens stay near the processor
SHARD_TOKENS = 65_536  # work that is lost at most when a run is killed
Batch = tuple[np.ndarray, dict[float, np.ndarray]]  # (k, b, d) vectors; kept states by layer


@dataclass(frozen=True)
class Shard:
    """Texts that are computed and stored together."""

    batches: list[np.ndarray]  # rows of each
    keys: dict[str, dict[str, Any]]  # of its vectors, and of the states of each kept layer

    @property
    def rows(self) -> np.ndarray:
        """(b,) rows in the order they are stored in."""
        return np.concatenate(self.batches)


def extract(
    source: TokenIds | Trunk,
    encoder: Encoder,
    store: Store,
    kinds: Sequence[Kind],
    keep: Sequence[float] = (),
) -> tuple[Vectors, dict[float, Trunk]]:
    """Run an encoder once over texts; return pooled vectors and the trunks of some layers.

    Shards already in the store are not computed again, and processes share the others.

    Args:
        source: Token ids, or the trunk that the encoder's upper layers start from.
        encoder: The encoder.
        store: Where shards are kept, with their rows and checksums.
        kinds: Layers and poolings.
        keep: Layers, or halves of them, whose hidden states of all tokens are kept as a trunk.
    """
    if encoder.model.config.model_type not in BERT_LIKE and (keep or isinstance(source, Trunk)):
        raise UserError(f"A {encoder.model.config.model_type} model has no cached trunk.")
    base = {
        "encoder": encoder.sha256,
        "source": source.sha256,
        "code": hash_code(__name__),
        "versions": package_versions("torch", "transformers"),
    }
    shards = [
        Shard(batches, _shard_keys(base, np.concatenate(batches), kinds, keep))
        for batches in _plan_batches(source.lengths)
    ]
    _compute_missing(shards, source, encoder, store, kinds, keep)
    folders = tuple(store.place("vectors", shard.keys["vectors"]) for shard in shards)
    vectors = Vectors(len(source.lengths), encoder.layers, tuple(kinds), folders)
    trunks = {}
    for layer in keep:
        places = [(own.rows, store.place("hidden", own.keys[f"{layer:g}"])) for own in shards]
        parts = [(rows, load_array(place / "hidden.npy")) for rows, place in places]
        sha256 = hash_json({**base, "layer": layer})
        trunks[layer] = join_shards(layer, parts, source.lengths, sha256)
    return vectors, trunks


def _compute_missing(
    shards: list[Shard],
    source: TokenIds | Trunk,
    encoder: Encoder,
    store: Store,
    kinds: Sequence[Kind],
    keep: Sequence[float],
) -> None:
    """Compute the shards that are not in the store; one is written while the next is computed."""
    accelerator = Accelerator()
    device, world = accelerator.device, accelerator.num_processes
    own = shards[accelerator.process_index :: world]  # by number, so that no two processes disagree
    missing = [shard for shard in own if not _is_stored(store, shard)]
    work = [int(source.lengths[shard.rows].sum()) for shard in missing]
    encoder.model.to(device)
    run = _batch_runner(source, encoder, kinds, keep)
    batches = [batch for shard in missing for batch in shard.batches]
    threads = torch.get_num_threads() if device.type == "cpu" else 1
    with one_thread(device):  # each core takes batches of its own, which wastes less than sharing
        computed = run_in_threads(run, batches, threads)
        for shard in track(missing, "reading", work, unit="tokens"):
            _store_shard(store, shard, list(islice(computed, len(shard.batches))))
        next(computed, None)  # so that joblib knows that nothing was left
    accelerator.wait_for_everyone()


def _batch_runner(
    source: TokenIds | Trunk, encoder: Encoder, kinds: Sequence[Kind], keep: Sequence[float]
) -> Callable[[np.ndarray], Batch]:
    """Return a function from the rows of a batch to its vectors and kept states."""
    top = max([layer for layer, _ in kinds] + list(keep), default=0)
    start = source.layer if isinstance(source, Trunk) else 0.0
    whole_top = any(layer > top - 1 for layer in keep)
    cls_at_top = not whole_top and {p for layer, p in kinds if layer == top} == {"cls"}

    @torch.inference_mode()
    def run(rows: np.ndarray) -> Batch:
        inputs, mask = (part.to(encoder.model.device) for part in make_batch(source, rows))
        found: dict[Kind, Tensor] = {}
        hidden: dict[float, np.ndarray] = {}
        for layer, states in hidden_states(encoder.model, inputs, mask, start, top, cls_at_top):
            found |= {kind: pool(states, mask, kind[1]) for kind in kinds if kind[0] == layer}
            if layer in keep:
                hidden[layer] = states[mask].cpu().numpy()
        empty = torch.zeros(0, len(rows), encoder.width)
        vectors = torch.stack([found[kind] for kind in kinds]) if kinds else empty
        return vectors.cpu().numpy(), hidden

    return run


@contextmanager
def one_thread(device: torch.device) -> Iterator[None]:
    """Let torch use one thread, if it works on a CPU."""
    threads = torch.get_num_threads()
    if device.type == "cpu":
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _plan_batches(lengths: np.ndarray) -> list[list[np.ndarray]]:
    """Group batches of similar length, shard by shard, longest texts first."""
    shards: list[list[np.ndarray]] = []
    room = 0
    for batch in token_batches(np.arange(len(lengths)), lengths, BATCH_TOKENS)[::-1]:
        size = int(lengths[batch].sum())
        if size > room:
            shards.append([])
            room = SHARD_TOKENS
        shards[-1].append(batch)
        room -= size
    return shards


def _shard_keys(
    base: dict[str, Any], rows: np.ndarray, kinds: Sequence[Kind], keep: Sequence[float]
) -> dict[str, dict[str, Any]]:
    own = {**base, "rows": hash_json(rows.tolist())}
    keys = {"vectors": {**own, "kinds": [list(kind) for kind in kinds]}}
    return keys | {f"{layer:g}": {**own, "layer": layer} for layer in keep}


def _is_stored(store: Store, shard: Shard) -> bool:
    kind = {"vectors": "vectors"}  # all other keys are those of hidden states
    return all(store.find(kind.get(name, "hidden"), key) for name, key in shard.keys.items())


def _store_shard(store: Store, shard: Shard, found: list[Batch]) -> None:
    rows, vectors = shard.rows, np.concatenate([v for v, _ in found], axis=1)
    broken = rows[~np.isfinite(vectors).all(axis=(0, 2))]
    if len(broken):
        raise UserError(
            f"The encoder's vector of text {broken.min() + 1} holds values that are not numbers."
        )
    for layer in found[0][1]:
        hidden = {"hidden": np.concatenate([states[layer] for _, states in found])}
        store.folder("hidden", shard.keys[f"{layer:g}"], partial(save_arrays, arrays=hidden))
    arrays = {"rows": rows, "vectors": vectors}
    store.folder("vectors", shard.keys["vectors"], partial(save_arrays, arrays=arrays))


def embed_texts(
    texts: Sequence[str],
    encoder: Encoder,
    layer: int | Sequence[int] = -1,
    pooling: Pooling = "cls",
    max_length: int | None = None,
    window: int | None = None,
    *,
    overlap: int | None = None,
    truncation: Truncation = "first",
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
        store: Where shards are kept, so that a run that was stopped goes on.
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
    """Combine (windows, d) vectors into one per text, weighted by the windows' tokens.

    Windows of a text stand together and texts are in order, as `owners`, (windows,), says.
    """
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    if len(starts) == len(owners):
        return vectors
    weights = np.add.reduceat(lengths, starts)
    return np.add.reduceat(vectors * lengths[:, None], starts) / weights[:, None]
