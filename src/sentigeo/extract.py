"""One pass of an encoder over texts, in shards that survive an interruption."""

import sys
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor

from sentigeo import layers as layers_module
from sentigeo import tokens as tokens_module
from sentigeo import trunk as trunk_module
from sentigeo.encoder import Encoder
from sentigeo.errors import UserError
from sentigeo.layers import BERT_LIKE, hidden_states, pool
from sentigeo.progress import track
from sentigeo.store import (
    Store,
    code_version,
    hash_json,
    load_array,
    package_versions,
    save_arrays,
)
from sentigeo.tokens import TokenIds, token_batches
from sentigeo.trunk import Trunk, join_shards, make_batch
from sentigeo.vectors import Kind, Vectors

BATCH_TOKENS = 2048  # activations of this many tokens stay near the processor
SHARD_TOKENS = 65_536  # work that is lost at most when a run is killed

Batch = tuple[np.ndarray, dict[float, np.ndarray]]  # (k, b, d) vectors; kept states by layer


@dataclass(frozen=True)
class Shard:
    """Texts that are computed and stored together.

    Attributes:
        batches: Rows of each batch.
        keys: The store's keys of its vectors, and of the states of each kept layer.
    """

    batches: list[np.ndarray]
    keys: dict[str, dict[str, Any]]

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
        "code": code_version(sys.modules[__name__], tokens_module, layers_module, trunk_module),
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
        places = [store.place("hidden", shard.keys[f"{layer:g}"]) for shard in shards]
        states = [load_array(place / "hidden.npy") for place in places]
        rows = [shard.rows for shard in shards]
        sha256 = hash_json({**base, "layer": layer})
        parts = list(zip(rows, states, strict=True))
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
    run = _batch_runner(source, encoder, kinds, keep, device)
    shards_done = closing(_run_shards(run, missing, device))
    with ThreadPoolExecutor(1) as writer, shards_done as computed:
        written: Future[None] | None = None
        for shard in track(missing, "reading", work, unit="tokens"):
            found = next(computed)
            if written:
                written.result()
            written = writer.submit(_store_shard, store, shard, found)
        if written:
            written.result()
    accelerator.wait_for_everyone()


def _batch_runner(
    source: TokenIds | Trunk,
    encoder: Encoder,
    kinds: Sequence[Kind],
    keep: Sequence[float],
    device: torch.device,
) -> Callable[[np.ndarray], Batch]:
    """Return a function from the rows of a batch to its vectors and kept states."""
    top = max([layer for layer, _ in kinds] + list(keep), default=0)
    start = source.layer if isinstance(source, Trunk) else 0.0
    whole_top = any(layer > top - 1 for layer in keep)
    cls_at_top = not whole_top and {p for layer, p in kinds if layer == top} == {"cls"}

    @torch.inference_mode()
    def run(rows: np.ndarray) -> Batch:
        inputs, mask = (part.to(device) for part in make_batch(source, rows))
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


def _run_shards(
    run: Callable[[np.ndarray], Batch], shards: list[Shard], device: torch.device
) -> Generator[list[Batch], None, None]:
    """Yield what the batches of each shard give.

    On a CPU each core takes batches of its own, which wastes less than sharing one; and none waits
    for the last batch of a shard, because the next shard is begun before.
    """
    if device.type != "cpu":
        yield from ([run(batch) for batch in shard.batches] for shard in shards)
        return
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    workers = ThreadPoolExecutor(threads)
    try:
        begun: list[list[Future[Batch]]] = []
        for shard in shards:
            begun.append([workers.submit(run, batch) for batch in shard.batches])
            if len(begun) > 1:
                yield [batch.result() for batch in begun.pop(0)]
        yield from ([batch.result() for batch in shard] for shard in begun)
    finally:
        workers.shutdown(cancel_futures=True)
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
    """Return the store's keys of a shard: its vectors, and the states of each kept layer."""
    own = {**base, "rows": hash_json(rows.tolist())}
    keys = {"vectors": {**own, "kinds": [list(kind) for kind in kinds]}}
    return keys | {f"{layer:g}": {**own, "layer": layer} for layer in keep}


def _is_stored(store: Store, shard: Shard) -> bool:
    kinds = {name: "vectors" if name == "vectors" else "hidden" for name in shard.keys}
    return all(store.find(kinds[name], key) for name, key in shard.keys.items())


def _store_shard(store: Store, shard: Shard, found: list[Batch]) -> None:
    """Put a shard's vectors and kept states into the store."""
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
