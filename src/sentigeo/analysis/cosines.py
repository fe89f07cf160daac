"""Cosines of all pairs of texts: how they spread, what treatments and thresholds do, lengths."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from sentigeo.errors import UserError
from sentigeo.stats import Estimate, half_sample_all, half_samples

BINS = 20_000  # of cosines
BLOCK = 1024  # texts whose cosines are in memory at a time, with as many others
SAMPLE = 500  # texts that tell which cosines there are
ROUNDING = 1e-8  # cosines that differ by less are equal
TOP = 3  # principal components that are removed
FLAT = 1e-9  # share of the largest variance below which a direction is left out
PARTNERS = 5  # texts that each text is paired with
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

    def moments(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the (classes + 1,) means and standard deviations, NaN where there is no pair."""
        with np.errstate(invalid="ignore"):
            means, squares = self.sums.T / self.sizes
        return means, np.sqrt(np.maximum(squares - means**2, 0))

    def auc(self) -> float:
        """Return how often a pair within a class has a larger cosine than one between classes."""
        same, other = self.within.sum(axis=0), self.between
        if not same.sum() or not other.sum():
            return float("nan")
        below = np.cumsum(other) - other / 2  # ties count half
        return float((same / same.sum()) @ (below / other.sum()))


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Return (n, d) float64 vectors of length 1; one of length 0 is kept, with cosines of 0."""
    if vectors.ndim != 2 or not np.isfinite(vectors).all():
        raise UserError("The vectors hold values that are not numbers.")
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1))


def count_pairs(
    vectors: np.ndarray, labels: np.ndarray, classes: int, span: Span | None = None
) -> PairCounts:
    """Count the cosines of all pairs of n texts in bins that span, by default, a sample's."""
    units = unit_rows(vectors)
    span = span or find_span(units)
    within, between = np.zeros((classes, BINS), np.int64), np.zeros(BINS, np.int64)
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
    # Vectors that nearly all point one way have cosines within a thousandth of each other.
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
    """Yield the cosines of pairs, flattened; within a group, every pair once."""
    for i in range(0, len(first), BLOCK):
        for j in range(i if same else 0, len(second), BLOCK):
            block = first[i : i + BLOCK] @ second[j : j + BLOCK].T
            yield block[~np.tri(len(block), dtype=bool)] if same and i == j else block.ravel()


def estimate_auc(vectors: np.ndarray, labels: np.ndarray, classes: int) -> Estimate:
    """Estimate the AUC of the cosine for pairs of one class, with an interval over texts."""
    return half_samples(_auc_of(vectors, labels, classes), len(labels))


def estimate_auc_change(
    after: np.ndarray, before: np.ndarray, labels: np.ndarray, classes: int
) -> Estimate:
    """Estimate by how much the AUC of other vectors of the same texts is larger."""
    new, old = (_auc_of(vectors, labels, classes) for vectors in (after, before))
    return half_samples(lambda rows: new(rows) - old(rows), len(labels), lowest=-1.0)


def _auc_of(vectors: np.ndarray, labels: np.ndarray, classes: int) -> Callable[[np.ndarray], float]:
    span = find_span(unit_rows(vectors))  # the bins are those of all texts
    return lambda rows: count_pairs(vectors[rows], labels[rows], classes, span).auc()


def describe_pairs(vectors: np.ndarray, labels: np.ndarray, kinds: Sequence[str]) -> pd.DataFrame:
    """Estimate mean and deviation of cosines by kind: within each class, and last between them."""
    units = unit_rows(vectors)
    span, columns = find_span(units), ("mean", "standard deviation")

    def measure(rows: np.ndarray) -> dict[str, float]:
        counts = count_pairs(units[rows], labels[rows], len(kinds) - 1, span)
        names = [f"{column} {kind}" for column in columns for kind in kinds]
        return dict(zip(names, np.concatenate(counts.moments()), strict=True))

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


def learn_transforms(train: np.ndarray) -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """Return treatments of (n, d) vectors by name, learned from (m, d) training vectors alone."""
    if len(train) < 2 or not np.isfinite(train).all():
        raise UserError("At least two vectors of numbers are needed to learn a transformation.")
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1)
    variances, axes = np.linalg.eigh(np.cov(train.astype(np.float64), rowvar=False))
    variances, axes = variances[::-1], axes[:, ::-1]
    kept = variances > FLAT * max(variances[0], np.finfo(float).tiny)
    top = axes[:, :TOP]
    whiten = axes[:, kept] / np.sqrt(variances[kept])
    return {
        "raw": lambda vectors: vectors,
        "normalised": unit_rows,
        "centred": lambda vectors: vectors - mean,
        "standardised": lambda vectors: (vectors - mean) / deviation,
        f"top {TOP} removed": lambda vectors: (vectors - mean) - (vectors - mean) @ top @ top.T,
        "whitened": lambda vectors: (vectors - mean) @ whiten,
    }


def threshold_curve(counts: PairCounts) -> pd.DataFrame:
    """Rate each bin as a threshold beyond which pairs are taken to be of one class."""
    same = counts.within.sum(axis=0)[::-1].cumsum()[::-1]
    every = same + counts.between[::-1].cumsum()[::-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        precision, recall = same / every, same / same[0]
        f1 = 2 * precision * recall / (precision + recall)
    edges = np.linspace(*counts.span, BINS, endpoint=False)
    return pd.DataFrame({"threshold": edges, "precision": precision, "recall": recall, "f1": f1})


def best_threshold(counts: PairCounts) -> float:
    """Return the threshold with the largest F1."""
    curve = threshold_curve(counts)
    return float(curve["threshold"].iloc[int(curve["f1"].fillna(0).to_numpy().argmax())])


def top_cosines(counts: PairCounts, share: float) -> float:
    """Return the threshold that a given share of all pairs pass."""
    every = counts.within.sum(axis=0) + counts.between
    above = every[::-1].cumsum() / every.sum()
    place = BINS - 1 - int(np.searchsorted(above, share))
    return float(np.linspace(*counts.span, BINS, endpoint=False)[place])


def judge_threshold(
    vectors: np.ndarray, labels: np.ndarray, classes: int, threshold: float
) -> dict[str, Estimate]:
    """Estimate a threshold's worth on other texts; `gain` is precision beyond that of all pairs."""
    units = unit_rows(vectors)
    span = find_span(units)
    place = int(bin_cosines(np.array([threshold]), span)[0])

    def measure(rows: np.ndarray) -> dict[str, float]:
        counts = count_pairs(units[rows], labels[rows], classes, span)
        passing = np.array([counts.within[:, place:].sum(), counts.between[place:].sum()])
        same, every = counts.within.sum(), counts.sizes.sum()
        with np.errstate(invalid="ignore", divide="ignore"):
            precision, recall = passing[0] / passing.sum(), passing[0] / same
            f1, gain = 2 * passing[0] / (passing.sum() + same), precision - same / every
        return {"precision": precision, "recall": recall, "f1": f1, "gain": gain}

    return half_sample_all(measure, len(labels), lowest={"gain": -1.0})


def length_effect(vectors: np.ndarray, lengths: np.ndarray) -> Estimate:
    """Estimate the rank correlation of a pair's cosine with the length of its shorter text."""
    units = unit_rows(vectors)
    mixed = np.random.default_rng(0).permutation(len(units))  # neighbours in a file may be alike

    def correlation(rows: np.ndarray) -> float:
        texts = mixed[np.sort(rows)]
        shifts = range(1, min(PARTNERS + 1, len(texts)))
        if not shifts or lengths[texts].min() == lengths[texts].max():
            return float("nan")
        pairs = [(texts, np.roll(texts, shift)) for shift in shifts]
        cosines = np.concatenate([np.einsum("nd,nd->n", units[a], units[b]) for a, b in pairs])
        shorter = np.concatenate([np.minimum(lengths[a], lengths[b]) for a, b in pairs])
        return float(spearmanr(cosines, shorter).statistic)

    return half_samples(correlation, len(units), lowest=-1.0)


def cosine_by_length(vectors: np.ndarray, lengths: np.ndarray) -> pd.DataFrame:
    """Estimate the mean cosine within fifths of the texts by length; `words` is the mean length."""
    order = np.argsort(lengths, kind="stable")
    fifths = np.array_split(order, min(5, len(order)))
    rows = [(float(lengths[part].mean()), estimate_mean_cosine(vectors[part])) for part in fifths]
    return pd.DataFrame(rows, columns=["words", "estimate"])
