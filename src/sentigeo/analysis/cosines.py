"""Cosines of all pairs of texts, counted block by block: never an n x n matrix."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from sentigeo.errors import UserError
from sentigeo.stats import Estimate, half_sample_all, half_samples

BINS = 20_000  # of cosines
BLOCK = 1024  # texts whose cosines are in memory at a time, with as many others
SAMPLE = 500  # texts that tell which cosines there are
ROUNDING = 1e-8  # cosines that differ by less are equal
Span = tuple[float, float]


@dataclass(frozen=True)
class PairCounts:
    """What is known of the cosines of all pairs of texts."""

    within: np.ndarray  # (classes, bins) pairs of two texts of a class
    between: np.ndarray  # (bins,) pairs of texts of two classes
    sums: np.ndarray  # (classes + 1, 2) of cosines and of their squares, last between classes
    span: Span  # cosines that the bins span; smaller and larger ones are in the outer bins

    @property
    def sizes(self) -> np.ndarray:
        """(classes + 1,) pairs of each kind, the last between classes."""
        return np.append(self.within.sum(axis=1), self.between.sum())

    def means(self) -> np.ndarray:
        """Return the (classes + 1,) mean cosines; not a number where there is no pair."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(self.sums[:, 0] / self.sizes)

    def deviations(self) -> np.ndarray:
        """Return the (classes + 1,) standard deviations of the cosines."""
        with np.errstate(invalid="ignore", divide="ignore"):
            squares = self.sums[:, 1] / self.sizes
        return np.asarray(np.sqrt(np.maximum(squares - self.means() ** 2, 0)))

    def auc(self) -> float:
        """Return how often a pair within a class has a larger cosine than one between classes."""
        same, other = self.within.sum(axis=0), self.between
        if not same.sum() or not other.sum():
            return float("nan")
        below = np.cumsum(other) - other / 2  # ties count half
        return float((same / same.sum()) @ (below / other.sum()))


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Return (n, d) float64 vectors of length 1; one of length 0 stays, its cosines are 0."""
    if vectors.ndim != 2 or not np.isfinite(vectors).all():
        raise UserError("The vectors hold values that are not numbers.")
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1))


def count_pairs(
    vectors: np.ndarray, labels: np.ndarray, classes: int, span: Span | None = None
) -> PairCounts:
    """Count the cosines of all pairs of n texts with (n, d) vectors and (n,) labels.

    Vectors that nearly all point one way have cosines within a thousandth of each other, so bins
    span only the cosines that there are, by default those of a sample of the texts.
    """
    units = unit_rows(vectors)
    span = span or find_span(units)
    within = np.zeros((classes, BINS), np.int64)
    between = np.zeros(BINS, np.int64)
    sums = np.zeros((classes + 1, 2))
    groups = [units[labels == number] for number in range(classes)]
    for first in range(classes):
        for second in range(first, classes):
            counts, row = (within[first], first) if first == second else (between, classes)
            for cosines in _blocks(groups[first], groups[second], first == second):
                counts += np.bincount(bin_cosines(cosines, span), minlength=BINS)
                sums[row] += cosines.sum(), np.dot(cosines, cosines)
    return PairCounts(within, between, sums, span)


def find_span(units: np.ndarray) -> Span:
    """Return a range that holds nearly all cosines of unit vectors, judged by a sample of them."""
    chosen = units[np.random.default_rng(0).permutation(len(units))[:SAMPLE]]
    cosines = (chosen @ chosen.T)[np.triu_indices(len(chosen), k=1)]
    if not len(cosines):
        return -1.0, 1.0
    low, high = float(cosines.min()), float(cosines.max())
    margin = 0.1 * (high - low) + ROUNDING
    return max(-1.0, low - margin), min(1.0, high + margin)


def bin_cosines(cosines: np.ndarray, span: Span) -> np.ndarray:
    """Return the bins that cosines fall into; those beyond the span fall into the outer ones."""
    places = (cosines - span[0]) * (BINS / (span[1] - span[0]))
    return np.clip(places, 0, BINS - 1, out=places).astype(np.intp)


def _blocks(first: np.ndarray, second: np.ndarray, same: bool) -> Iterator[np.ndarray]:
    """Yield the cosines of pairs, flat; of a group with itself every pair once."""
    for i in range(0, len(first), BLOCK):
        for j in range(i if same else 0, len(second), BLOCK):
            block = first[i : i + BLOCK] @ second[j : j + BLOCK].T
            yield block[~np.tri(len(block), dtype=bool)] if same and i == j else block.ravel()


def estimate_auc(vectors: np.ndarray, labels: np.ndarray, classes: int) -> Estimate:
    """Estimate the AUC of the cosine for pairs of one class, with an interval over texts."""
    return half_samples(_auc_of_rows(vectors, labels, classes), len(labels))


def estimate_auc_change(
    after: np.ndarray, before: np.ndarray, labels: np.ndarray, classes: int
) -> Estimate:
    """Estimate by how much the AUC of other vectors of the same texts is larger."""
    new, old = (_auc_of_rows(vectors, labels, classes) for vectors in (after, before))
    return half_samples(lambda rows: new(rows) - old(rows), len(labels), lowest=-1.0)


def _auc_of_rows(
    vectors: np.ndarray, labels: np.ndarray, classes: int
) -> Callable[[np.ndarray], float]:
    span = find_span(unit_rows(vectors))  # the bins are those of all texts
    return lambda rows: count_pairs(vectors[rows], labels[rows], classes, span).auc()


def describe_pairs(vectors: np.ndarray, labels: np.ndarray, kinds: Sequence[str]) -> pd.DataFrame:
    """Estimate `mean` and `standard deviation` of cosines within each class and between classes.

    `kinds` are the values of the column `pairs`: classes' names, last that of pairs between them.
    """
    units = unit_rows(vectors)
    span, columns = find_span(units), ("mean", "standard deviation")

    def measure(rows: np.ndarray) -> dict[str, float]:
        counts = count_pairs(units[rows], labels[rows], len(kinds) - 1, span)
        values = np.concatenate([counts.means(), counts.deviations()])
        names = [f"{column} {kind}" for column in columns for kind in kinds]
        return dict(zip(names, values, strict=True))

    found = half_sample_all(measure, len(labels), lowest={f"mean {kind}": -1.0 for kind in kinds})
    estimates = {column: [found[f"{column} {kind}"] for kind in kinds] for column in columns}
    return pd.DataFrame({"pairs": list(kinds), **estimates})


def mean_cosine(vectors: np.ndarray) -> float:
    """Return the mean cosine of all pairs of different texts, from sums over texts alone."""
    return float(share_of_dimensions(vectors).sum()) if len(vectors) > 1 else float("nan")


def share_of_dimensions(vectors: np.ndarray) -> np.ndarray:
    """Return the (d,) parts of the mean cosine that each dimension contributes; they sum to it."""
    units = unit_rows(vectors)
    n = len(units)
    return np.asarray((units.sum(axis=0) ** 2 - (units**2).sum(axis=0)) / (n * (n - 1)))


def describe_dimensions(vectors: np.ndarray) -> dict[str, float]:
    """Return the mean cosine, and how much of it a few dimensions make up."""
    shares = np.sort(share_of_dimensions(vectors))[::-1]
    whole = shares.sum()
    return {
        "mean cosine": whole,
        "largest dimension": shares[0] / whole,
        "largest three": shares[:3].sum() / whole,
        "dimensions for half of it": int((shares.cumsum() < whole / 2).sum() + 1),
    }


def estimate_mean_cosine(vectors: np.ndarray) -> Estimate:
    """Estimate the mean cosine of all pairs of different texts, with an interval over texts."""
    return half_samples(lambda rows: mean_cosine(vectors[rows]), len(vectors), lowest=-1.0)


def estimate_mean_gap(vectors: np.ndarray, labels: np.ndarray, pair: tuple[int, int]) -> Estimate:
    """Estimate the mean cosine within one class minus that within another."""

    def gap(rows: np.ndarray) -> float:
        one, other = (mean_cosine(vectors[rows][labels[rows] == number]) for number in pair)
        return one - other

    return half_samples(gap, len(labels), lowest=-1.0)
