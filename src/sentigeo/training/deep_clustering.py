"""Deep clustering: targets, losses, training, and a record of every epoch."""

import copy
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from sklearn.metrics import silhouette_score
from torch import Tensor
from torch.nn import functional
from transformers import AutoModelForMaskedLM

from sentigeo.cache import Store, save_arrays
from sentigeo.data.text_sets import TextSet
from sentigeo.encoder.bert_layers import make_batch
from sentigeo.encoder.encoder import load_with_head
from sentigeo.encoder.tokens import TokenIds, token_batches
from sentigeo.encoder.vectors import Trunk
from sentigeo.paths import write_text
from sentigeo.training.deep_encoder import DeepEncoder, MaskedTexts, TopDeepEncoder, assign_softly
from sentigeo.training.loop import Task, Texts, apply_to_rows, fit, obtain, trained_weights

EVALUATION_TOKENS = 6144
SILHOUETTES = 2000  # texts behind a mean silhouette, which compares each with all others
SAVE_EVERY = 5  # epochs, which are short
KEPT = "kl_mlm"  # the run whose encoder is kept
HEAD = "head.safetensors"
Copies = Sequence[MaskedTexts]  # of the same texts, with other tokens hidden


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


@dataclass(frozen=True)
class Draw:
    """Texts to be clustered, and what training them depends on."""

    texts: TextSet  # training never sees their labels
    seed: int  # draws the order of texts and K-Means; the first draw keeps an encoder
    tokens: TokenIds
    source: tuple[str, str | None]  # hub id or folder of the encoder, and its revision
    depth: int  # layers that are trained
    warming: DeepRecipe  # of a new MLM head
    recipes: dict[str, DeepRecipe]  # by condition
    key: dict[str, Any]  # all that the results depend on, recipes apart

    def key_of(self, condition: str) -> dict[str, Any]:
        """Return what a run depends on."""
        return {**self.key, "recipe": asdict(self.recipes[condition])}


@dataclass
class Course:
    """What training looked like before it and after each epoch: (epochs + 1) values of each.

    A silhouette is NaN if all texts are in one cluster, or each in its own; a loss is NaN before
    training and where it has no weight.
    """

    members: list[list[int]] = field(default_factory=list)  # the cluster of each of n texts
    confidence: list[float] = field(default_factory=list)  # mean share of texts in their cluster
    silhouette: list[float] = field(default_factory=list)  # mean over texts
    clustering: list[float] = field(default_factory=lambda: [math.nan])  # mean loss of the epoch
    masked: list[float] = field(default_factory=lambda: [math.nan])  # mean loss of the epoch


class MaskedTask(Task):
    """Training on whatever losses a recipe weighs; by itself, the MLM head alone.

    Dropout is off: shares are compared with targets, which are computed without it. Epochs take
    turns with copies of the texts that have hidden tokens; only the masked-language loss needs any.
    """

    recipe: DeepRecipe
    targets: Tensor | None = None  # (n, k) shares to come nearer to

    def __init__(self, body: Any, texts: Texts, copies: Copies, recipe: DeepRecipe) -> None:
        super().__init__(body, recipe)
        self.texts, self.copies, self.course = texts, copies, Course()
        self.notes = vars(self.course)
        self.rng, self.steps = np.random.default_rng(), 0

    def begin(self, epoch: int) -> list[np.ndarray]:
        """Return the batches of an epoch."""
        recipe, lengths = self.recipe, self.texts.lengths
        self.rng = np.random.default_rng([recipe.seed, epoch])
        rows, budget = np.arange(len(lengths)), recipe.batch_size * int(lengths.max())
        batches = token_batches(rows, lengths, budget, recipe.batch_size, self.rng)
        self.steps = len(batches)
        self.course.clustering.append(0.0 if recipe.clustering else math.nan)
        self.course.masked.append(0.0 if recipe.masked else math.nan)
        return batches

    def rate(self, epoch: int, step: int, steps: int) -> float:
        """Return the learning rate of a step; it rises with every one of them at first."""
        epochs = epoch + (step + 1) / steps
        return self.recipe.learning_rate * min(1.0, epochs / self.recipe.warmup)

    def loss(self, model: Any, batch: np.ndarray, epoch: int, step: int) -> Tensor:
        """Return the weighted sum of this process's part of the losses."""
        asked = math.ceil(self.recipe.masked_share * len(batch))
        guessed, device = self.rng.permutation(batch)[:asked], self.accelerator.device
        texts, masked, losses = None, None, {}
        if self.targets is not None:
            mine, weight = self.own_rows(batch)
            texts = [part.to(device) for part in make_batch(self.texts, mine)]
        if self.recipe.masked:
            copy = self.copies[epoch % len(self.copies)]
            rows, share = self.own_rows(guessed)
            inputs, mask = make_batch(copy.source, rows)
            chosen, answers = copy.ask(rows, mask.shape[1])
            masked = [part.to(device) for part in (inputs, mask, chosen)]
        shares, scores = model(texts, masked)
        if self.targets is not None:
            losses["clustering"] = weight * len(mine) * divergence_loss(self.targets[mine], shares)
        if self.recipe.masked:
            missed = functional.cross_entropy(scores, answers.to(device), reduction="sum")
            losses["masked"] = share * len(guessed) / max(1, copy.count(guessed)) * missed
        for name, loss in losses.items():
            mean = float(self.accelerator.reduce(loss.detach(), "mean"))
            getattr(self.course, name)[-1] += mean / self.steps
        total: Tensor = sum(getattr(self.recipe, name) * loss for name, loss in losses.items())
        return total


class ClusterTask(MaskedTask):
    """Training encoder and clusters; targets are computed anew before each epoch."""

    save_every = SAVE_EVERY

    def begin(self, epoch: int) -> list[np.ndarray]:
        """Return the batches of an epoch."""
        shares, recipe = self.note_clusters(), self.recipe
        self.targets = sharpen(shares, recipe.balance) if recipe.clustering else None
        return super().begin(epoch)

    def note_clusters(self) -> Tensor:
        """Return the (n, k) shares of all texts in the clusters, and note how things stand."""
        vectors = embed_all(self.body, self.texts)
        with torch.inference_mode():
            shares = assign_softly(vectors, self.body.centroids)
        largest, members = shares.max(dim=1)
        several = 2 <= len(members.unique()) < len(members)
        some = {"sample_size": min(SILHOUETTES, len(members)), "random_state": 0}
        spread = silhouette_score(vectors.cpu(), members.cpu(), **some) if several else math.nan
        self.course.members.append(members.tolist())
        self.course.confidence.append(float(largest.mean()))
        self.course.silhouette.append(float(spread))
        return shares


def sharpen(shares: Tensor, balance: bool = True) -> Tensor:
    """Return the (n, k) shares that training aims at, given those of all texts: the sure get surer.

    With `balance` they are divided by the clusters' sizes, which keeps large ones from growing.
    """
    weights = shares.square()
    if balance:
        weights = weights / shares.sum(dim=0).clamp(min=torch.finfo(shares.dtype).tiny)
    return weights / weights.sum(dim=1, keepdim=True)


def divergence_loss(targets: Tensor, shares: Tensor) -> Tensor:
    """Return the mean Kullback-Leibler divergence of (n, k) shares from their targets."""
    tiny = torch.finfo(shares.dtype).tiny
    logs = targets.clamp(min=tiny).log() - shares.clamp(min=tiny).log()
    return (targets * logs).sum(dim=1).mean()


def train_clusters(
    body: DeepEncoder, texts: Texts, copies: Copies, recipe: DeepRecipe, state: Path
) -> Course:
    """Train encoder and clusters in place; arguments as for `MaskedTask` and `fit`."""
    losses = {"centroids": recipe.clustering, "head": recipe.masked}
    body.train_parts({"layers"} | {part for part, weight in losses.items() if weight > 0})
    task = ClusterTask(body, texts, copies, recipe)
    fit(task, state)
    task.note_clusters()
    return task.course


def warm_head(body: DeepEncoder, copies: Copies, recipe: DeepRecipe) -> list[float]:
    """Train a new MLM head alone, lest it teach the layers noise; return each epoch's mean loss."""
    body.train_parts({"head"})
    task = MaskedTask(body, copies[0].source, copies, recipe)
    fit(task)
    return task.course.masked[1:]


def embed_all(body: DeepEncoder, texts: Texts) -> Tensor:
    """Return the (n, d) vectors of all texts; processes share the work."""
    rows, width = np.arange(len(texts.lengths)), body.centroids.shape[1]
    return apply_to_rows(body.embed, texts, rows, width, EVALUATION_TOKENS)


def train_draw(
    draw: Draw, texts: Texts, copies: Copies, first: np.ndarray, tokenizer: Any, store: Store
) -> None:
    """Train a draw under every condition that is not in the store.

    Texts are as training takes them, and clusters begin at the (k, d) centroids `first`.
    """
    model, new = load_with_head(AutoModelForMaskedLM, *draw.source, seed=0)
    kind = TopDeepEncoder if isinstance(texts, Trunk) else DeepEncoder
    base = kind(model, draw.depth, first, copies[0].words)

    def fill_head(_: Path, folder: Path) -> None:
        losses = warm_head(base, copies, draw.warming) if new else []
        head = trained_weights(base) if new else {}
        save_file({name: weight.detach().cpu() for name, weight in head.items()}, folder / HEAD)
        facts = {"losses": losses, "hidden": sum(int(masked.hidden.sum()) for masked in copies)}
        write_text(folder / "facts.json", json.dumps(facts))

    def fill(name: str, state: Path, folder: Path) -> None:
        body = copy.deepcopy(base)
        course = train_clusters(body, texts, copies, draw.recipes[name], state)
        arrays = {"vectors": embed_all(body, texts).cpu().numpy()}
        write_text(folder / "course.json", json.dumps(vars(course)))
        if name == KEPT and draw.seed == 0:
            body.model.base_model.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            arrays["centroids"] = body.centroids.detach().cpu().numpy()
        save_arrays(folder, arrays)

    head = obtain(store, "deep-head", draw.key, fill_head)
    base.load_state_dict(load_file(head / HEAD), strict=False)
    for name in draw.recipes:
        obtain(store, "deep", draw.key_of(name), partial(fill, name))
