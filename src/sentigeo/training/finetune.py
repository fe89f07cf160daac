"""Fine-tuning a classifier: its classification head, top layers on a trunk, or all layers."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoModelForSequenceClassification

from sentigeo.encoder.bert_layers import attend_from_cls, encoder_layers, make_batch, run_layer
from sentigeo.encoder.encoder import load_with_head
from sentigeo.encoder.tokens import token_batches
from sentigeo.training.loop import Task, Texts, apply_to_rows, fit

EVALUATION_TOKENS = 2048  # as in extraction: activations stay near the processor


def load_classifier(
    source: str, revision: str | None, classes: list[str], seed: int = 0, layers: int | None = None
) -> nn.Module:
    """Load the lowest layers of an encoder with a new classification head, drawn with a seed."""
    names = dict(enumerate(classes))
    settings: dict[str, Any] = {"id2label": names, "label2id": {v: k for k, v in names.items()}}
    settings |= {"num_hidden_layers": layers} if layers else {}
    kind = AutoModelForSequenceClassification
    model, _ = load_with_head(kind, source, revision, seed, **settings)
    return model


class TopClassifier(nn.Module):
    """The top of a BERT-like classifier, the last layer for [CLS] only; training it trains both.

    It is fed with a trunk's hidden states, or with token ids if it has all layers. No layers leave
    the classification head (pooler and classifier).
    """

    def __init__(self, model: Any, layers: int) -> None:
        super().__init__()
        stack: Any = encoder_layers(model)
        self.layers = nn.ModuleList(stack[len(stack) - layers :])
        self.pooler = getattr(model.base_model, "pooler", None)
        self.dropout = nn.Dropout(model.config.hidden_dropout_prob)
        self.classifier = model.classifier
        self.classes: int = model.config.num_labels
        if layers:  # a key's bias moves all scores of a query alike, so it has no gradient
            stack[-1].attention.self.key.bias.requires_grad_(False)
        if layers == len(stack):
            self.embeddings = model.base_model.embeddings

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """Return the (b, classes) logits of (b, w, d) states or (b, w) ids with a (b, w) mask."""
        hidden = self.embeddings(inputs) if inputs.ndim == 2 else inputs
        for layer in self.layers[:-1]:
            hidden = run_layer(layer, hidden, mask)
        cls = attend_from_cls(self.layers[-1], hidden, mask) if self.layers else hidden[:, 0]
        states = cls[:, None] if self.pooler is None else self.dropout(self.pooler(cls[:, None]))
        return self.classifier(states)  # type: ignore[no-any-return]


class WholeClassifier(nn.Module):
    """A whole classifier of any architecture, fed with token ids; lower layers are frozen."""

    def __init__(self, model: Any, layers: int) -> None:
        super().__init__()
        self.model = model
        self.classes: int = model.config.num_labels
        stack, pooler = encoder_layers(model), getattr(model.base_model, "pooler", None)
        self.frozen: list[nn.Module] = []
        if below := len(stack) - layers:
            model.base_model.requires_grad_(False)
            for module in filter(None, [*stack[below:], pooler]):
                module.requires_grad_(True)
            others = [m for m in model.base_model.children() if stack not in m.modules()]
            self.frozen = [*stack[:below], *others]

    def train(self, mode: bool = True) -> "WholeClassifier":
        """Set the mode of the trained part; what is frozen stays in evaluation mode."""
        super().train(mode)
        for module in self.frozen:
            module.eval()
        return self

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the (b, classes) logits of (b, w) token ids with a (b, w) mask."""
        return self.model(ids, attention_mask=mask.long()).logits  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Recipe:
    """How a classifier is trained."""

    epochs: int
    learning_rate: float  # the highest, after a linear warm-up and before a linear decay
    batch_size: int  # texts of a step
    seed: int  # draws order, dropout, extra texts and the new classification head
    weight_decay: float = 0.01
    warmup: float = 0.1  # share of the steps
    clip: float = 1.0  # largest norm of a gradient
    averaging: float = 0.98  # how slowly the average of the weights forgets; that is the result


@dataclass(frozen=True)
class TrainingSet:
    """What to train on: rows of a corpus that was tokenised or run through a trunk.

    Each extra row joins one batch of reviews, so that batches and their order are the same whatever
    is added.
    """

    texts: Texts  # tokens for a whole model, a trunk for its top
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
        self.notes, self.steps = vars(self.history), torch.tensor(0)
        self.average = {name: weight.detach().clone() for name, weight in self.weights.items()}
        self.tensors |= {f"average/{name}": value for name, value in self.average.items()}
        self.tensors["steps"] = self.steps
        self.total, self.texts = 0.0, 0

    def begin(self, epoch: int) -> list[np.ndarray]:
        """Return the batches of an epoch."""
        self.body.train()
        batches = self.data.batches(self.recipe, epoch)
        self.total, self.texts = 0.0, sum(len(batch) for batch in batches)
        return batches

    def rate(self, epoch: int, step: int, steps: int) -> float:
        """Return the learning rate of a step, which rises and then falls."""
        progress, warmup = (epoch + step / steps) / self.recipe.epochs, self.recipe.warmup
        return self.recipe.learning_rate * min(progress / warmup, (1.0 - progress) / (1.0 - warmup))

    def loss(self, model: Any, batch: np.ndarray, epoch: int, step: int) -> Tensor:
        """Return the loss of this process's part of a batch."""
        rank, device = self.accelerator.process_index, self.accelerator.device
        rng = np.random.default_rng([self.recipe.seed, epoch, 2, step, rank])
        torch.manual_seed(int(rng.integers(2**62)))
        mine, weight = self.own_rows(batch)
        inputs, mask = make_batch(self.data.texts, mine)
        labels = torch.from_numpy(self.data.labels[mine]).to(device)
        logits = model(inputs.to(device), mask.to(device))
        loss: Tensor = weight * functional.cross_entropy(logits, labels, reduction="sum")
        self.total += loss.item() * len(batch) / self.accelerator.num_processes
        return loss

    @torch.no_grad()
    def after_step(self) -> None:
        """Take the weights into their average, which is steadier; it forgets first steps faster."""
        self.steps += 1
        steps = int(self.steps)
        decay = min(self.recipe.averaging, (1 + steps) / (10 + steps))
        for name, value in self.average.items():
            value.lerp_(self.weights[name], 1 - decay)

    @torch.no_grad()
    def swap(self) -> None:
        """Exchange weights and average."""
        for name, value in self.average.items():
            kept = self.weights[name].clone()
            self.weights[name].copy_(value)
            value.copy_(kept)

    def end(self, epoch: int) -> None:
        """Note the training loss, and validate the averaged weights."""
        total = torch.tensor(self.total, device=self.accelerator.device)
        self.history.train_loss.append(float(self.accelerator.reduce(total, "sum")) / self.texts)
        if len(rows := self.data.validation):
            self.swap()
            scores = torch.from_numpy(predict(self.body, self.data.texts, rows))
            self.swap()
            truth = torch.from_numpy(self.data.labels[rows])
            self.history.val_loss.append(float(functional.cross_entropy(scores, truth)))
            self.history.val_accuracy.append(float((scores.argmax(1) == truth).float().mean()))


def train_classifier(body: Any, data: TrainingSet, recipe: Recipe, state: Path) -> History:
    """Train a body, which maps a batch and its mask to logits; its averaged weights stay."""
    task = ClassifierTask(body, data, recipe)
    fit(task, state)
    task.swap()
    return task.history


def predict(body: Any, texts: Texts, rows: np.ndarray) -> np.ndarray:
    """Return the (n, classes) logits of some rows; processes share the work."""
    logits = apply_to_rows(body.eval(), texts, rows, body.classes, EVALUATION_TOKENS)
    return np.asarray(logits.cpu().numpy())
