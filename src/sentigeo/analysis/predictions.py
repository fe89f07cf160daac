"""How good are predictions: on reviews, and on the challenge pairs."""

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.metrics import precision_recall_fscore_support

from sentigeo.stats import Estimate, grouped_share, share


def score_reviews(labels: ArrayLike, predicted: ArrayLike) -> Estimate:
    """Estimate the accuracy on reviews, which are independent cases."""
    return share(np.asarray(predicted) == np.asarray(labels))


def score_challenge(
    challenge: pd.DataFrame, predicted: np.ndarray, resamples: int
) -> dict[str, Estimate]:
    """Estimate accuracy and pair consistency on the challenge set.

    Args:
        challenge: Columns `pair` and `label`, one row a text.
        predicted: (n,) predicted class of each row.
        resamples: Bootstrap resamples over pairs for the accuracy.
    """
    right = np.asarray(predicted) == challenge["label"].to_numpy()
    return {
        "challenge_accuracy": grouped_share(right, challenge["pair"].to_numpy(), resamples),
        "challenge_consistency": share(pair_consistency(challenge, predicted)),
    }


def pair_consistency(challenge: pd.DataFrame, predicted: np.ndarray) -> pd.Series:
    """Tell for each challenge pair whether both its sides were classified correctly.

    Returns:
        Truth values indexed by pair, in order of appearance.
    """
    right = pd.Series(predicted == challenge["label"].to_numpy(), index=challenge["pair"])
    return right.groupby(level=0, sort=False).all()


def consistency_by_phenomenon(challenge: pd.DataFrame, predicted: np.ndarray) -> pd.DataFrame:
    """Estimate pair consistency for each phenomenon.

    Returns:
        Columns `name` (the phenomenon), `value`, `low`, `high`, `n`.
    """
    phenomenon = challenge.drop_duplicates("pair").set_index("pair")["phenomenon"]
    consistent = pair_consistency(challenge, predicted)
    rows = [
        {"name": name.replace("_", " "), **vars(share(group))}
        for name, group in consistent.groupby(phenomenon, sort=False)
    ]
    return pd.DataFrame(rows)


def report_classes(labels: np.ndarray, predicted: np.ndarray, classes: list[str]) -> pd.DataFrame:
    """Return precision, recall and F1 of each class.

    Args:
        labels: (n,) true classes.
        predicted: (runs, n) predicted classes; the numbers are means over runs.
        classes: Class names.

    Returns:
        Columns `class`, `precision`, `recall`, `f1`, `n`.
    """
    numbers = range(len(classes))
    found = np.stack(
        [
            precision_recall_fscore_support(labels, run, labels=numbers, zero_division=0)[:3]
            for run in predicted
        ]
    ).mean(axis=0)
    counts = [int((labels == number).sum()) for number in numbers]
    return pd.DataFrame(
        {"class": classes, "precision": found[0], "recall": found[1], "f1": found[2], "n": counts}
    )


def small_sample_spread(hits: np.ndarray, size: int, samples: int) -> tuple[float, float]:
    """Return the range that holds 95% of the accuracies measured on random samples of a size."""
    found = np.random.default_rng(0).choice(hits, (samples, size)).mean(axis=1)
    low, high = np.quantile(found, [0.025, 0.975])
    return float(low), float(high)


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
