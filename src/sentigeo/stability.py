"""How many clusters: those that are found again in other texts of the same kind."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from sklearn.metrics import adjusted_rand_score, silhouette_score

from sentigeo.cluster import find_clusters
from sentigeo.progress import track

SPLITS = 10  # ways to cut the texts in two halves
CLOUDS = 5  # clouds without groups that the texts are compared with
SPLIT_STARTS = 3  # initialisations of K-Means in each half
GROUPS, PARTLY = 0.4, 0.2  # lead over such clouds from which clusters are called groups


def study_stability(vectors: np.ndarray, numbers: Sequence[int]) -> pd.DataFrame:
    """Try several numbers of clusters.

    Clusters are found in one half of the texts and, apart from that, in the other; then either
    finding is asked about all texts. Stability is how far the two agree, as adjusted Rand index: 1
    for the same groups, 0 for no more than chance. A long cloud without groups is cut at the same
    place again, too; so the same is done with clouds of normal noise that have the covariance of
    the vectors.

    Args:
        vectors: (n, d), no two alike.
        numbers: Values of k, from 2.

    Returns:
        Columns `k`, `stability` (mean over splits), `spread` (standard deviation over splits),
        `cloud` (mean stability in clouds), `lead` (stability minus cloud), `silhouette`.
    """
    clouds = [_shape_cloud(vectors, seed) for seed in range(CLOUDS)]
    rows = []
    for k in track(list(numbers), "trying numbers of clusters"):
        found = [_agreement_of_halves(vectors, k, seed) for seed in range(SPLITS)]
        noise = [_agreement_of_halves(clouds[seed % CLOUDS], k, seed) for seed in range(SPLITS)]
        members = find_clusters(vectors, k, starts=SPLIT_STARTS).members
        rows.append(
            {
                "k": k,
                "stability": np.mean(found),
                "spread": np.std(found, ddof=1),
                "cloud": np.mean(noise),
                "lead": np.mean(found) - np.mean(noise),
                "silhouette": silhouette_score(vectors, members),
            }
        )
    return pd.DataFrame(rows)


def pick_stable(study: pd.DataFrame) -> int:
    """Return the k that leads clouds without groups by most; the smallest if none leads them."""
    leads = study["lead"].to_numpy()
    return int(study["k"].iloc[leads.argmax()] if leads.max() >= PARTLY else study["k"].min())


def possible_numbers(different: int, asked: int | None, most: int = 10) -> list[int]:
    """Return values of k to try on so many different vectors: from 2, and the one asked for.

    Either half must have two vectors for each cluster, but for the one asked for one will do.
    """
    numbers = set(range(2, max(2, min(most, different // 4)) + 1))
    return sorted(numbers | ({asked} if asked and asked <= different // 2 else set()))


def _agreement_of_halves(vectors: np.ndarray, k: int, seed: int) -> float:
    order = np.random.default_rng(seed).permutation(len(vectors))
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    found = [find_clusters(vectors[half], k, seed, SPLIT_STARTS) for half in halves]
    return float(adjusted_rand_score(*(own.assign(vectors) for own in found)))


def _shape_cloud(vectors: np.ndarray, seed: int) -> np.ndarray:
    """Return as many normal vectors as there are, with their mean and covariance."""
    rng = np.random.default_rng(seed)
    centre = vectors.mean(axis=0)
    mixed = rng.normal(size=(len(vectors), len(vectors))) @ (vectors - centre)
    return np.asarray(centre + mixed / np.sqrt(len(vectors)), np.float32)
