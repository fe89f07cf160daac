"""The training loop: epochs and steps of whatever is trained, and a state on disk to resume from.

A training that was killed resumes from its last state and ends with the same weights, because all
that is random in a step follows from the seed, the epoch and the step.
"""

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from sentigeo.cache import Store
from sentigeo.errors import UserError

Tensors = dict[str, Tensor]


class Task:
    """What is trained, on what, and what to note.

    Attributes:
        body: What is trained; the weights are those that require gradients.
        recipe: Has at least `learning_rate`, `weight_decay` and `clip`.
        save_every: Epochs from one state on disk to the next.
    """

    save_every = 1

    def __init__(self, body: Any, recipe: Any) -> None:
        self.recipe, self.accelerator = recipe, Accelerator()
        self.body = body.to(self.accelerator.device)
        self.weights = {n: weight for n, weight in body.named_parameters() if weight.requires_grad}

    def begin(self, epoch: int) -> list[np.ndarray] | None:
        """Return the batches of an epoch; none at all once training is over."""
        raise NotImplementedError

    def rate(self, epoch: int, step: int, steps: int) -> float:
        """Return the learning rate of a step, one of so many in its epoch."""
        raise NotImplementedError

    def loss(self, model: Any, batch: np.ndarray, epoch: int, step: int) -> Tensor:
        """Return this process's part of a step's loss; the mean over processes counts."""
        raise NotImplementedError

    def after_step(self) -> None:
        """Note the weights after a step."""

    def end(self, epoch: int) -> None:
        """Note how things stand after an epoch."""

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """Return what to resume from besides weights and optimizer: tensors, and JSON values."""
        return {}, {}

    def restore(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        """Take back what `state` returned."""

    def own_rows(self, batch: np.ndarray) -> tuple[np.ndarray, float]:
        """Return this process's rows of a batch, and the weight of a loss summed over them.

        Processes average their gradients, so that the weights add up to the mean over the batch.
        Every process takes part in every step; one without rows takes a row that does not count.
        """
        rank, world = self.accelerator.process_index, self.accelerator.num_processes
        mine = batch[rank::world]
        return (mine, world / len(batch)) if len(mine) else (batch[:1], 0.0)


class MovingAverage:
    """The average of weights over the steps of training, which is steadier than the last step."""

    def __init__(self, weights: Tensors, decay: float) -> None:
        self.weights, self.decay, self.steps = weights, decay, 0
        self.values = {name: weight.detach().clone() for name, weight in weights.items()}

    @torch.no_grad()
    def update(self) -> None:
        """Take in the weights after a step; the first steps are forgotten faster."""
        self.steps += 1
        decay = min(self.decay, (1 + self.steps) / (10 + self.steps))
        for name, value in self.values.items():
            value.lerp_(self.weights[name], 1 - decay)

    @torch.no_grad()
    def swap(self) -> None:
        """Exchange weights and average."""
        for name, value in self.values.items():
            kept = self.weights[name].clone()
            self.weights[name].copy_(value)
            value.copy_(kept)


def fit(
    task: Task, state: Path | None = None, on_epoch: Callable[[int], None] = lambda epoch: None
) -> None:
    """Train in place, with AdamW, until the task has no more batches.

    Args:
        task: What to train.
        state: File to save the state in and to resume from.
        on_epoch: Called after each epoch.
    """
    recipe, accelerator = task.recipe, task.accelerator
    settings = {"lr": recipe.learning_rate, "weight_decay": recipe.weight_decay, "fused": True}
    optimizer: Any = torch.optim.AdamW(task.weights.values(), **settings)
    found = load_state(state) if state else None
    epoch = _resume(task, optimizer, *found) if found else 0
    model, optimizer = accelerator.prepare(task.body, optimizer)
    while run_epoch(task, model, optimizer, epoch):
        epoch += 1
        if state and accelerator.is_main_process and epoch % task.save_every == 0:
            tensors, facts = task.state()
            tensors |= {f"weights/{name}": weight for name, weight in task.weights.items()}
            for number, moments in optimizer.state_dict()["state"].items():
                tensors |= {f"moments/{number}/{name}": value for name, value in moments.items()}
            save_state(state, tensors, facts | {"epochs": epoch})
        accelerator.wait_for_everyone()
        on_epoch(epoch - 1)


def run_epoch(task: Task, model: Any, optimizer: Any, epoch: int) -> bool:
    """Train one epoch; return whether there was one left."""
    batches = task.begin(epoch)
    if batches is None:
        return False
    for step, batch in enumerate(batches):
        for group in optimizer.param_groups:
            group["lr"] = task.rate(epoch, step, len(batches))
        loss = task.loss(model, batch, epoch, step)
        if not torch.isfinite(loss):
            raise UserError(
                f"The loss is no longer a number in epoch {epoch + 1}: lower the learning rate."
            )
        optimizer.zero_grad()
        task.accelerator.backward(loss)
        task.accelerator.clip_grad_norm_(model.parameters(), task.recipe.clip)
        optimizer.step()
        task.after_step()
    task.end(epoch)
    return True


def save_state(path: Path, tensors: Mapping[str, Tensor], facts: dict[str, Any]) -> None:
    """Write a state in one go, so that a reader finds the old one or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".part-{token_hex(8)}-{path.name}")  # another process may be at it too
    try:
        plain = {name: value.detach().cpu() for name, value in tensors.items()}
        save_file(plain, part, {"facts": json.dumps(facts)})
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def load_state(path: Path) -> tuple[Tensors, dict[str, Any]] | None:
    """Return the tensors and facts of a state, if there is one and it is whole."""
    try:
        with safe_open(path, "pt") as file:
            facts = json.loads(file.metadata()["facts"])
            return {name: file.get_tensor(name) for name in file.keys()}, facts  # noqa: SIM118
    except (FileNotFoundError, SafetensorError, KeyError, TypeError, ValueError):
        return None


def obtain(
    store: Store, kind: str, key: Mapping[str, Any], fill: Callable[[Path, Path], None]
) -> Path:
    """Return a stored folder; all processes fill it together if need be, the main one keeps it.

    Args:
        store: Where the folder is or will be.
        kind: What it holds, in a word.
        key: All that it depends on.
        fill: Trains, given a file for the state of training, and writes into a folder.
    """
    accelerator, state = Accelerator(), store.place("training", key)
    main = accelerator.is_main_process
    (found,) = broadcast_object_list([store.find(kind, key) if main else None])
    if found is None and main:
        store.put(kind, key, lambda folder: fill(state, folder))
    elif found is None:
        with tempfile.TemporaryDirectory() as scratch:
            fill(state, Path(scratch))
    accelerator.wait_for_everyone()
    if main:
        state.unlink(missing_ok=True)
    return store.place(kind, key)


def _resume(task: Task, optimizer: Any, tensors: Tensors, facts: dict[str, Any]) -> int:
    """Load a state into what is trained; return how many epochs it has behind it."""
    with torch.no_grad():
        for name, weight in task.weights.items():
            weight.copy_(tensors[f"weights/{name}"])
    moments: dict[int, Tensors] = {}
    for place in (name for name in tensors if name.startswith("moments/")):
        _, number, name = place.split("/")
        moments.setdefault(int(number), {})[name] = tensors[place]
    optimizer.load_state_dict({**optimizer.state_dict(), "state": moments})
    task.restore(tensors, facts)
    return int(facts["epochs"])
