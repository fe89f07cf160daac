"""Training an encoder and its clusters together, and what training looked like."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from sklearn.metrics import silhouette_score
from torch import Tensor
from torch.nn import functional

from sentigeo.encoder.tokens import TokenIds, token_batches
from sentigeo.encoder.trunk import Trunk, make_batch
from sentigeo.training.deep_encoder import DeepEncoder, MaskedTexts, divergence_loss, sharpen
from sentigeo.training.loop import Task, Tensors, fit

EVALUATION_TOKENS = 6144
SILHOUETTES = 2000  # texts behind a mean silhouette, which compares each with all others
SAVE_EVERY = 5  # epochs, which are short


@dataclass(frozen=True)
class DeepRecipe:
    """How encoder and clusters are trained together."""

    epochs: int
    learning_rate: float  # the highest, after a linear warm-up; it does not fall again
    batch_size: int  # texts of a step
    clustering: float  # weight of the clustering loss
    masked: float  # weight of the masked-language loss
    balance: bool = True  # whether targets are divided by the size of clusters
    masked_share: float = 1.0  # of a step's texts whose tokens are guessed, as guessing is costly
    seed: int = 0  # draws the order
    weight_decay: float = 0.01
    warmup: float = 1.0  # epochs
    clip: float = 1.0  # largest norm of a gradient

    @property
    def parts(self) -> set[str]:
        """What of an encoder has a loss to follow."""
        losses = {"centroids": self.clustering, "head": self.masked}
        return {"layers"} | {part for part, weight in losses.items() if weight > 0}


@dataclass
class Course:
    """What training looked like before it and after each epoch: (epochs + 1) values of each.

    A silhouette is NaN if all texts are in one cluster, or each in its own; a loss is NaN before
    training and where it has no weight.
    """

    members: list[list[int]] = field(default_factory=list)  # the cluster of each of n texts
    surety: list[float] = field(default_factory=list)  # mean share of texts in their cluster
    silhouette: list[float] = field(default_factory=list)  # mean over texts
    clustering: list[float] = field(default_factory=list)  # mean loss of the epoch
    masked: list[float] = field(default_factory=list)  # mean loss of the epoch


class MaskedTask(Task):
    """Training on whatever losses a recipe weighs; by itself, the MLM head alone.

    Dropout is off: shares are compared with targets, which are computed without it. Epochs take
    turns with copies of the texts that have hidden tokens; only the masked-language loss needs any.
    """

    recipe: DeepRecipe

    def __init__(
        self, body: Any, texts: TokenIds | Trunk, copies: Sequence[MaskedTexts], recipe: DeepRecipe
    ) -> None:
        super().__init__(body, recipe)
        self.texts, self.copies = texts, copies
        self.targets: Tensor | None = None  # (n, k) shares to come nearer to
        self.losses: dict[str, float] = {}  # means over the steps of the epoch
        self.rng, self.steps = np.random.default_rng(), 0

    def begin(self, epoch: int) -> list[np.ndarray] | None:
        """Return the batches of an epoch."""
        if epoch == self.recipe.epochs:
            return None
        self.rng, self.losses = np.random.default_rng([self.recipe.seed, epoch]), {}
        lengths, most = self.texts.lengths, self.recipe.batch_size
        budget = most * int(lengths.max())
        batches = token_batches(np.arange(len(lengths)), lengths, budget, most, self.rng)
        self.steps = len(batches)
        return batches

    def rate(self, epoch: int, step: int, steps: int) -> float:
        """Return the learning rate of a step; it rises with every one of them at first."""
        epochs = epoch + (step + 1) / steps
        return self.recipe.learning_rate * min(1.0, epochs / self.recipe.warmup)

    def loss(self, model: Any, batch: np.ndarray, epoch: int, step: int) -> Tensor:
        """Return the weighted sum of this process's part of the losses."""
        asked = math.ceil(self.recipe.masked_share * len(batch))
        guessed = self.rng.permutation(batch)[:asked]
        copy = self.copies[epoch % len(self.copies)] if self.recipe.masked else None
        losses = self._losses(model, copy, batch, guessed)
        for name, loss in losses.items():
            mean = float(self.accelerator.reduce(loss.detach(), "mean"))
            self.losses[name] = self.losses.get(name, 0.0) + mean / self.steps
        total: Tensor = sum(getattr(self.recipe, name) * loss for name, loss in losses.items())
        return total

    def _losses(
        self, model: Any, copy: MaskedTexts | None, batch: np.ndarray, guessed: np.ndarray
    ) -> Tensors:
        texts, masked, device = None, None, self.accelerator.device
        if self.targets is not None:
            mine, weight = self.own_rows(batch)
            texts = [part.to(device) for part in make_batch(self.texts, mine)]
        if copy is not None:
            asked, share = self.own_rows(guessed)
            inputs, mask = make_batch(copy.source, asked)
            chosen, answers = copy.ask(asked, mask.shape[1])
            masked = [part.to(device) for part in (inputs, mask, chosen)]
        shares, scores = model(texts, masked)
        losses = {}
        if self.targets is not None:
            losses["clustering"] = weight * len(mine) * divergence_loss(self.targets[mine], shares)
        if copy is not None:
            missed = functional.cross_entropy(scores, answers.to(device), reduction="sum")
            losses["masked"] = share * len(guessed) / max(1, copy.count(guessed)) * missed
        return losses


class ClusterTask(MaskedTask):
    """Training encoder and clusters; targets are computed anew before each epoch."""

    save_every = SAVE_EVERY

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.course = Course()

    def begin(self, epoch: int) -> list[np.ndarray] | None:
        """Return the batches of an epoch."""
        shares, recipe = self._refresh(), self.recipe
        self.targets = sharpen(shares, recipe.balance) if recipe.clustering else None
        return super().begin(epoch)

    def _refresh(self) -> Tensor:
        """Return the (n, k) shares of all texts in the clusters, and note how things stand."""
        vectors, course = embed_all(self.body, self.texts), self.course
        with torch.inference_mode():
            shares: Tensor = self.body.assign(vectors)
        surest, members = shares.max(dim=1)
        several = 2 <= len(members.unique()) < len(members)
        some = {"sample_size": min(SILHOUETTES, len(members)), "random_state": 0}
        spread = silhouette_score(vectors.cpu(), members.cpu(), **some) if several else float("nan")
        course.members.append(members.tolist())
        course.surety.append(float(surest.mean()))
        course.silhouette.append(float(spread))
        course.clustering.append(self.losses.get("clustering", float("nan")))
        course.masked.append(self.losses.get("masked", float("nan")))
        return shares

    def state(self) -> tuple[Tensors, dict[str, Any]]:
        """Return the course and the last losses."""
        return {}, {"course": vars(self.course), "losses": self.losses}

    def restore(self, tensors: Tensors, facts: dict[str, Any]) -> None:
        """Take back the course and the last losses."""
        self.course, self.losses = Course(**facts["course"]), facts["losses"]


def train_clusters(
    body: DeepEncoder,
    texts: TokenIds | Trunk,
    copies: Sequence[MaskedTexts],
    recipe: DeepRecipe,
    state: Path,
    on_epoch: Callable[[int], None] = lambda epoch: None,
) -> Course:
    """Train encoder and clusters in place; arguments as for `MaskedTask` and `fit`."""
    body.train_parts(recipe.parts)
    task = ClusterTask(body, texts, copies, recipe)
    fit(task, state, on_epoch)
    return task.course


def warm_head(body: DeepEncoder, copies: Sequence[MaskedTexts], recipe: DeepRecipe) -> list[float]:
    """Train a new MLM head alone, lest it teach the layers noise; return each epoch's mean loss."""
    body.train_parts({"head"})
    losses: list[float] = []
    task = MaskedTask(body, copies[0].source, copies, recipe)
    fit(task, on_epoch=lambda epoch: losses.append(task.losses["masked"]))
    return losses


def embed_all(body: DeepEncoder, texts: TokenIds | Trunk) -> Tensor:
    """Return the (n, d) vectors of all texts; processes share the work."""
    accelerator = Accelerator()
    device = accelerator.device
    body.to(device)
    rows = np.arange(len(texts.lengths))
    found = torch.zeros(len(rows), body.centroids.shape[1], device=device)
    batches = token_batches(rows, texts.lengths, EVALUATION_TOKENS)
    with torch.inference_mode():
        for batch in batches[accelerator.process_index :: accelerator.num_processes]:
            inputs, mask = make_batch(texts, batch)
            found[batch] = body.embed(inputs.to(device), mask.to(device))
    return accelerator.reduce(found, "sum")  # type: ignore[no-any-return]
