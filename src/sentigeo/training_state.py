"""What a training run carries from epoch to epoch, and how it survives an interruption."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from sentigeo.store import write_text

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
