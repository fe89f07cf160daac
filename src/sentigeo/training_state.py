"""What a training run carries from epoch to epoch, and how it survives an interruption."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from sentigeo.store import write_text

STATE = "state"


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


def save_state(
    body: nn.Module, optimizer: Any, average: MovingAverage, history: History, state: Path
) -> None:
    """Write everything into a new folder, then let it replace the old one."""
    fresh = state.with_name(f"{state.name}-{len(history.train_loss)}")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    moments = {
        f"{number}.{name}": value
        for number, values in optimizer.state_dict()["state"].items()
        for name, value in values.items()
    }
    averages = {str(number): value for number, value in enumerate(average.values)}
    named = {"weights": body.state_dict(), "moments": moments, "average": averages}
    for name, tensors in named.items():
        save_file({k: v.detach().clone().cpu() for k, v in tensors.items()}, fresh / name)
    facts = {"history": vars(history), "steps": average.steps}
    write_text(fresh / STATE, json.dumps(facts))  # last: without it the folder is not whole
    for folder in state.parent.glob(f"{state.name}-*"):
        if folder != fresh:
            shutil.rmtree(folder, ignore_errors=True)


def load_state(body: nn.Module, optimizer: Any, average: MovingAverage, state: Path) -> History:
    """Load the newest whole state; return its history."""
    whole = [path.parent for path in state.parent.glob(f"{state.name}-*/{STATE}")]
    if not whole:
        return History([], [], [])
    folder = max(whole, key=lambda path: int(path.name.rsplit("-", 1)[1]))
    body.load_state_dict(load_file(folder / "weights"))
    moments: dict[int, dict[str, Tensor]] = {}
    for name, value in load_file(folder / "moments").items():
        number, _, kind = name.partition(".")
        moments.setdefault(int(number), {})[kind] = value
    optimizer.load_state_dict({**optimizer.state_dict(), "state": moments})
    facts = json.loads((folder / STATE).read_text("utf-8"))
    average.steps = facts["steps"]
    for name, value in load_file(folder / "average").items():
        average.values[int(name)].copy_(value)
    return History(**facts["history"])


def forget_state(state: Path) -> None:
    """Remove a training state that is no longer needed."""
    for folder in state.parent.glob(f"{state.name}*"):
        shutil.rmtree(folder, ignore_errors=True)
