"""Fine-tuning a classifier: its head only, top layers on a cached trunk, or all layers."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoModelForSequenceClassification

from sentigeo.encoder.bert_layers import (
    BERT_LIKE,
    attend_from_cls,
    encoder_layers,
    feed_forward,
    run_layer,
)
from sentigeo.encoder.encoder import load_with_head
from sentigeo.encoder.tokens import TokenIds, token_batches
from sentigeo.encoder.trunk import Trunk, make_batch
from sentigeo.errors import UserError
from sentigeo.training.loop import MovingAverage, Task, Tensors, fit

EVALUATION_TOKENS = 2048  # as in extraction: activations stay near the processor


def load_classifier(
    source: str, revision: str | None, classes: list[str], seed: int = 0
) -> nn.Module:
    """Load an encoder with a new classification head, drawn with a seed."""
    names = dict(enumerate(classes))
    labels = {"id2label": names, "label2id": {name: number for number, name in names.items()}}
    model, _ = load_with_head(AutoModelForSequenceClassification, source, revision, seed, **labels)
    return model


def trained_part(model: Any, layers: float) -> nn.Module:
    """Return what is trained of a classifier, in the quickest form that its architecture allows."""
    if model.config.model_type not in BERT_LIKE:
        return WholeClassifier(model, int(layers))
    if layers == model.config.num_hidden_layers:
        return FastWholeClassifier(model, int(layers))
    return TopClassifier(model, layers)


class TopClassifier(nn.Module):
    """The top of a BERT-like classifier, fed with a trunk's hidden states; training it trains both.

    No layers leave the classification head (pooler and classifier). A half stands for the
    feed-forward half of the lowest layer: it holds two thirds of a layer's weights and treats each
    token by itself, so training on some tokens takes nothing from the others' context.
    """

    def __init__(self, model: Any, layers: float) -> None:
        super().__init__()
        if model.config.model_type not in BERT_LIKE:
            raise UserError(f"A {model.config.model_type} model has no cached trunk.")
        stack: Any = encoder_layers(model)
        whole = math.floor(layers)
        self.layers = nn.ModuleList(stack[len(stack) - whole :])
        self.lowest_half = None
        if layers > whole:
            below = stack[len(stack) - whole - 1]
            halves = {"intermediate": below.intermediate, "output": below.output}
            self.lowest_half = nn.ModuleDict(halves)
        self.pooler = getattr(model.base_model, "pooler", None)
        self.dropout = nn.Dropout(model.config.hidden_dropout_prob)
        self.classifier = model.classifier
        self.classes: int = model.config.num_labels
        if whole:  # a key's bias moves all scores of a query alike, so it has no gradient
            last: Any = self.layers[-1]
            last.attention.self.key.bias.requires_grad_(False)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Return the (b, classes) logits of (b, w, d) hidden states with a (b, w) mask."""
        if self.lowest_half is not None:
            hidden = feed_forward(self.lowest_half, hidden)
        for layer in self.layers[:-1]:
            hidden = run_layer(layer, hidden, mask)
        cls = attend_from_cls(self.layers[-1], hidden, mask) if self.layers else hidden[:, 0]
        states = cls[:, None] if self.pooler is None else self.dropout(self.pooler(cls[:, None]))
        return self.classifier(states)  # type: ignore[no-any-return]


class WholeClassifier(nn.Module):
    """A whole classifier of any architecture, fed with token ids; its lower layers are frozen.

    Where all layers are trained, so are the embeddings.
    """

    def __init__(self, model: Any, layers: int) -> None:
        super().__init__()
        self.model = model
        self.classes: int = model.config.num_labels
        stack = encoder_layers(model)
        self.frozen: list[nn.Module] = []
        if layers < len(stack):
            kept = [*stack[len(stack) - layers :], getattr(model.base_model, "pooler", None)]
            model.base_model.requires_grad_(False)
            for module in filter(None, kept):
                module.requires_grad_(True)
            others = [m for m in model.base_model.children() if stack not in m.modules()]
            self.frozen = [*stack[: len(stack) - layers], *others]

    def train(self, mode: bool = True) -> "WholeClassifier":
        """Set the mode of the trained part; what is frozen stays in evaluation mode."""
        super().train(mode)
        for module in self.frozen:
            module.eval()
        return self

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the (b, classes) logits of (b, w) token ids with a (b, w) mask."""
        return self.model(ids, attention_mask=mask.long()).logits  # type: ignore[no-any-return]


class FastWholeClassifier(TopClassifier):
    """All layers of a BERT-like classifier, the last one for [CLS] only, fed with token ids."""

    def __init__(self, model: Any, layers: int) -> None:
        super().__init__(model, layers)
        self.embeddings = model.base_model.embeddings

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the (b, classes) logits of (b, w) token ids with a (b, w) mask."""
        return super().forward(self.embeddings(ids), mask)


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
