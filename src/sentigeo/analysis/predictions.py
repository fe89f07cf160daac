"""How good predictions are: by pair, by class, by confidence."""

import numpy as np
import pandas as pd
from sklearn.metrics import precision_recall_fscore_support

from sentigeo.stats import Estimate, list_estimates, mean_over_runs, share


def score_challenge(
    challenge: pd.DataFrame, predicted: np.ndarray, resamples: int
) -> dict[str, Estimate]:
    """Estimate accuracy and pair consistency of (n,) predictions for challenge pairs."""
    right = np.asarray(predicted) == challenge["label"].to_numpy()
    return {
        "challenge_accuracy": mean_over_runs(right, resamples, challenge["pair"]),
        "challenge_consistency": share(pair_consistency(challenge, predicted)),
    }


def pair_consistency(challenge: pd.DataFrame, predicted: np.ndarray) -> pd.Series:
    """Tell for each challenge pair, in order of appearance, whether both its sides are right."""
    right = pd.Series(predicted == challenge["label"].to_numpy(), index=challenge["pair"])
    return right.groupby(level=0, sort=False).all()


def consistency_by_phenomenon(challenge: pd.DataFrame, predicted: np.ndarray) -> pd.DataFrame:
    """Estimate pair consistency: columns `name` (the phenomenon) and `estimate`."""
    phenomenon = challenge.drop_duplicates("pair").set_index("pair")["phenomenon"]
    groups = pair_consistency(challenge, predicted).groupby(phenomenon, sort=False)
    return list_estimates({name.replace("_", " "): share(pairs) for name, pairs in groups}, "name")


def report_classes(labels: np.ndarray, predicted: np.ndarray, classes: list[str]) -> pd.DataFrame:
    """Return precision, recall, F1 and n of each class; means over (runs, n) predictions."""
    numbers = range(len(classes))
    runs = [
        precision_recall_fscore_support(labels, run, labels=numbers, zero_division=0)[:3]
        for run in predicted
    ]
    frame = pd.DataFrame(np.mean(runs, axis=0).T, columns=["precision", "recall", "f1"])
    frame.insert(0, "class", classes)
    return frame.assign(n=np.bincount(labels, minlength=len(classes)))


def reliability(chances: np.ndarray, labels: np.ndarray, bins: int = 10) -> pd.DataFrame:
    """Compare mean confidence with accuracy in bins of equal width, given (n, classes) chances."""
    codes, confidence, right = _bin(chances, labels, bins)
    members = [codes == code for code in np.unique(codes)]
    found = {confidence[inside].mean(): share(right[inside]) for inside in members}
    return list_estimates(found, "confidence")


def calibration_error(
    chances: np.ndarray, labels: np.ndarray, resamples: int, bins: int = 10
) -> Estimate:
    """Estimate the expected calibration error, which noise makes larger in a small sample."""
    codes, confidence, right = _bin(chances, labels, bins)
    gaps, rng = confidence - right, np.random.default_rng(0)

    def error(rows: np.ndarray) -> float:
        sums = np.bincount(codes[rows], weights=gaps[rows], minlength=bins)
        return float(np.abs(sums).sum() / len(gaps))

    value = error(np.arange(len(gaps)))
    found = [error(rng.integers(len(gaps), size=len(gaps))) for _ in range(resamples)]
    low, high = np.quantile(found, [0.025, 0.975])
    return Estimate(value, min(float(low), value), max(float(high), value), len(gaps))


def _bin(chances: np.ndarray, labels: np.ndarray, bins: int) -> tuple[np.ndarray, ...]:
    """Return the (n,) bin of each case, its confidence, and whether it is right."""
    confidence, edges = chances.max(axis=1), np.linspace(1 / chances.shape[1], 1, bins + 1)
    codes = np.clip(np.digitize(confidence, edges[1:-1]), 0, bins - 1)
    return codes, confidence, chances.argmax(axis=1) == labels
