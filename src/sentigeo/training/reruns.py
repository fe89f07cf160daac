"""The source's experiment many times over: small classifiers on frozen vectors, trained together.

A classifier is that of BERT without its pooler: dropout and a linear layer. On vectors that are
standardised, a pooler of its own per run was no more accurate and cost fifteen times as much.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor

import numpy as np
import pandas as pd
import torch
from sklearn.preprocessing import StandardScaler
from torch import Tensor
from torch.nn import functional

from sentigeo.analysis.source_logs import SourceLog, implied_sizes
from sentigeo.cores import track
from sentigeo.encoder.extract import one_thread
from sentigeo.errors import UserError

ARMS = ("without", "with", "control")  # samples; the control has further reviews in their place
TOGETHER = 100  # runs that are trained at once
LEARNING_RATE = 3e-3  # training accuracies rise as the source's did
DROPOUT = 0.1
DEVIATION = 0.02  # of a new classifier's weights
MOST_TEXTS = 100  # that a log may imply
CPU = torch.device("cpu")
Pool = tuple[np.ndarray, np.ndarray]  # rows of reviews, and of contrastive samples
Draw = tuple[np.ndarray, np.ndarray]  # rows to train on, rows to validate on


@dataclass(frozen=True)
class Size:
    """How large one arm of the experiment is."""

    train: int  # texts of each class
    validation: tuple[int, ...]  # texts of each class
    steps: int  # per epoch
    epochs: int


def read_sizes(logs: Mapping[str, SourceLog]) -> dict[str, Size]:
    """Return the size of each arm as the source's logs imply it; the control is that of `with`."""
    sizes = {}
    for name, log in logs.items():
        train = implied_sizes(log.accuracy, MOST_TEXTS)[0] // len(log.validation)
        sizes[name] = Size(train, tuple(log.validation.values()), log.steps, len(log.accuracy))
    return sizes | {"control": sizes["with"]}


def read_gains(logs: Mapping[str, SourceLog]) -> dict[str, float]:
    """Return the source's gain at the `last` and the `best` epochs, rounded down to a point."""
    found = {}
    for epoch in ("last", "best"):
        places = {name: -1 if epoch == "last" else log.best for name, log in logs.items()}
        printed = {name: logs[name].val_accuracy[place] for name, place in places.items()}
        found[epoch] = floor(100 * (printed["with"] - printed["without"])) / 100
    return found


def rerun_source(
    vectors: np.ndarray,
    labels: np.ndarray,
    reviews: np.ndarray,
    samples: np.ndarray,
    sizes: Mapping[str, Size],
    runs: int,
    seed: int,
) -> pd.DataFrame:
    """Repeat the experiment on (n, d) vectors with (n,) labels; reviews and samples are rows.

    Columns are `run`, `arm`, `epoch` (from 1), `train_accuracy` (as seen while training),
    `val_accuracy`, and `review_accuracy`: that on the reviews among the validation texts.
    """
    pools = pool_texts(labels, reviews, samples, sizes)
    scaled = StandardScaler().fit(vectors[reviews]).transform(vectors)
    texts = torch.from_numpy(scaled.astype(np.float32))
    numbers, frames = np.arange(runs), []
    with one_thread(CPU):
        for chunk in track(np.split(numbers, range(TOGETHER, runs, TOGETHER)), "reruns"):
            rngs = [np.random.default_rng([seed, run]) for run in chunk]
            drawn = [draw_texts(pools, sizes, rng) for rng in rngs]
            for arm in ARMS:
                seeds = [[seed, int(run), 1] for run in chunk]  # the same for every arm
                draws = [draw[arm] for draw in drawn]
                trained, logits = train_together(texts, labels, draws, sizes[arm], seeds)
                rows = np.stack([validation for _, validation in draws])[:, np.newaxis]
                hits, ordinary = logits.argmax(-1) == labels[rows], np.isin(rows, reviews)
                found = {"train_accuracy": trained, "val_accuracy": hits.mean(-1)}
                found["review_accuracy"] = (hits & ordinary).sum(-1) / ordinary.sum(-1)
                frames.append(_lay_out(chunk, arm, found))
    return pd.concat(frames, ignore_index=True)


def pool_texts(
    labels: np.ndarray, reviews: np.ndarray, samples: np.ndarray, sizes: Mapping[str, Size]
) -> list[Pool]:
    """Sort rows by class to draw from; too few of a class are refused."""
    pools = []
    for label, (common, added) in enumerate(_per_class(sizes)):
        pool = reviews[labels[reviews] == label], samples[labels[samples] == label]
        needs = {"reviews": common + added, "contrastive samples": added}
        for rows, (name, needed) in zip(pool, needs.items(), strict=True):
            if len(rows) < needed:
                raise UserError(f"The reruns need {needed} {name} of each class, not {len(rows)}.")
        pools.append(pool)
    return pools


def draw_texts(
    pools: Sequence[Pool], sizes: Mapping[str, Size], rng: np.random.Generator
) -> dict[str, Draw]:
    """Draw the rows of every arm of a run, and split each class at random, as the source did.

    All arms have the same reviews; the control is split as `with` is.
    """
    parts: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {arm: [] for arm in ARMS}
    for (reviews, samples), (common, added) in zip(pools, _per_class(sizes), strict=True):
        ordinary = rng.choice(reviews, common + added, replace=False)
        crafted = np.append(ordinary[:common], rng.choice(samples, added, replace=False))
        order = rng.permutation(common + added)
        mixed = {
            "without": rng.permutation(ordinary[:common]),
            "with": crafted[order],
            "control": ordinary[order],
        }
        for arm, rows in mixed.items():
            parts[arm].append((rows[: sizes[arm].train], rows[sizes[arm].train :]))
    joined = {arm: [np.concatenate(rows) for rows in zip(*parts[arm], strict=True)] for arm in ARMS}
    return {arm: (train, validation) for arm, (train, validation) in joined.items()}


def train_together(
    texts: Tensor,
    labels: np.ndarray,
    draws: Sequence[Draw],
    size: Size,
    seeds: Sequence[Sequence[int]],
) -> tuple[np.ndarray, np.ndarray]:
    """Train a classifier for each draw on (n, d) texts with Adam; none sees another's texts.

    Returns (runs, epochs) training accuracies, and the (runs, epochs, validation, classes) logits
    after each epoch.
    """
    classes, width = len(size.validation), texts.shape[1]
    train, validation = (torch.from_numpy(np.stack(rows)) for rows in zip(*draws, strict=True))
    shape = (size.epochs, train.shape[1])
    drawn = [_draw_training(np.random.default_rng(seed), shape, width, classes) for seed in seeds]
    weights, orders, kept = (torch.from_numpy(np.stack(part)) for part in zip(*drawn, strict=True))
    biases = torch.zeros(len(draws), 1, classes, requires_grad=True)
    optimizer = torch.optim.Adam([weights.requires_grad_(), biases], LEARNING_RATE, fused=True)
    truth, held_out = torch.tensor(labels), texts[validation]
    hits, logits = torch.zeros(len(draws), size.epochs), []
    for epoch in range(size.epochs):
        places = orders[:, epoch].tensor_split(size.steps, dim=1)
        masks = kept[:, epoch].tensor_split(size.steps, dim=1)
        for place, mask in zip(places, masks, strict=True):
            rows = train.gather(1, place)
            found = torch.baddbmm(biases, texts[rows] * mask / (1 - DROPOUT), weights)
            loss = functional.cross_entropy(
                found.flatten(0, 1), truth[rows].flatten(), reduction="sum"
            )
            optimizer.zero_grad()
            (loss / rows.shape[1]).backward()  # the sum over runs of the mean over a batch
            optimizer.step()
            hits[:, epoch] += (found.argmax(-1) == truth[rows]).sum(1)
        with torch.no_grad():
            logits.append(torch.baddbmm(biases, held_out, weights))
    return (hits / train.shape[1]).numpy(), torch.stack(logits, dim=1).numpy()


def gains(frame: pd.DataFrame) -> pd.DataFrame:
    """Return what `with` and `control` gained over `without`, one row per `run` and `epoch`.

    The epoch is the `last`, or the `best` of each arm.
    """
    runs = frame.pivot_table("val_accuracy", ["run", "epoch"], "arm").groupby(level="run")
    shown = pd.concat({"last": runs.last(), "best": runs.max()}, names=["epoch"])
    over = shown.sub(shown["without"], axis=0)[["with", "control"]]
    return over.rename_axis(columns=None).reset_index()


def _per_class(sizes: Mapping[str, Size]) -> list[tuple[int, int]]:
    """Return how many reviews of each class all arms have, and how many texts `with` adds."""
    small, large = sizes["without"], sizes["with"]
    both = zip(small.validation, large.validation, strict=True)
    return [(small.train + a, large.train + b - small.train - a) for a, b in both]


def _draw_training(
    rng: np.random.Generator, shape: tuple[int, int], width: int, classes: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw a run's first weights, the order of its texts in each epoch, and what dropout keeps."""
    weights = rng.normal(0.0, DEVIATION, (width, classes)).astype(np.float32)
    order = rng.permuted(np.tile(np.arange(shape[1]), (shape[0], 1)), axis=1)
    return weights, order, rng.random((*shape, width), np.float32) >= DROPOUT


def _lay_out(chunk: np.ndarray, arm: str, found: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """Lay out (runs, epochs) values by name as a table, one row per run and epoch."""
    epochs = next(iter(found.values())).shape[1]
    run, epoch = np.repeat(chunk, epochs), np.tile(np.arange(1, epochs + 1), len(chunk))
    values = {name: value.ravel() for name, value in found.items()}
    return pd.DataFrame({"run": run, "arm": arm, "epoch": epoch, **values})
