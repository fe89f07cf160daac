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
from torch import Tensor, nn

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

    def __init__(self, body: Any, recipe: Any, accelerator: Accelerator) -> None:
        self.body, self.recipe, self.accelerator = body.to(accelerator.device), recipe, accelerator
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


def fit(
    task: Task, state: Path | None = None, on_epoch: Callable[[int], None] = lambda epoch: None
) -> None:
    """Train in place, with AdamW, until the task has no more batches.

    Args:
        task: What to train.
        state: File to save the state in and to resume from; `forget_state` removes it when the
            result is safe.
        on_epoch: Called after each epoch.
    """
    recipe, accelerator = task.recipe, task.accelerator
    optimizer: Any = torch.optim.AdamW(
        task.weights.values(),
        lr=recipe.learning_rate,
        weight_decay=recipe.weight_decay,
        fused=True,
    )
    found = load_state(state) if state else None
    epoch = _resume(task, optimizer, *found) if found else 0
    model, optimizer = accelerator.prepare(task.body, optimizer)
    while run_epoch(task, model, optimizer, epoch):
        epoch += 1
        if state and accelerator.is_main_process and epoch % task.save_every == 0:
            tensors, facts = task.state()
            tensors |= {f"weights/{name}": weight for name, weight in task.weights.items()}
            tensors |= {f"moments/{k}": value for k, value in optimizer_tensors(optimizer).items()}
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
        take_step(loss, model, optimizer, task.accelerator, task.recipe.clip, epoch)
        task.after_step()
    task.end(epoch)
    return True


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


def seed_step(seed: int, epoch: int, step: int, accelerator: Accelerator) -> np.random.Generator:
    """Make all that is random in a step follow from seed, epoch, step and process."""
    rng = np.random.default_rng([seed, epoch, 2, step, accelerator.process_index])
    torch.manual_seed(int(rng.integers(2**62)))
    return rng


def own_rows(batch: np.ndarray, accelerator: Accelerator) -> tuple[np.ndarray, float]:
    """Return this process's rows of a batch, and the weight of a loss summed over them.

    Processes average their gradients, so that the weights add up to the mean over the batch. Every
    process takes part in every step; one that has nothing to do takes a row that does not count.
    """
    rank, world = accelerator.process_index, accelerator.num_processes
    mine = batch[rank::world]
    return (mine, world / len(batch)) if len(mine) else (batch[:1], 0.0)


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


def forget_state(path: Path) -> None:
    """Remove a state that is no longer needed."""
    path.unlink(missing_ok=True)


def optimizer_tensors(optimizer: Any) -> Tensors:
    """Return what an optimizer remembers of each weight, as named tensors."""
    return {
        f"{number}.{name}": value
        for number, values in optimizer.state_dict()["state"].items()
        for name, value in values.items()
    }


def restore_optimizer(optimizer: Any, tensors: Tensors) -> None:
    """Give an optimizer back what `optimizer_tensors` returned."""
    found: dict[int, Tensors] = {}
    for name, value in tensors.items():
        number, _, kind = name.partition(".")
        found.setdefault(int(number), {})[kind] = value
    optimizer.load_state_dict({**optimizer.state_dict(), "state": found})


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


def _resume(task: Task, optimizer: Any, tensors: Tensors, facts: dict[str, Any]) -> int:
    """Load a state into what is trained; return how many epochs it has behind it."""
    with torch.no_grad():
        for name, weight in task.weights.items():
            weight.copy_(tensors[f"weights/{name}"])
    moments = {name: value for name, value in tensors.items() if name.startswith("moments/")}
    restore_optimizer(optimizer, {n.removeprefix("moments/"): v for n, v in moments.items()})
    task.restore(tensors, facts)
    return int(facts["epochs"])
