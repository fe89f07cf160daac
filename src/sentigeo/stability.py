"""How many clusters: those that are found again in other texts of the same kind."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score, silhouette_score

from sentigeo.cluster import find_clusters
from sentigeo.progress import track

SPLITS = 10  # ways to cut the texts in two halves
SPLIT_STARTS = 3  # initialisations of K-Means in each half


def study_stability(vectors: np.ndarray, numbers: Sequence[int]) -> pd.DataFrame:
    """Try several numbers of clusters.

    Clusters are found in one half of the texts and, apart from that, in the other; then either
    finding is asked about all texts. Stability is how far the two agree, as adjusted Rand index: 1
    for the same groups, 0 for no more than chance.

    Args:
        vectors: (n, d).
        numbers: Values of k, from 2.

    Returns:
        Columns `k`, `stability` (mean over splits), `error` (its standard error), `silhouette`.
    """
    vectors = np.unique(vectors, axis=0)  # what is in both halves would always be found again
    rows = []
    for k in track(list(numbers), "trying numbers of clusters"):
        found = [_agreement_of_halves(vectors, k, seed) for seed in range(SPLITS)]
        members = find_clusters(vectors, k, starts=SPLIT_STARTS).members
        rows.append(
            {
                "k": k,
                "stability": np.mean(found),
                "error": np.std(found, ddof=1) / np.sqrt(SPLITS),
                "silhouette": silhouette_score(vectors, members),
            }
        )
    return pd.DataFrame(rows)


def pick_stable(study: pd.DataFrame) -> int:
    """Return the largest k that is as stable as the best, but for its standard error."""
    best = study["stability"].to_numpy().argmax()
    enough = study["stability"] >= study["stability"].iloc[best] - study["error"].iloc[best]
    return int(study.loc[enough, "k"].max())


def possible_numbers(vectors: np.ndarray, most: int = 10) -> range:
    """Return values of k from 2 for which either half of some vectors has two of each cluster."""
    return range(2, max(2, min(most, len(np.unique(vectors, axis=0)) // 4)) + 1)


def _agreement_of_halves(vectors: np.ndarray, k: int, seed: int) -> float:
    order = np.random.default_rng(seed).permutation(len(vectors))
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    found = [find_clusters(vectors[half], k, seed, SPLIT_STARTS) for half in halves]
    return float(adjusted_rand_score(*(own.assign(vectors) for own in found)))
