"""Clusters: groups that an algorithm finds without labels, and which class each of them is."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import HDBSCAN, AgglomerativeClustering, KMeans
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, pairwise_distances, silhouette_score
from sklearn.metrics.cluster import contingency_matrix
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from sentigeo.errors import UserError

STARTS = 10  # initialisations of which K-Means keeps the best
COMPONENTS = 50  # principal components that the other algorithms see
NOWHERE = -1  # the class of a cluster that no class is left for, and the cluster of noise


@dataclass(frozen=True)
class Clusters:
    """K-Means clusters, numbered from the largest to the smallest.

    Attributes:
        centroids: (k, d) their means.
        members: (n,) cluster of each vector they were found in.
        inertia: Sum of the squared distances of these vectors from their centroid.
    """

    centroids: np.ndarray
    members: np.ndarray
    inertia: float

    def distances(self, vectors: np.ndarray) -> np.ndarray:
        """Return the (m, k) distances of (m, d) vectors from the centroids."""
        return np.asarray(pairwise_distances(vectors, self.centroids))

    def assign(self, vectors: np.ndarray) -> np.ndarray:
        """Return the (m,) nearest cluster of (m, d) vectors, which may be new."""
        return np.asarray(self.distances(vectors).argmin(axis=1))


def find_clusters(vectors: np.ndarray, k: int, seed: int = 0, starts: int = STARTS) -> Clusters:
    """Find clusters with K-Means; the order of the vectors does not matter.

    Args:
        vectors: (n, d).
        k: Number of clusters.
        seed: Random seed of the initialisations.
        starts: Initialisations; the clusters with the least inertia are kept.
    """
    order = _sorted_rows(vectors, k)
    with threadpool_limits(1):  # sums of several threads differ in their last digits
        found = KMeans(k, n_init=starts, random_state=seed).fit(vectors[order])
    sizes = np.bincount(found.labels_, minlength=k)
    rank = np.lexsort((found.cluster_centers_[:, 0], -sizes))
    members = np.empty(len(vectors), np.int64)
    members[order] = np.argsort(rank)[found.labels_]
    return Clusters(found.cluster_centers_[rank], members, float(found.inertia_))


def compare_starts(vectors: np.ndarray, k: int, seeds: Sequence[int]) -> np.ndarray:
    """Return the adjusted Rand index of every two runs of K-Means, one initialisation each."""
    runs = [find_clusters(vectors, k, seed, starts=1).members for seed in seeds]
    return np.array([adjusted_rand_score(a, b) for a, b in combinations(runs, 2)])


def find_other_clusters(vectors: np.ndarray, k: int, seed: int = 0) -> dict[str, np.ndarray]:
    """Find clusters with other algorithms, in the first principal components.

    Args:
        vectors: (n, d).
        k: Number of clusters; HDBSCAN finds its own number, of at least a fiftieth of the vectors.
        seed: Random seed of the Gaussian mixture.

    Returns:
        (n,) clusters by algorithm; what HDBSCAN takes for noise is in cluster -1.
    """
    order = _sorted_rows(vectors, k)
    components = min(COMPONENTS, *vectors.shape)
    with threadpool_limits(1):
        reduced = PCA(components, svd_solver="full").fit_transform(vectors[order])
        found = {
            "Ward": AgglomerativeClustering(k).fit_predict(reduced),
            "Gaussian mixture": GaussianMixture(
                k, covariance_type="diag", n_init=3, random_state=seed
            ).fit_predict(reduced),
            "HDBSCAN": HDBSCAN(max(5, len(vectors) // 50), copy=True).fit_predict(reduced),
        }
    back = np.argsort(order)
    return {name: np.asarray(members)[back] for name, members in found.items()}


def study_k(
    vectors: np.ndarray, labels: np.ndarray, numbers: Sequence[int], references: int
) -> pd.DataFrame:
    """Try several numbers of clusters.

    Args:
        vectors: (n, d).
        labels: (n,) classes, which only the agreement looks at.
        numbers: Values of k.
        references: Structureless clouds behind the gap statistic.

    Returns:
        Columns `k`, `inertia`, `silhouette` (none for k = 1), `gap` with its standard error
        `gap_error`, and `ari`, the adjusted Rand index with the labels.
    """
    clouds = [_uniform_cloud(vectors, seed) for seed in range(references)]
    rows = []
    for k in numbers:
        found = find_clusters(vectors, k)
        dispersions = [np.log(find_clusters(cloud, k, starts=1).inertia) for cloud in clouds]
        rows.append(
            {
                "k": k,
                "inertia": found.inertia,
                "silhouette": silhouette_score(vectors, found.members) if k > 1 else np.nan,
                "gap": np.mean(dispersions) - np.log(found.inertia),
                "gap_error": np.std(dispersions) * np.sqrt(1 + 1 / references),
                "ari": adjusted_rand_score(labels, found.members),
            }
        )
    return pd.DataFrame(rows)


def choose_k(study: pd.DataFrame) -> int | None:
    """Return the smallest k whose gap the next one does not surpass by more than its error.

    This is the rule of Tibshirani, Walther and Hastie (2001). None: the gap grows to the end.
    """
    gaps, errors = study["gap"].to_numpy(), study["gap_error"].to_numpy()
    enough = np.flatnonzero(gaps[:-1] >= gaps[1:] - errors[1:])
    return int(study["k"].iloc[enough[0]]) if len(enough) else None


def silhouettes_by_chance(vectors: np.ndarray, k: int, clouds: int) -> np.ndarray:
    """Return the silhouettes of K-Means clusters in clouds that have no groups.

    Args:
        vectors: (n, d).
        k: Number of clusters.
        clouds: How many sets of n normally distributed vectors with the same mean and covariance.

    Returns:
        (clouds,) silhouettes.
    """
    mean, covariance = vectors.mean(axis=0), np.cov(vectors, rowvar=False)
    rng = np.random.default_rng(0)
    found = []
    for _ in range(clouds):
        cloud = rng.multivariate_normal(mean, covariance, len(vectors), method="eigh")
        found.append(silhouette_score(cloud, find_clusters(cloud, k, starts=1).members))
    return np.array(found)


def pick_typical(distances: np.ndarray, members: np.ndarray, count: int) -> dict[int, np.ndarray]:
    """Return the rows nearest to the centroid of each cluster, nearest first.

    Args:
        distances: (n, k) distances from the centroids.
        members: (n,) cluster of each row.
        count: How many of a cluster at most.
    """
    found = {}
    for cluster in range(distances.shape[1]):
        rows = np.flatnonzero(members == cluster)
        found[cluster] = rows[np.argsort(distances[rows, cluster], kind="stable")[:count]]
    return found


def pick_border(distances: np.ndarray, count: int) -> np.ndarray:
    """Return the rows whose two nearest centroids are almost equally near, closest call first."""
    if distances.shape[1] < 2:
        return np.array([], np.int64)
    nearest = np.sort(distances, axis=1)
    return np.argsort(nearest[:, 1] - nearest[:, 0], kind="stable")[:count]


def match_clusters(labels: ArrayLike, clusters: ArrayLike) -> dict[int, int]:
    """Give each cluster a class, and no class to two clusters, so that most rows agree.

    Args:
        labels: (n,) class numbers.
        clusters: (n,) cluster numbers; -1 is noise, which is no cluster.

    Returns:
        Class of each cluster; -1 for a cluster that no class is left for.
    """
    classes, groups = np.asarray(labels), np.asarray(clusters)
    if classes.shape != groups.shape or classes.ndim != 1 or not len(classes):
        raise UserError(
            f"Labels and clusters must be two lists of one length, not of {classes.shape} and "
            f"{groups.shape}."
        )
    inside = groups != NOWHERE
    names, own = np.unique(classes[inside]), np.unique(groups[inside])
    matching = dict.fromkeys(own.tolist(), NOWHERE)
    if matching:
        table = contingency_matrix(classes[inside], groups[inside])
        rows, columns = linear_sum_assignment(table, maximize=True)
        matching |= dict(zip(own[columns].tolist(), names[rows].tolist(), strict=True))
    return matching


def align_clusters(labels: ArrayLike, clusters: ArrayLike) -> np.ndarray:
    """Rename clusters after the classes that they agree with best, by optimal assignment.

    Args:
        labels: (n,) class numbers.
        clusters: (n,) cluster numbers; any numbers, as many as there are.

    Returns:
        (n,) class of each row's cluster; -1 where more clusters than classes left one without, and
        in noise.
    """
    return rename_clusters(clusters, match_clusters(labels, clusters))


def rename_clusters(clusters: ArrayLike, matching: dict[int, int]) -> np.ndarray:
    """Return the (n,) class of each row's cluster under a matching that may come from other rows.

    A cluster that the matching does not know is of no class: -1.
    """
    return np.array([matching.get(c, NOWHERE) for c in np.asarray(clusters).tolist()], np.int64)


def _uniform_cloud(vectors: np.ndarray, seed: int) -> np.ndarray:
    """Fill the box around vectors, its sides along their principal components, evenly."""
    pca = PCA(svd_solver="full").fit(vectors)
    flat = pca.transform(vectors)
    rng = np.random.default_rng(seed)
    cloud = rng.uniform(flat.min(axis=0), flat.max(axis=0), flat.shape)
    return np.asarray(cloud, np.float32)  # a rotation would not change any distance


def _sorted_rows(vectors: np.ndarray, k: int) -> np.ndarray:
    """Return an order of the rows that does not depend on theirs; refuse what has no k clusters."""
    if vectors.ndim != 2 or not vectors.size:
        raise UserError("There are no vectors to cluster.")
    if not np.isfinite(vectors).all():
        raise UserError("The vectors hold values that are not numbers.")
    different, places = np.unique(vectors, axis=0, return_inverse=True)
    if not 1 <= k <= len(different):
        raise UserError(
            f"k = {k} clusters are not possible: there are {len(different)} different vectors, so "
            f"choose k from 1 to {len(different)}."
        )
    return np.argsort(places.ravel(), kind="stable")
