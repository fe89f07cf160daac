"""How an encoder and its clusters are trained together, and what training looked like."""

import math
from collections.abc import Callable, Mapping, Sequence
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
from sentigeo.training.state import (
    load_state,
    optimizer_tensors,
    own_rows,
    restore_optimizer,
    save_state,
    take_step,
)

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
        surety: Mean share of a text in its own cluster.
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


@dataclass(frozen=True)
class Work:
    """What an epoch works on.

    Attributes:
        source: n texts, as token ids or as a trunk's hidden states.
        targets: (n, k) shares in clusters to come nearer to, if there is a clustering loss.
        copy: The texts with hidden tokens, if there is a masked-language loss.
    """

    source: TokenIds | Trunk
    targets: Tensor | None
    copy: MaskedTexts | None


def train_clusters(
    body: DeepEncoder,
    source: TokenIds | Trunk,
    copies: Sequence[MaskedTexts],
    recipe: DeepRecipe,
    state: Path,
    on_epoch: Callable[[int, Course], None] = lambda epoch, course: None,
) -> Course:
    """Train encoder and clusters in place; a run that was killed goes on where it was.

    Dropout is off: shares are compared with targets, which are computed without it.

    Args:
        body: What is trained.
        source: n texts, as token ids or as a trunk's hidden states.
        copies: The same texts with hidden tokens; epochs take turns. None are needed without the
            masked-language loss.
        recipe: How to train.
        state: Folder of the state; removed by `forget_state` when the result is safe.
        on_epoch: Called after each epoch.
    """
    accelerator = Accelerator()
    body.to(accelerator.device)
    weights = body.train_parts(recipe.parts)
    optimizer = torch.optim.AdamW(
        weights.values(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay, fused=True
    )
    course, losses = _resume(weights, optimizer, state)
    model, optimizer = accelerator.prepare(body, optimizer)
    for epoch in range(len(course.members), recipe.epochs + 1):
        shares = _refresh(body, source, course, losses, accelerator)
        settled = epoch > recipe.warmup and course.changed < recipe.tolerance
        if epoch == recipe.epochs or settled:
            break
        targets = sharpen(shares, recipe.balance) if recipe.clustering else None
        copy = copies[epoch % len(copies)] if recipe.masked else None
        work = Work(source, targets, copy)
        losses = _train_epoch(model, optimizer, work, recipe, epoch, accelerator)
        if accelerator.is_main_process and (epoch + 1) % SAVE_EVERY == 0:
            moments = optimizer_tensors(optimizer)
            tensors = {"weights": dict[str, Tensor](weights), "moments": moments}
            save_state(state, epoch + 1, tensors, {"course": vars(course), "losses": losses})
        accelerator.wait_for_everyone()
        on_epoch(epoch, course)
    return course


def embed_all(
    body: DeepEncoder, source: TokenIds | Trunk, accelerator: Accelerator | None = None
) -> Tensor:
    """Return the (n, d) vectors of all texts; processes share the work."""
    accelerator = accelerator or Accelerator()
    device = accelerator.device
    body.to(device)
    rows = np.arange(len(source.lengths))
    found = torch.zeros(len(rows), body.centroids.shape[1], device=device)
    batches = token_batches(rows, source.lengths, EVALUATION_TOKENS)
    with torch.inference_mode():
        for batch in batches[accelerator.process_index :: accelerator.num_processes]:
            inputs, mask = make_batch(source, batch)
            found[batch] = body.embed(inputs.to(device), mask.to(device))
    return accelerator.reduce(found, "sum")  # type: ignore[no-any-return]


def warm_head(body: DeepEncoder, copies: Sequence[MaskedTexts], recipe: DeepRecipe) -> list[float]:
    """Train the masked-language head alone, in place; return the mean loss of each epoch.

    A new head knows nothing: what it would tell the layers below at first is noise.
    """
    accelerator = Accelerator()
    weights = body.to(accelerator.device).train_parts({"head"})
    optimizer = torch.optim.AdamW(weights.values(), weight_decay=recipe.weight_decay, fused=True)
    model, optimizer = accelerator.prepare(body, optimizer)
    losses = []
    for epoch in range(recipe.epochs):
        copy = copies[epoch % len(copies)]
        work = Work(copy.source, None, copy)
        found = _train_epoch(model, optimizer, work, recipe, epoch, accelerator)
        losses.append(found["masked"])
    return losses


def _resume(
    weights: Mapping[str, Tensor], optimizer: Any, state: Path
) -> tuple[Course, dict[str, float]]:
    """Load the newest whole state into what is trained; return its course and last losses."""
    found = load_state(state)
    if found is None:
        return Course(), {}
    tensors, facts = found
    with torch.no_grad():
        for name, weight in weights.items():
            weight.copy_(tensors["weights"][name])
    restore_optimizer(optimizer, tensors["moments"])
    return Course(**facts["course"]), facts["losses"]


def _refresh(
    body: DeepEncoder,
    source: TokenIds | Trunk,
    course: Course,
    losses: dict[str, float],
    accelerator: Accelerator,
) -> Tensor:
    """Return the (n, k) shares of all texts in the clusters, and note how things stand."""
    vectors = embed_all(body, source, accelerator)
    with torch.inference_mode():
        shares = body.assign(vectors)
    surest, members = shares.max(dim=1)
    several = 2 <= len(members.unique()) < len(members)
    some = {"sample_size": min(SILHOUETTES, len(members)), "random_state": 0}
    spread = silhouette_score(vectors.cpu(), members.cpu(), **some) if several else float("nan")
    course.members.append(members.tolist())
    course.surety.append(float(surest.mean()))
    course.silhouette.append(float(spread))
    course.clustering.append(losses.get("clustering", float("nan")))
    course.masked.append(losses.get("masked", float("nan")))
    return shares


def _train_epoch(
    model: Any,
    optimizer: Any,
    work: Work,
    recipe: DeepRecipe,
    epoch: int,
    accelerator: Accelerator,
) -> dict[str, float]:
    """Train one epoch; return the mean of each loss over the steps."""
    rng = np.random.default_rng([recipe.seed, epoch])
    lengths = work.source.lengths
    budget = recipe.batch_size * int(lengths.max())
    batches = token_batches(np.arange(len(lengths)), lengths, budget, recipe.batch_size, rng)
    sums: dict[str, float] = {}
    for step, batch in enumerate(batches):
        _set_rate(optimizer, recipe, epoch + (step + 1) / len(batches))
        guessed = rng.permutation(batch)[: math.ceil(recipe.masked_share * len(batch))]
        losses = _losses(model, work, batch, guessed, accelerator)
        total = sum(getattr(recipe, name) * loss for name, loss in losses.items())
        take_step(total, model, optimizer, accelerator, recipe.clip, epoch)
        for name, loss in losses.items():
            mean = accelerator.reduce(loss.detach(), "mean")
            sums[name] = sums.get(name, 0.0) + float(mean) / len(batches)
    return sums


def _losses(
    model: Any, work: Work, batch: np.ndarray, guessed: np.ndarray, accelerator: Accelerator
) -> dict[str, Tensor]:
    """Return this process's part of the losses; their mean over processes counts."""
    texts = masked = None
    if work.targets is not None:
        mine, weight = own_rows(batch, accelerator)
        texts = _to(accelerator, *make_batch(work.source, mine))
    if work.copy is not None:
        asked, share = own_rows(guessed, accelerator)
        inputs, mask = make_batch(work.copy.source, asked)
        chosen, answers = work.copy.ask(asked, mask.shape[1])
        masked = _to(accelerator, inputs, mask, chosen)
    shares, scores = model(texts, masked)
    losses = {}
    if work.targets is not None:
        losses["clustering"] = weight * len(mine) * divergence_loss(work.targets[mine], shares)
    if work.copy is not None:
        missed = functional.cross_entropy(scores, answers.to(scores.device), reduction="sum")
        losses["masked"] = share * len(guessed) / max(1, work.copy.count(guessed)) * missed
    return losses


def _to(accelerator: Accelerator, *tensors: Tensor) -> list[Tensor]:
    return [tensor.to(accelerator.device) for tensor in tensors]


def _set_rate(optimizer: Any, recipe: DeepRecipe, epochs: float) -> None:
    """Set the learning rate after so many epochs, parts of one included."""
    rising = min(1.0, epochs / recipe.warmup) if recipe.warmup else 1.0
    for group in optimizer.param_groups:
        group["lr"] = recipe.learning_rate * rising
