"""Confusion matrices: what clusters and a classifier make of the same reviews."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_mutual_info_score, adjusted_rand_score, v_measure_score

from sentigeo.analysis.clusters import align_clusters
from sentigeo.stats import Estimate, bootstrap_index, share

INDICES: dict[str, Callable[..., float]] = {
    "ari": adjusted_rand_score,
    "ami": adjusted_mutual_info_score,
    "v_measure": v_measure_score,
}


def confusion_table(
    labels: np.ndarray, groups: np.ndarray, classes: Sequence[str], names: Sequence[str]
) -> pd.DataFrame:
    """Count the texts of each class in each group, (n,) numbers from 0, such as clusters."""
    if len(groups) and not 0 <= groups.min() <= groups.max() < len(names):
        raise ValueError("a group has no name")
    counts = np.zeros((len(classes), len(names)), np.int64)
    np.add.at(counts, (labels, groups), 1)
    return pd.DataFrame(counts, index=list(classes), columns=list(names))


def estimate_agreement(
    labels: np.ndarray, groups: np.ndarray, answers: np.ndarray, resamples: int
) -> dict[str, Estimate]:
    """Estimate how well (n,) groups agree with (n,) classes, whatever the groups are called.

    `answers` are the (n,) classes that the texts' groups stand for; only `accuracy` looks at them.
    The others are the adjusted Rand index, adjusted mutual information and the V-measure.
    """

    def of_rows(index: Callable[..., float], rows: np.ndarray) -> float:
        return float(index(labels[rows], groups[rows]))

    found = {"accuracy": share(answers == labels)}
    for name, index in INDICES.items():
        found[name] = bootstrap_index(partial(of_rows, index), len(labels), resamples)
    return found


def chance_agreement(labels: np.ndarray, answers: np.ndarray) -> float:
    """Return the accuracy that the same answers, shuffled among the texts, would have."""
    return float(sum((labels == c).mean() * (answers == c).mean() for c in np.unique(labels)))


def matched_by_chance(labels: np.ndarray, groups: np.ndarray, draws: int = 100) -> float:
    """Return the mean accuracy of groups that are matched with shuffled labels.

    Matching makes the best of chance: many small groups are far above the largest class's share.
    """
    rng = np.random.default_rng(0)
    shuffled = (rng.permutation(labels) for _ in range(draws))
    return float(np.mean([(align_clusters(one, groups) == one).mean() for one in shuffled]))


def compare_answers(
    labels: np.ndarray, first: np.ndarray, second: np.ndarray, names: tuple[str, str]
) -> pd.DataFrame:
    """Count where two answers to the same texts agree and differ, and how often each is right."""
    rows = []
    for name, inside in {"agree": first == second, "differ": first != second}.items():
        row: dict[str, object] = {"answers": name, "texts": int(inside.sum())}
        for who, answer in zip(names, (first, second), strict=True):
            right = answer[inside] == labels[inside]
            row[f"{who} right"] = share(right).brief() if inside.any() else None
        rows.append(row)
    return pd.DataFrame(rows)
