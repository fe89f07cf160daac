"""Training with one process or with many, which share every batch."""

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from torch import Tensor, nn

from sentigeo.errors import UserError
from sentigeo.store import Store


def obtain(
    store: Store,
    kind: str,
    key: Mapping[str, Any],
    fill: Callable[[Path], None],
    accelerator: Accelerator,
) -> Path:
    """Return a stored folder; all processes fill it together if need be, the main one keeps it."""
    main = accelerator.is_main_process
    (found,) = broadcast_object_list([store.find(kind, key) if main else None])
    if found is None and main:
        store.put(kind, key, fill)
    elif found is None:
        with tempfile.TemporaryDirectory() as scratch:
            fill(Path(scratch))
    accelerator.wait_for_everyone()
    return store.place(kind, key)


def own_rows(batch: np.ndarray, accelerator: Accelerator) -> tuple[np.ndarray, float]:
    """Return this process's rows of a batch, and the weight of a loss summed over them.

    Processes average their gradients, so that the weights add up to the mean over the batch. Every
    process takes part in every step; one that has nothing to do takes a row that does not count.
    """
    rank, world = accelerator.process_index, accelerator.num_processes
    mine = batch[rank::world]
    return (mine, world / len(batch)) if len(mine) else (batch[:1], 0.0)


def seed_step(seed: int, epoch: int, step: int, accelerator: Accelerator) -> np.random.Generator:
    """Make all that is random in a step follow from seed, epoch, step and process."""
    rng = np.random.default_rng([seed, epoch, 2, step, accelerator.process_index])
    torch.manual_seed(int(rng.integers(2**62)))
    return rng


def take_step(
    loss: Tensor,
    model: nn.Module,
    optimizer: Any,
    accelerator: Accelerator,
    clip: float,
    epoch: int,
) -> None:
    """Change the weights so that a loss falls; a loss that is no number ends the training."""
    if not torch.isfinite(loss):
        raise UserError(
            f"The loss is no longer a number in epoch {epoch + 1}: lower the learning rate."
        )
    optimizer.zero_grad()
    accelerator.backward(loss)
    accelerator.clip_grad_norm_(model.parameters(), clip)
    optimizer.step()
