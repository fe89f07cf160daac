"""What a training carries from epoch to epoch, on disk and between processes."""

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from sentigeo.cache import Store
from sentigeo.errors import UserError
from sentigeo.files import write_text

FACTS = "facts.json"
Tensors = dict[str, Tensor]


@dataclass
class History:
    """Losses and accuracies after each epoch; validation is that of the averaged weights."""

    train_loss: list[float]
    val_loss: list[float]
    val_accuracy: list[float]


class MovingAverage:
    """The moving average of some weights over the steps of training.

    Steps on few texts jump about; their average is steadier than the last of them.
    """

    def __init__(self, weights: list[nn.Parameter], decay: float) -> None:
        self.weights, self.decay, self.steps = weights, decay, 0
        self.values = [weight.detach().clone() for weight in weights]

    @torch.no_grad()
    def update(self) -> None:
        """Take in the weights after a step; the first steps are forgotten faster."""
        self.steps += 1
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))
        for value, weight in zip(self.values, self.weights, strict=True):
            value.lerp_(weight, 1 - decay)

    @torch.no_grad()
    def swap(self) -> None:
        """Exchange weights and average."""
        for value, weight in zip(self.values, self.weights, strict=True):
            kept = weight.clone()
            weight.copy_(value)
            value.copy_(kept)

    def tensors(self) -> Tensors:
        """Return the average as named tensors."""
        return {str(number): value for number, value in enumerate(self.values)}


def save_state(
    state: Path, epochs: int, tensors: Mapping[str, Mapping[str, Tensor]], facts: dict[str, Any]
) -> None:
    """Write everything into a new folder, then let it replace the old one.

    Args:
        state: Path that the folder's name begins with.
        epochs: How many are done.
        tensors: Named tensors, a file each.
        facts: What else training goes on from, as JSON values.
    """
    fresh = state.with_name(f"{state.name}-{epochs}")
    part = fresh.with_name(f"{fresh.name}.part-{token_hex(8)}")  # another run may be at it too
    part.mkdir(parents=True)
    for name, named in tensors.items():
        save_file({k: v.detach().clone().cpu() for k, v in named.items()}, part / name)
    write_text(part / FACTS, json.dumps(facts))
    shutil.rmtree(fresh, ignore_errors=True)
    part.rename(fresh)
    for folder in _states(state):
        if _epochs(folder) < epochs:
            shutil.rmtree(folder, ignore_errors=True)


def load_state(state: Path) -> tuple[dict[str, Tensors], dict[str, Any]] | None:
    """Return the tensors and facts of the newest whole state, if there is one."""
    whole = [folder for folder in _states(state) if (folder / FACTS).is_file()]
    if not whole:
        return None
    folder = max(whole, key=_epochs)
    files = [path for path in folder.iterdir() if path.name != FACTS]
    tensors = {path.name: load_file(path) for path in files}
    return tensors, json.loads((folder / FACTS).read_text("utf-8"))


def _states(state: Path) -> list[Path]:
    """List the folders of a state; those that a run is writing, or was, are not among them."""
    return [path for path in state.parent.glob(f"{state.name}-*") if "." not in path.name]


def _epochs(folder: Path) -> int:
    return int(folder.name.rsplit("-", 1)[1])


def optimizer_tensors(optimizer: Any) -> Tensors:
    """Return what an optimizer has in mind for each weight, as named tensors."""
    return {
        f"{number}.{name}": value
        for number, values in optimizer.state_dict()["state"].items()
        for name, value in values.items()
    }


def restore_optimizer(optimizer: Any, tensors: Tensors) -> None:
    """Give an optimizer back what `optimizer_tensors` took down."""
    found: dict[int, Tensors] = {}
    for name, value in tensors.items():
        number, _, kind = name.partition(".")
        found.setdefault(int(number), {})[kind] = value
    optimizer.load_state_dict({**optimizer.state_dict(), "state": found})


def forget_state(state: Path) -> None:
    """Remove a training state that is no longer needed."""
    for folder in state.parent.glob(f"{state.name}*"):
        shutil.rmtree(folder, ignore_errors=True)


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
