"""The training loop: epochs and steps of whatever is trained, and a state on disk to resume from.

A training that was killed resumes from its last state and ends with the same weights, because all
that is random in a step follows from the seed, the epoch and the step.
"""

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
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
from sentigeo.cores import run_in_processes, track
from sentigeo.encoder.bert_layers import make_batch
from sentigeo.encoder.extract import one_thread
from sentigeo.encoder.tokens import TokenIds, token_batches
from sentigeo.encoder.vectors import Trunk
from sentigeo.errors import UserError

Tensors = dict[str, Tensor]
Texts = TokenIds | Trunk


class Task:
    """What is trained, on what, and what to note.

    Attributes:
        recipe: Has at least `epochs`, `learning_rate`, `weight_decay` and `clip`.
        tensors: What a state holds besides moments, to be changed in place; weights at least.
        notes: JSON values that a state holds.
    """

    save_every = 1  # epochs, from one state on disk to the next

    def __init__(self, body: Any, recipe: Any) -> None:
        self.recipe, self.accelerator = recipe, Accelerator()
        self.body, self.weights = body.to(self.accelerator.device), trained_weights(body)
        self.tensors = {f"weights/{name}": weight for name, weight in self.weights.items()}
        self.notes: dict[str, Any] = {}

    def begin(self, epoch: int) -> list[np.ndarray]:
        """Return the batches of an epoch."""
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

    def own_rows(self, batch: np.ndarray) -> tuple[np.ndarray, float]:
        """Return this process's rows of a batch, and the weight of a loss summed over them.

        Processes average their gradients, so that the weights add up to the mean over the batch.
        Every process takes part in every step; one without rows takes a row that does not count.
        """
        rank, world = self.accelerator.process_index, self.accelerator.num_processes
        mine = batch[rank::world]
        return (mine, world / len(batch)) if len(mine) else (batch[:1], 0.0)


def trained_weights(body: Any) -> dict[str, Any]:
    """Return the weights that require gradients, by name."""
    return {name: weight for name, weight in body.named_parameters() if weight.requires_grad}


def fit(task: Task, state: Path | None = None) -> None:
    """Train in place, with AdamW; save the state to a file, and resume from it."""
    recipe, accelerator = task.recipe, task.accelerator
    settings = {"lr": recipe.learning_rate, "weight_decay": recipe.weight_decay, "fused": True}
    optimizer: Any = torch.optim.AdamW(task.weights.values(), **settings)
    found = load_state(state) if state else None
    first = _resume(task, optimizer, *found) if found else 0
    model, optimizer = accelerator.prepare(task.body, optimizer)
    for epoch in range(first, recipe.epochs):
        run_epoch(task, model, optimizer, epoch)
        if state and accelerator.is_main_process and (epoch + 1) % task.save_every == 0:
            tensors = dict(task.tensors)
            for number, moments in optimizer.state_dict()["state"].items():
                tensors |= {f"moments/{number}/{name}": value for name, value in moments.items()}
            save_state(state, tensors, {"notes": task.notes, "epochs": epoch + 1})
        accelerator.wait_for_everyone()


def run_epoch(task: Task, model: Any, optimizer: Any, epoch: int) -> None:
    """Train one epoch."""
    batches = task.begin(epoch)
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


def apply_to_rows(function: Any, texts: Texts, rows: np.ndarray, width: int, budget: int) -> Tensor:
    """Return the (n, width) results of a function of batches and masks; processes share them."""
    accelerator = Accelerator()
    device = accelerator.device
    found = torch.zeros(len(rows), width, device=device)
    batches = token_batches(np.arange(len(rows)), texts.lengths[rows], budget)
    with torch.inference_mode():
        for batch in batches[accelerator.process_index :: accelerator.num_processes]:
            inputs, mask = make_batch(texts, rows[batch])
            found[batch] = function(inputs.to(device), mask.to(device))
    return accelerator.reduce(found, "sum")  # type: ignore[no-any-return]


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


def _resume(task: Task, optimizer: Any, tensors: Tensors, facts: dict[str, Any]) -> int:
    """Load a state into what is trained; return how many epochs it has behind it."""
    with torch.no_grad():
        for name, tensor in task.tensors.items():
            tensor.copy_(tensors[name])
    task.notes.update(facts["notes"])
    moments: dict[int, Tensors] = {}
    for place in (name for name in tensors if name.startswith("moments/")):
        _, number, name = place.split("/")
        moments.setdefault(int(number), {})[name] = tensors[place]
    optimizer.load_state_dict({**optimizer.state_dict(), "state": moments})
    return int(facts["epochs"])


def works_alone() -> bool:
    """Tell whether this process, on a CPU, works without others that train with it."""
    accelerator = Accelerator()
    return bool(accelerator.num_processes == 1 and accelerator.device.type == "cpu")


def train_all(train: Any, jobs: Sequence[Any], name: str, costs: list[int] | None = None) -> None:
    """Train what each job, a tuple of arguments, is about; name and costs tell of the progress.

    On a CPU jobs run side by side, each in a process with one thread; several processes of
    `accelerate launch` do every job together.
    """
    with one_thread(Accelerator().device):
        if works_alone():
            list(run_in_processes(train, jobs, name, costs))
        else:
            for job in track(jobs, name, costs):
                train(*job)


def obtain(
    store: Store, kind: str, key: Mapping[str, Any], fill: Callable[[Path, Path], None]
) -> Path:
    """Return a stored folder; all processes fill it together if need be, the main one keeps it.

    To fill is to train, given a file for the state of training, and to write into a folder.
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
