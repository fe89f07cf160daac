"""Thresholds of cosines: taking pairs beyond one for pairs of one class."""

import numpy as np
import pandas as pd

from sentigeo.cosine import BINS, PairCounts, bin_cosines, count_pairs, find_span, unit_rows
from sentigeo.stats import Estimate, half_sample_all


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
