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
from sentigeo.training.loop import Task, Tensors, fit, own_rows

EVALUATION_TOKENS = 6144
SILHOUETTES = 2000  # texts behind a mean silhouette, which compares each with all others
SAVE_EVERY = 5  # epochs, which are short


@dataclass(frozen=True)
class DeepRecipe:
    """How encoder and clusters are trained together.

    Attributes:
        epochs: Times every text is seen; the targets are computed anew before each.
        learning_rate: Highest rate, after a linear warm-up; it does not fall again.
        batch_size: Texts of a step.
        clustering: Weight of the clustering loss.
        masked: Weight of the masked-language loss.
        balance: Whether targets are divided by the size of clusters.
        masked_share: Share of a step's texts whose hidden tokens are guessed: guessing costs far
            more than clustering, and a part of the texts stands for all.
        tolerance: Training stops, once the warm-up is over, when fewer texts than this share change
            their cluster in an epoch.
        seed: Draws the order.
        weight_decay: AdamW's.
        warmup: Epochs in which the rate rises.
        clip: Largest norm of a gradient.
    """

    epochs: int
    learning_rate: float
    batch_size: int
    clustering: float
    masked: float
    balance: bool = True
    masked_share: float = 1.0
    tolerance: float = 0.0
    seed: int = 0
    weight_decay: float = 0.01
    warmup: float = 1.0
    clip: float = 1.0

    @property
    def parts(self) -> set[str]:
        """What of an encoder has a loss to follow."""
        used = {"layers": True, "centroids": self.clustering > 0, "head": self.masked > 0}
        return {part for part, trained in used.items() if trained}


@dataclass
class Course:
    """What training looked like before it and after each epoch: (epochs + 1) values of each.

    Attributes:
        members: The cluster of each of n texts.
        surety: Mean share of a text in the cluster it belongs to.
        silhouette: Mean silhouette of the texts; NaN if all are in one cluster, or each in its own.
        clustering: Mean clustering loss of the epoch; NaN before training and without this loss.
        masked: Mean masked-language loss of the epoch; NaN likewise.
    """

    members: list[list[int]] = field(default_factory=list)
    surety: list[float] = field(default_factory=list)
    silhouette: list[float] = field(default_factory=list)
    clustering: list[float] = field(default_factory=list)
    masked: list[float] = field(default_factory=list)

    @property
    def changed(self) -> float:
        """Share of texts whose cluster is not what it was the time before."""
        if len(self.members) < 2:
            return 1.0
        return float(np.mean(np.array(self.members[-1]) != np.array(self.members[-2])))


class MaskedTask(Task):
    """Training on whatever losses a recipe weighs; by itself, the MLM head alone.

    Dropout is off: shares are compared with targets, which are computed without it.

    Attributes:
        texts: n texts, as token ids or as a trunk's hidden states.
        copies: The same texts with hidden tokens; epochs take turns. None are needed without the
            masked-language loss.
        targets: (n, k) shares in clusters to come nearer to, if there is a clustering loss.
        losses: Mean of each loss over the steps of the epoch.
    """

    recipe: DeepRecipe

    def __init__(
        self,
        body: DeepEncoder,
        texts: TokenIds | Trunk,
        copies: Sequence[MaskedTexts],
        recipe: DeepRecipe,
        accelerator: Accelerator,
    ) -> None:
        super().__init__(body, recipe, accelerator)
        self.texts, self.copies = texts, copies
        self.targets: Tensor | None = None
        self.losses: dict[str, float] = {}
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
        warmup, epochs = self.recipe.warmup, epoch + (step + 1) / steps
        return self.recipe.learning_rate * (min(1.0, epochs / warmup) if warmup else 1.0)

    def loss(self, model: Any, batch: np.ndarray, epoch: int, step: int) -> Tensor:
        """Return the weighted sum of this process's part of the losses."""
        asked = math.ceil(self.recipe.masked_share * len(batch))
        guessed = self.rng.permutation(batch)[:asked]
        copy = self.copies[epoch % len(self.copies)] if self.recipe.masked else None
        losses = self._losses(model, copy, batch, guessed)
        for name, loss in losses.items():
            mean = float(self.accelerator.reduce(loss.detach(), "mean"))
            self.losses[name] = self.losses.get(name, 0.0) + mean / self.steps
        return sum(  # type: ignore[return-value]
            getattr(self.recipe, name) * loss for name, loss in losses.items()
        )

    def _losses(
        self, model: Any, copy: MaskedTexts | None, batch: np.ndarray, guessed: np.ndarray
    ) -> Tensors:
        """Return this process's part of the losses."""
        texts = masked = None
        if self.targets is not None:
            mine, weight = own_rows(batch, self.accelerator)
            texts = self._place(*make_batch(self.texts, mine))
        if copy is not None:
            asked, share = own_rows(guessed, self.accelerator)
            inputs, mask = make_batch(copy.source, asked)
            chosen, answers = copy.ask(asked, mask.shape[1])
            masked = self._place(inputs, mask, chosen)
        shares, scores = model(texts, masked)
        losses = {}
        if self.targets is not None:
            losses["clustering"] = weight * len(mine) * divergence_loss(self.targets[mine], shares)
        if copy is not None:
            missed = functional.cross_entropy(scores, answers.to(scores.device), reduction="sum")
            losses["masked"] = share * len(guessed) / max(1, copy.count(guessed)) * missed
        return losses

    def _place(self, *tensors: Tensor) -> list[Tensor]:
        return [tensor.to(self.accelerator.device) for tensor in tensors]


class ClusterTask(MaskedTask):
    """Training encoder and clusters; targets are computed anew before each epoch."""

    save_every = SAVE_EVERY

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.course = Course()

    def begin(self, epoch: int) -> list[np.ndarray] | None:
        """Return the batches of an epoch; none if hardly any text changed its cluster."""
        shares, recipe = self._refresh(), self.recipe
        if epoch > recipe.warmup and self.course.changed < recipe.tolerance:
            return None
        self.targets = sharpen(shares, recipe.balance) if recipe.clustering else None
        return super().begin(epoch)

    def _refresh(self) -> Tensor:
        """Return the (n, k) shares of all texts in the clusters, and note how things stand."""
        vectors, course = embed_all(self.body, self.texts, self.accelerator), self.course
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
    task = ClusterTask(body, texts, copies, recipe, Accelerator())
    fit(task, state, on_epoch)
    return task.course


def warm_head(body: DeepEncoder, copies: Sequence[MaskedTexts], recipe: DeepRecipe) -> list[float]:
    """Train the MLM head alone, in place; return the mean loss of each epoch.

    A new head knows nothing: what it would tell the layers below at first is noise.
    """
    body.train_parts({"head"})
    losses: list[float] = []
    task = MaskedTask(body, copies[0].source, copies, recipe, Accelerator())
    fit(task, on_epoch=lambda epoch: losses.append(task.losses["masked"]))
    return losses


def embed_all(
    body: DeepEncoder, texts: TokenIds | Trunk, accelerator: Accelerator | None = None
) -> Tensor:
    """Return the (n, d) vectors of all texts; processes share the work."""
    accelerator = accelerator or Accelerator()
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
