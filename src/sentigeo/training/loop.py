"""Training a classifier: head only, top layers on a cached trunk, or all layers."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from torch import nn
from torch.nn import functional

from sentigeo.encoder.tokens import TokenIds, token_batches
from sentigeo.encoder.trunk import Trunk, make_batch
from sentigeo.training.state import (
    History,
    MovingAverage,
    load_state,
    optimizer_tensors,
    own_rows,
    restore_optimizer,
    save_state,
    seed_step,
    take_step,
)

EVALUATION_TOKENS = 2048  # as in extraction: activations stay near the processor


@dataclass(frozen=True)
class Recipe:
    """How a classifier is trained.

    Attributes:
        epochs: Times every training text is seen.
        learning_rate: Highest rate of a linear warm-up and decay.
        batch_size: Texts of a step.
        token_share: Share of a text's tokens, drawn anew each time, that the layers above a cached
            trunk see in training; evaluation always sees all. The states of the trunk know their
            context, so a part of them stands for the text, at a part of the cost.
        seed: Draws order, dropout, tokens and the new head.
        weight_decay: AdamW's.
        warmup: Share of the steps in which the rate rises.
        clip: Largest norm of a gradient.
        averaging: How slowly the moving average of the weights forgets; the average is the result.
    """

    epochs: int
    learning_rate: float
    batch_size: int
    token_share: float
    seed: int
    weight_decay: float = 0.01
    warmup: float = 0.1
    clip: float = 1.0
    averaging: float = 0.98


@dataclass(frozen=True)
class TrainingSet:
    """What to train on: rows of a corpus that was tokenized or run through a trunk.

    Attributes:
        source: Token ids for a whole model, a trunk for its top.
        labels: (n,) class of every row of the corpus.
        rows: Rows of the reviews.
        extra: Rows of handcrafted samples; each joins one batch of reviews, so that batches, their
            order and their dropout are the same for every dose.
    """

    source: TokenIds | Trunk
    labels: np.ndarray
    rows: np.ndarray
    extra: np.ndarray


def train(
    body: nn.Module,
    data: TrainingSet,
    validation: np.ndarray,
    recipe: Recipe,
    state: Path,
    on_epoch: Callable[[int, History], None] = lambda epoch, history: None,
) -> tuple[History, np.ndarray]:
    """Train a classifier's body in place.

    After every epoch the state is written to disk, whole or not at all. A run that was killed goes
    on from the last of them and ends with the same weights, because all that is random follows
    from the seed, the epoch and the step.

    Args:
        body: Maps a batch and its mask to logits.
        data: Texts and labels.
        validation: Rows to validate on after each epoch; may be empty.
        recipe: How to train.
        state: Folder of the state; removed by `forget_state` when the result is safe.
        on_epoch: Called after each epoch.

    Returns:
        The history, and the (v, classes) logits of the rows to validate on in the end.
    """
    accelerator = Accelerator()
    body.to(accelerator.device)
    weights = [weight for weight in body.parameters() if weight.requires_grad]
    average = MovingAverage(weights, recipe.averaging)
    optimizer = torch.optim.AdamW(
        weights, lr=recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True
    )
    history = _resume(body, optimizer, average, state)
    model, optimizer = accelerator.prepare(body, optimizer)
    logits: np.ndarray | None = None
    for epoch in range(len(history.train_loss), recipe.epochs):
        loss = train_epoch(model, optimizer, data, recipe, epoch, accelerator, average.update)
        history.train_loss.append(loss)
        if len(validation):
            average.swap()
            logits = predict(body, data.source, validation, accelerator)
            _note_validation(logits, data.labels[validation], history)
            average.swap()
        if accelerator.is_main_process:
            _save_epoch(body, optimizer, average, history, state)
        accelerator.wait_for_everyone()
        on_epoch(epoch, history)
    average.swap()
    if logits is None:  # nothing to validate on, or the state was that of the end
        logits = predict(body, data.source, validation, accelerator)
    return history, logits


def train_epoch(
    model: nn.Module,
    optimizer: Any,
    data: TrainingSet,
    recipe: Recipe,
    epoch: int,
    accelerator: Accelerator,
    after_step: Callable[[], None] = lambda: None,
) -> float:
    """Train one epoch; return the mean loss of a text. Processes share the texts of each batch."""
    model.train()
    batches = _batches(data, recipe, epoch)
    world, device = accelerator.num_processes, accelerator.device
    total = 0.0
    for step, batch in enumerate(batches):
        rng = seed_step(recipe.seed, epoch, step, accelerator)
        _set_rate(optimizer, recipe, (epoch + step / len(batches)) / recipe.epochs)
        mine, weight = own_rows(batch, accelerator)
        inputs, mask = make_batch(data.source, mine, recipe.token_share, rng)
        labels = torch.from_numpy(data.labels[mine]).to(device)
        loss = weight * functional.cross_entropy(
            model(inputs.to(device), mask.to(device)), labels, reduction="sum"
        )
        take_step(loss, model, optimizer, accelerator, recipe.clip, epoch)
        after_step()
        total += loss.item() * len(batch) / world
    texts = sum(len(batch) for batch in batches)
    return float(accelerator.reduce(torch.tensor(total, device=device), "sum")) / texts


def predict(
    body: Any,
    source: TokenIds | Trunk,
    rows: np.ndarray,
    accelerator: Accelerator | None = None,
) -> np.ndarray:
    """Return the (n, classes) logits of some rows, every token seen; processes share the work."""
    accelerator = accelerator or Accelerator()
    body.to(accelerator.device).eval()
    place = {row: position for position, row in enumerate(rows)}
    batches = token_batches(rows, source.lengths, EVALUATION_TOKENS)
    logits = torch.zeros(len(rows), body.classes, device=accelerator.device)
    with torch.inference_mode():
        for batch in batches[accelerator.process_index :: accelerator.num_processes]:
            inputs, mask = make_batch(source, batch)
            found = body(inputs.to(accelerator.device), mask.to(accelerator.device))
            logits[[place[row] for row in batch]] = found
    return np.asarray(accelerator.reduce(logits, "sum").cpu().numpy())


def _resume(body: nn.Module, optimizer: Any, average: MovingAverage, state: Path) -> History:
    """Load the newest whole state into what is trained; return its history."""
    found = load_state(state)
    if found is None:
        return History([], [], [])
    tensors, facts = found
    body.load_state_dict(tensors["weights"])
    restore_optimizer(optimizer, tensors["moments"])
    average.steps = facts["steps"]
    for name, value in tensors["average"].items():
        average.values[int(name)].copy_(value)
    return History(**facts["history"])


def _save_epoch(
    body: nn.Module, optimizer: Any, average: MovingAverage, history: History, state: Path
) -> None:
    """Write down all that training goes on from after an epoch."""
    tensors = {
        "weights": body.state_dict(),
        "moments": optimizer_tensors(optimizer),
        "average": average.tensors(),
    }
    facts = {"history": vars(history), "steps": average.steps}
    save_state(state, len(history.train_loss), tensors, facts)


def _batches(data: TrainingSet, recipe: Recipe, epoch: int) -> list[np.ndarray]:
    """Return an epoch's batches; each extra row is added to the end of one of them."""
    rng = np.random.default_rng([recipe.seed, epoch])
    budget = recipe.batch_size * int(data.source.lengths.max())
    batches = token_batches(data.rows, data.source.lengths, budget, recipe.batch_size, rng)
    rng = np.random.default_rng([recipe.seed, epoch, 1])
    hosts = rng.integers(len(batches), size=len(data.extra))  # a larger dose keeps the smaller's
    for host, row in zip(hosts, data.extra, strict=True):
        batches[host] = np.append(batches[host], row)
    return batches


def _set_rate(optimizer: Any, recipe: Recipe, progress: float) -> None:
    """Set the learning rate for a share of the steps done."""
    rising = progress / recipe.warmup if recipe.warmup else 1.0
    falling = (1.0 - progress) / (1.0 - recipe.warmup)
    for group in optimizer.param_groups:
        group["lr"] = recipe.learning_rate * min(rising, falling)


def _note_validation(logits: np.ndarray, labels: np.ndarray, history: History) -> None:
    """Add an epoch's validation to the history."""
    scores, truth = torch.from_numpy(logits), torch.from_numpy(labels)
    history.val_loss.append(float(functional.cross_entropy(scores, truth)))
    history.val_accuracy.append(float((scores.argmax(1) == truth).float().mean()))
