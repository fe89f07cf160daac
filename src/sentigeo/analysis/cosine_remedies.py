"""What is done about cosines: treatments of the vectors, thresholds, texts of equal length."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from sentigeo.analysis.cosines import (
    BINS,
    PairCounts,
    bin_cosines,
    count_pairs,
    estimate_mean_cosine,
    find_span,
    unit_rows,
)
from sentigeo.errors import UserError
from sentigeo.stats import Estimate, half_sample_all, half_samples

TOP = 3  # principal components that are removed
FLAT = 1e-9  # share of the largest variance below which a direction is left out
PARTNERS = 5  # texts that each text is paired with
FIFTHS = 5  # groups of texts by length
Transform = Callable[[np.ndarray], np.ndarray]


def learn_transforms(train: np.ndarray) -> dict[str, Transform]:
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
    """Rate each threshold (a bin, low to high) that takes pairs beyond it for pairs of one class.

    Returns:
        Columns `threshold`, `precision`, `recall`, `f1`.
    """
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
    """Return the threshold that such a share of all pairs pass."""
    every = counts.within.sum(axis=0) + counts.between
    above = every[::-1].cumsum() / every.sum()
    place = BINS - 1 - int(np.searchsorted(above, share))
    return float(np.linspace(*counts.span, BINS, endpoint=False)[max(place, 0)])


def judge_threshold(
    vectors: np.ndarray, labels: np.ndarray, classes: int, threshold: float
) -> dict[str, Estimate]:
    """Estimate what a threshold is worth on (n, d) vectors that it was not chosen on.

    Returns:
        `precision`, `recall`, `f1`, and `gain`, by how much precision surpasses the share of all
        pairs that are of one class; with intervals over texts, not a number where no pair passes.
    """
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
    """Estimate the rank correlation of a pair's cosine with the length of its shorter text.

    It is not a number where all n texts, with (n, d) vectors and (n,) lengths, are equally long.
    """
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
    """Estimate the mean cosine of pairs of texts that are about equally long, short to long fifths.

    Returns:
        Columns `words` (mean length) and `estimate`.
    """
    order = np.argsort(lengths, kind="stable")
    fifths = np.array_split(order, min(FIFTHS, len(order)))
    rows = [(float(lengths[part].mean()), estimate_mean_cosine(vectors[part])) for part in fifths]
    return pd.DataFrame(rows, columns=["words", "estimate"])
