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

from sentigeo.cache import Store, load_array, package_versions, save_arrays
from sentigeo.cores import run_in_threads, track
from sentigeo.encoder.bert_layers import BERT_LIKE, hidden_states, make_batch, pool
from sentigeo.encoder.encoder import Encoder
from sentigeo.encoder.tokens import TokenIds, Truncation, encode_texts, token_batches, window_texts
from sentigeo.encoder.vectors import POOLINGS, Kind, Pooling, Trunk, Vectors, resolve_layer
from sentigeo.errors import UserError
from sentigeo.hashes import hash_array, hash_code, hash_json

BATCH_TOKENS = 2048  # activations of this many tokens stay near the processor
SHARD_TOKENS = 65_536  # work that is lost at most when a run is killed
Batch = dict[str, np.ndarray]  # (k, b, d) `vectors`, and (t, d) `hidden-<layer>` of kept layers


@dataclass(frozen=True)
class Shard:
    """Texts that are computed and stored together."""

    batches: list[np.ndarray]  # rows of each
    rows: np.ndarray  # of all, in the order they are stored in
    keys: dict[str, dict[str, Any]]  # of what is stored, named as in a batch


def extract(
    source: TokenIds | Trunk,
    encoder: Encoder,
    store: Store,
    kinds: Sequence[Kind],
    keep: Sequence[int] = (),
) -> tuple[Vectors, dict[int, Trunk]]:
    """Run an encoder once over texts; return pooled vectors, and the trunks of layers to keep.

    It starts from token ids, or from the trunk below its upper layers. Shards already in the store
    are not computed again, and processes share the others.
    """
    architecture = encoder.model.config.model_type
    if architecture not in BERT_LIKE and (keep or isinstance(source, Trunk)):
        raise UserError(f"A {architecture} model has no cached trunk.")
    if isinstance(source, Trunk) and any(layer <= source.layer for layer, _ in kinds):
        raise ValueError("a layer is asked for that lies below the trunk")
    base: dict[str, Any] = {
        "encoder": encoder.sha256,
        "source": source.sha256,
        "code": hash_code(__name__),
        "versions": package_versions("torch", "transformers"),
    }
    keys = {"vectors": base | {"kinds": [list(kind) for kind in kinds]}}
    keys |= {f"hidden-{layer}": base | {"layer": layer} for layer in keep}
    shards = _plan_shards(source.lengths, keys)
    encoder.model.to(Accelerator().device)
    run = partial(_run_batch, source=source, encoder=encoder, kinds=kinds, keep=keep)
    _compute_missing(shards, store, source.lengths, run)
    folders = tuple(store.place("vectors", shard.keys["vectors"]) for shard in shards)
    trunks = {}
    for layer in keep:
        name = f"hidden-{layer}"
        places = [(shard.rows, store.place(name, shard.keys[name])) for shard in shards]
        parts = [(rows, load_array(place / "hidden.npy")) for rows, place in places]
        trunks[layer] = Trunk.join(layer, parts, source.lengths, hash_json(keys[name]))
    return Vectors(len(source.lengths), encoder.layers, tuple(kinds), folders), trunks


def _plan_shards(lengths: np.ndarray, keys: dict[str, dict[str, Any]]) -> list[Shard]:
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
    every = [np.concatenate(batches) for batches in shards]
    return [
        Shard(batches, rows, {name: key | {"rows": hash_array(rows)} for name, key in keys.items()})
        for batches, rows in zip(shards, every, strict=True)
    ]


def _compute_missing(
    shards: list[Shard], store: Store, lengths: np.ndarray, run: Callable[[np.ndarray], Batch]
) -> None:
    """Compute the shards that are not in the store; one is written while the next is computed."""
    accelerator = Accelerator()
    device, world = accelerator.device, accelerator.num_processes
    mine = shards[accelerator.process_index :: world]  # by number, so that processes never disagree
    missing = [shard for shard in mine if not all(store.find(*key) for key in shard.keys.items())]
    work = [int(lengths[shard.rows].sum()) for shard in missing]
    batches = [batch for shard in missing for batch in shard.batches]
    threads = torch.get_num_threads() if device.type == "cpu" else 1
    with one_thread(device):  # each core takes batches of its own, which wastes less than sharing
        computed = run_in_threads(run, batches, threads)
        for shard in track(missing, "reading", work, unit="tokens"):
            _store_shard(store, shard, list(islice(computed, len(shard.batches))))
        next(computed, None)  # so that joblib knows that nothing was left
    accelerator.wait_for_everyone()


@torch.inference_mode()
def _run_batch(
    rows: np.ndarray,
    source: TokenIds | Trunk,
    encoder: Encoder,
    kinds: Sequence[Kind],
    keep: Sequence[int],
) -> Batch:
    top = max([layer for layer, _ in kinds] + list(keep), default=0)
    start = source.layer if isinstance(source, Trunk) else 0
    cls_at_top = top not in keep and {p for layer, p in kinds if layer == top} == {"cls"}
    inputs, mask = (part.to(encoder.model.device) for part in make_batch(source, rows))
    found = {"vectors": np.full((len(kinds), len(rows), encoder.width), np.nan, np.float32)}
    for layer, states in hidden_states(encoder.model, inputs, mask, start, top, cls_at_top):
        for place, (wanted, pooling) in enumerate(kinds):
            if wanted == layer:
                found["vectors"][place] = pool(states, mask, pooling).cpu()
        if layer in keep:
            found[f"hidden-{layer}"] = states[mask].cpu().numpy()
    return found


def _store_shard(store: Store, shard: Shard, found: list[Batch]) -> None:
    rows, vectors = shard.rows, np.concatenate([batch["vectors"] for batch in found], axis=1)
    broken = rows[~np.isfinite(vectors).all(axis=(0, 2))]
    if len(broken):
        raise UserError(
            f"The encoder's vector of text {broken.min() + 1} holds values that are not numbers."
        )
    for name, key in shard.keys.items():
        arrays = {"rows": rows, "vectors": vectors}
        if name != "vectors":
            arrays = {"hidden": np.concatenate([batch[name] for batch in found])}
        store.folder(name, key, partial(save_arrays, arrays=arrays))


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
    wanted = [int(one) for one in np.atleast_1d(layer)]
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
    """Combine (windows, d) vectors into one per text, weighted by tokens; texts are in order."""
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    if len(starts) == len(owners):
        return vectors
    weights = np.add.reduceat(lengths, starts)
    return np.add.reduceat(vectors * lengths[:, None], starts) / weights[:, None]
