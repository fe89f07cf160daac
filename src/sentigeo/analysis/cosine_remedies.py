"""What can be done to vectors before their cosines are taken; learned from training texts alone."""

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
Transform = Callable[[np.ndarray], np.ndarray]
PARTNERS = 5  # texts that each text is paired with
FIFTHS = 5  # groups of texts by length


def learn_transforms(train: np.ndarray) -> dict[str, Transform]:
    """Return what can be done to (n, d) vectors, by name.

    Args:
        train: (m, d) vectors to learn means, deviations and components from.
    """
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


def best_threshold(counts: PairCounts) -> float:
    """Return the cosine with the largest F1 if pairs beyond it are taken for pairs of one class."""
    curve = threshold_curve(counts)
    return float(curve["threshold"].iloc[int(curve["f1"].fillna(0).to_numpy().argmax())])


def top_cosines(counts: PairCounts, share: float) -> float:
    """Return the cosine that such a share of all pairs pass."""
    every = counts.within.sum(axis=0) + counts.between
    above = every[::-1].cumsum() / every.sum()
    place = BINS - 1 - int(np.searchsorted(above, share))
    return float(np.linspace(*counts.span, BINS, endpoint=False)[max(place, 0)])


def judge_threshold(
    vectors: np.ndarray, labels: np.ndarray, classes: int, threshold: float
) -> dict[str, Estimate]:
    """Estimate what it is worth to take pairs beyond a cosine for pairs of one class.

    Args:
        vectors: (n, d), others than those the threshold was chosen on.
        labels: (n,) classes.
        classes: How many classes there are.
        threshold: The cosine.

    Returns:
        `precision`, `recall`, `f1`, and `gain`, by how much precision surpasses the share of all
        pairs that are of one class; with intervals over texts.
    """
    units = unit_rows(vectors)
    span = find_span(units)

    def measure(rows: np.ndarray) -> dict[str, float]:
        return _worth(count_pairs(units[rows], labels[rows], classes, span), threshold)

    return half_sample_all(measure, len(labels), lowest={"gain": -1.0})


def threshold_curve(counts: PairCounts) -> pd.DataFrame:
    """Return precision, recall and F1 of every threshold, from low to high.

    Returns:
        Columns `threshold`, `precision`, `recall`, `f1`; a row a bin.
    """
    same = counts.within.sum(axis=0)[::-1].cumsum()[::-1]
    every = same + counts.between[::-1].cumsum()[::-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        precision, recall = same / every, same / same[0]
        f1 = 2 * precision * recall / (precision + recall)
    edges = np.linspace(*counts.span, BINS, endpoint=False)
    return pd.DataFrame({"threshold": edges, "precision": precision, "recall": recall, "f1": f1})


def _worth(counts: PairCounts, threshold: float) -> dict[str, float]:
    """Return what `judge_threshold` estimates; not a number where no pair passes."""
    place = int(bin_cosines(np.array([threshold]), counts.span)[0])
    passing = np.array([counts.within[:, place:].sum(), counts.between[place:].sum()])
    same, every = counts.within.sum(), counts.sizes.sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        precision, recall = passing[0] / passing.sum(), passing[0] / same
        f1, gain = 2 * passing[0] / (passing.sum() + same), precision - same / every
    return {"precision": precision, "recall": recall, "f1": f1, "gain": gain}


def length_effect(vectors: np.ndarray, lengths: np.ndarray) -> Estimate:
    """Estimate the rank correlation of a pair's cosine with the length of its shorter text.

    It is not a number where all texts are equally long.

    Args:
        vectors: (n, d).
        lengths: (n,) words or tokens of each text.
    """
    units = unit_rows(vectors)
    mixed = np.random.default_rng(0).permutation(len(units))  # neighbours in a file may be alike

    def correlation(rows: np.ndarray) -> float:
        own = mixed[np.sort(rows)]
        pairs = [(own, np.roll(own, shift)) for shift in range(1, min(PARTNERS + 1, len(own)))]
        if not pairs or lengths[own].min() == lengths[own].max():
            return float("nan")
        cosines = np.concatenate([np.einsum("nd,nd->n", units[a], units[b]) for a, b in pairs])
        shorter = np.concatenate([np.minimum(lengths[a], lengths[b]) for a, b in pairs])
        return float(spearmanr(cosines, shorter).statistic)

    return half_samples(correlation, len(units), lowest=-1.0)


def cosine_by_length(vectors: np.ndarray, lengths: np.ndarray) -> pd.DataFrame:
    """Estimate the mean cosine of pairs of texts that are about equally long.

    Returns:
        Columns `words` (mean length), `value`, `low`, `high`, `n`; from short to long fifths.
    """
    order = np.argsort(lengths, kind="stable")
    rows = []
    for part in np.array_split(order, min(FIFTHS, len(order))):
        found = estimate_mean_cosine(vectors[part])
        rows.append({"words": float(lengths[part].mean()), **vars(found)})
    return pd.DataFrame(rows)
