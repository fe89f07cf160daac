"""Is a classifier as sure as it is right?"""

import numpy as np
import pandas as pd

from sentigeo.stats import Estimate, share


def probabilities(logits: np.ndarray) -> np.ndarray:
    """Return the (n, classes) softmax of logits."""
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def reliability(chances: np.ndarray, labels: np.ndarray, bins: int = 10) -> pd.DataFrame:
    """Compare confidence with accuracy in bins of equal width.

    Args:
        chances: (n, classes) probabilities.
        labels: (n,) true classes.
        bins: Number of bins between the confidence of a guess, 1 / classes, and 1.

    Returns:
        Columns `confidence` (mean in the bin), `value`, `low`, `high` (accuracy), `n`.
    """
    confidence, right = chances.max(axis=1), chances.argmax(axis=1) == labels
    rows = []
    for member in _bin_members(confidence, chances.shape[1], bins):
        if member.any():
            found = share(right[member])
            rows.append({"confidence": confidence[member].mean(), **vars(found)})
    return pd.DataFrame(rows)


def calibration_error(
    chances: np.ndarray, labels: np.ndarray, resamples: int, bins: int = 10
) -> Estimate:
    """Estimate the expected calibration error: the mean gap between confidence and accuracy.

    The interval resamples cases. Because gaps are absolute, noise makes the error look larger, so
    the interval of a small sample lies high.
    """
    confidence, right = chances.max(axis=1), chances.argmax(axis=1) == labels
    codes = np.argmax(_bin_members(confidence, chances.shape[1], bins), axis=0)
    gaps = confidence - right
    rng = np.random.default_rng(0)
    found = [_gap(gaps, codes, bins)]
    for _ in range(resamples):
        drawn = rng.integers(len(gaps), size=len(gaps))
        found.append(_gap(gaps[drawn], codes[drawn], bins))
    low, high = np.quantile(found[1:], [0.025, 0.975])
    return Estimate(found[0], min(float(low), found[0]), max(float(high), found[0]), len(gaps))


def _bin_members(confidence: np.ndarray, classes: int, bins: int) -> np.ndarray:
    """Return (bins, n) truth values: which case is in which bin."""
    edges = np.linspace(1 / classes, 1, bins + 1)
    codes = np.clip(np.digitize(confidence, edges[1:-1]), 0, bins - 1)
    return np.asarray(np.arange(bins)[:, None] == codes)


def _gap(gaps: np.ndarray, codes: np.ndarray, bins: int) -> float:
    return float(np.abs(np.bincount(codes, weights=gaps, minlength=bins)).sum() / len(gaps))
