"""Fine-tuning a classifier: its head only, top layers on a cached trunk, or all layers."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor
from torch.nn import functional

from sentigeo.encoder.tokens import TokenIds, token_batches
from sentigeo.encoder.trunk import Trunk, make_batch
from sentigeo.training.loop import Task, Tensors, fit

EVALUATION_TOKENS = 2048  # as in extraction: activations stay near the processor


@dataclass(frozen=True)
class Recipe:
    """How a classifier is trained.

    The states of a cached trunk know their context, so in training a share of a text's tokens,
    drawn anew each time, stands for the text, at a share of the cost; evaluation sees all tokens.
    """

    epochs: int
    learning_rate: float  # the highest, after a linear warm-up and before a linear decay
    batch_size: int  # texts of a step
    token_share: float
    seed: int  # draws order, dropout, tokens and the new classification head
    weight_decay: float = 0.01
    warmup: float = 0.1  # share of the steps
    clip: float = 1.0  # largest norm of a gradient
    averaging: float = 0.98  # how slowly the average of the weights forgets; that is the result

    def rate(self, progress: float) -> float:
        """Return the learning rate after a share of all steps."""
        rising, falling = progress / self.warmup, (1.0 - progress) / (1.0 - self.warmup)
        return self.learning_rate * min(rising, falling)


@dataclass(frozen=True)
class TrainingSet:
    """What to train on: rows of a corpus that was tokenised or run through a trunk.

    Each extra row, a handcrafted sample, joins one batch of reviews, so that batches, their order
    and their dropout are the same for every dose.
    """

    texts: TokenIds | Trunk  # tokens for a whole model, a trunk for its top
    labels: np.ndarray  # (n,) class of every row of the corpus
    rows: np.ndarray
    extra: np.ndarray
    validation: np.ndarray  # rows to validate on after each epoch; may be none

    def batches(self, recipe: Recipe, epoch: int) -> list[np.ndarray]:
        """Return an epoch's batches; each extra row is added to the end of one of them."""
        rng = np.random.default_rng([recipe.seed, epoch])
        budget = recipe.batch_size * int(self.texts.lengths.max())
        batches = token_batches(self.rows, self.texts.lengths, budget, recipe.batch_size, rng)
        rng = np.random.default_rng([recipe.seed, epoch, 1])
        hosts = rng.integers(len(batches), size=len(self.extra))  # larger doses keep the smaller's
        for host, row in zip(hosts, self.extra, strict=True):
            batches[host] = np.append(batches[host], row)
        return batches


@dataclass
class History:
    """Losses and accuracies after each epoch; validation is that of the averaged weights."""

    train_loss: list[float]
    val_loss: list[float]
    val_accuracy: list[float]


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


class ClassifierTask(Task):
    """Training a classifier's body, which maps a batch and its mask to logits."""

    recipe: Recipe

    def __init__(self, body: Any, data: TrainingSet, recipe: Recipe) -> None:
        super().__init__(body, recipe)
        self.data, self.history = data, History([], [], [])
        self.average = MovingAverage(dict[str, Tensor](self.weights), recipe.averaging)
        self.logits: np.ndarray | None = None
        self.total, self.texts = 0.0, 0

    def begin(self, epoch: int) -> list[np.ndarray] | None:
        """Return the batches of an epoch."""
        if epoch == self.recipe.epochs:
            return None
        self.body.train()
        batches = self.data.batches(self.recipe, epoch)
        self.total, self.texts = 0.0, sum(len(batch) for batch in batches)
        return batches

    def rate(self, epoch: int, step: int, steps: int) -> float:
        """Return the learning rate of a step."""
        return self.recipe.rate((epoch + step / steps) / self.recipe.epochs)

    def loss(self, model: Any, batch: np.ndarray, epoch: int, step: int) -> Tensor:
        """Return the loss of this process's part of a batch."""
        rank, device = self.accelerator.process_index, self.accelerator.device
        rng = np.random.default_rng([self.recipe.seed, epoch, 2, step, rank])
        torch.manual_seed(int(rng.integers(2**62)))
        mine, weight = self.own_rows(batch)
        inputs, mask = make_batch(self.data.texts, mine, self.recipe.token_share, rng)
        labels = torch.from_numpy(self.data.labels[mine]).to(device)
        logits = model(inputs.to(device), mask.to(device))
        loss: Tensor = weight * functional.cross_entropy(logits, labels, reduction="sum")
        self.total += loss.item() * len(batch) / self.accelerator.num_processes
        return loss

    def after_step(self) -> None:
        """Average the weights."""
        self.average.update()

    def end(self, epoch: int) -> None:
        """Note the training loss, and validate the averaged weights."""
        total = torch.tensor(self.total, device=self.accelerator.device)
        self.history.train_loss.append(float(self.accelerator.reduce(total, "sum")) / self.texts)
        if len(self.data.validation):
            self.average.swap()
            self.logits = predict(self.body, self.data.texts, self.data.validation)
            self.average.swap()
            scores = torch.from_numpy(self.logits)
            truth = torch.from_numpy(self.data.labels[self.data.validation])
            self.history.val_loss.append(float(functional.cross_entropy(scores, truth)))
            self.history.val_accuracy.append(float((scores.argmax(1) == truth).float().mean()))

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """Return average and history."""
        tensors = {f"average/{name}": value for name, value in self.average.values.items()}
        return tensors, {"history": vars(self.history), "steps": self.average.steps}

    def restore(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        """Take back average and history."""
        self.history, self.average.steps = History(**facts["history"]), facts["steps"]
        for name, value in self.average.values.items():
            value.copy_(tensors[f"average/{name}"])


def train_classifier(
    body: Any,
    data: TrainingSet,
    recipe: Recipe,
    state: Path,
    on_epoch: Callable[[int], None] = lambda epoch: None,
) -> tuple[History, np.ndarray]:
    """Train a body, which maps a batch and its mask to logits; its averaged weights stay.

    Returns the history, and the (v, classes) logits of the rows to validate on in the end. The
    state of training is saved after every epoch.
    """
    task = ClassifierTask(body, data, recipe)
    fit(task, state, on_epoch)
    task.average.swap()
    if task.logits is None:  # nothing to validate on, or the state was that of the end
        task.logits = predict(body, data.texts, data.validation)
    return task.history, task.logits


def predict(body: Any, texts: TokenIds | Trunk, rows: np.ndarray) -> np.ndarray:
    """Return the (n, classes) logits of some rows, every token seen; processes share the work."""
    accelerator = Accelerator()
    body.to(accelerator.device).eval()
    place = {row: position for position, row in enumerate(rows)}
    batches = token_batches(rows, texts.lengths, EVALUATION_TOKENS)
    logits = torch.zeros(len(rows), body.classes, device=accelerator.device)
    with torch.inference_mode():
        for batch in batches[accelerator.process_index :: accelerator.num_processes]:
            inputs, mask = make_batch(texts, batch)
            found = body(inputs.to(accelerator.device), mask.to(accelerator.device))
            logits[[place[row] for row in batch]] = found
    return np.asarray(accelerator.reduce(logits, "sum").cpu().numpy())
