"""Clusters: groups that an algorithm finds without labels, and which class each of them is."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, pairwise_distances
from sklearn.metrics.cluster import contingency_matrix
from threadpoolctl import threadpool_limits

from sentigeo.cache import Store, package_versions
from sentigeo.encoder.corpus import CorpusVectors
from sentigeo.errors import UserError
from sentigeo.hashes import hash_array, hash_code

STARTS = 10  # initialisations of which K-Means keeps the best
NO_CLASS = -1  # the class of a cluster that no class is left for
NOISE = -1  # the cluster of what is in none


@dataclass(frozen=True)
class Clusters:
    """K-Means clusters, numbered from the largest to the smallest."""

    centroids: np.ndarray  # (k, d) their means
    members: np.ndarray  # (n,) cluster of each vector they were found in
    inertia: float  # sum of the squared distances of these vectors from their centroid

    def distances(self, vectors: np.ndarray) -> np.ndarray:
        """Return the (m, k) distances of (m, d) vectors from the centroids."""
        return np.asarray(pairwise_distances(vectors, self.centroids))

    def assign(self, vectors: np.ndarray) -> np.ndarray:
        """Return the (m,) nearest cluster of (m, d) vectors, which may be new."""
        return np.asarray(self.distances(vectors).argmin(axis=1))


@dataclass(frozen=True)
class NamedClusters:
    """Clusters of training texts, named after classes, and the test texts that fall into them."""

    clusters: Clusters
    matching: dict[int, int]  # class of each cluster; -1 for one that no class is left for
    names: list[str]  # of the clusters, by number
    members: np.ndarray  # (t,) cluster of each test text
    answers: np.ndarray  # (t,) class of that cluster

    @property
    def by_class(self) -> list[int]:
        """The clusters in the order of their classes; those without a class come last."""
        classes = self.matching
        return sorted(classes, key=lambda c: (classes[c] == NO_CLASS, classes[c], c))


def cluster_corpus(found: CorpusVectors, k: int, store: Store) -> dict[str, NamedClusters]:
    """Cluster the training texts' last [CLS] vectors of each stage; k = 0 is one for each class."""
    corpus = found.corpus
    train, test, labels = corpus.rows("train"), corpus.rows("test"), corpus.labels_of("train")
    named = {}
    for stage, vectors in found.stages.items():
        matrix = vectors.matrix()
        clusters = load_clusters(store, matrix[train], k or len(corpus.classes))
        named[stage] = name_clusters(clusters, matrix[test], labels, corpus.classes)
    return named


def load_clusters(store: Store, vectors: np.ndarray, k: int) -> Clusters:
    """Return the k clusters of vectors from the store; find them if they are not there yet."""
    code, versions = hash_code(__name__), package_versions("scikit-learn", "numpy")
    key = {"vectors": hash_array(vectors), "k": k, "code": code, "versions": versions}
    kept = store.arrays("clusters", key, lambda: vars(find_clusters(vectors, k)))
    return Clusters(np.array(kept["centroids"]), np.array(kept["members"]), float(kept["inertia"]))


def name_clusters(
    clusters: Clusters, test: np.ndarray, labels: np.ndarray, classes: Sequence[str]
) -> NamedClusters:
    """Name clusters after the (n,) training labels; (t, d) test texts go to the nearest one."""
    called = {NO_CLASS: "no class"} | dict(enumerate(classes))
    matching = match_clusters(labels, clusters.members)
    names = [f"cluster {cluster + 1} ({called[matching[cluster]]})" for cluster in sorted(matching)]
    members = clusters.assign(test)
    return NamedClusters(clusters, matching, names, members, rename_clusters(members, matching))


def find_clusters(vectors: np.ndarray, k: int, seed: int = 0, starts: int = STARTS) -> Clusters:
    """Find clusters of (n, d) vectors with K-Means; the order of the vectors does not matter."""
    order = sort_rows(vectors, k)
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


def pick_typical(distances: np.ndarray, members: np.ndarray, count: int) -> dict[int, np.ndarray]:
    """Return the rows nearest to each centroid, nearest first, given their (n, k) distances."""
    found = {}
    for cluster in range(distances.shape[1]):
        rows = np.flatnonzero(members == cluster)
        found[cluster] = rows[np.argsort(distances[rows, cluster], kind="stable")[:count]]
    return found


def pick_border(distances: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows with the smallest margins between two centroids, and these margins."""
    if distances.shape[1] < 2:
        return np.array([], np.int64), np.array([])
    nearest = np.sort(distances, axis=1)
    margins = nearest[:, 1] - nearest[:, 0]
    rows = np.argsort(margins, kind="stable")[:count]
    return rows, margins[rows]


def match_clusters(labels: ArrayLike, clusters: ArrayLike) -> dict[int, int]:
    """Return the class or `NO_CLASS` of each cluster but `NOISE`, so that most of n rows agree."""
    classes, groups = np.asarray(labels), np.asarray(clusters)
    if classes.shape != groups.shape or classes.ndim != 1 or not len(classes):
        shapes = f"{classes.shape} and {groups.shape}"
        raise UserError(f"Labels and clusters must be two lists of one length, not of {shapes}.")
    inside = groups != NOISE
    names, numbers = np.unique(classes[inside]), np.unique(groups[inside])
    matching = dict.fromkeys(numbers.tolist(), NO_CLASS)
    if matching:
        table = contingency_matrix(classes[inside], groups[inside])
        rows, columns = linear_sum_assignment(table, maximize=True)
        matching |= dict(zip(numbers[columns].tolist(), names[rows].tolist(), strict=True))
    return matching


def align_clusters(labels: ArrayLike, clusters: ArrayLike) -> np.ndarray:
    """Return the (n,) class of each row's cluster, by the matching that agrees best with labels."""
    return rename_clusters(clusters, match_clusters(labels, clusters))


def rename_clusters(clusters: ArrayLike, matching: dict[int, int]) -> np.ndarray:
    """Return the (n,) class of each row's cluster under a matching; -1 if that does not know it."""
    return np.array([matching.get(c, NO_CLASS) for c in np.asarray(clusters).tolist()], np.int64)


def sort_rows(vectors: np.ndarray, k: int) -> np.ndarray:
    """Return an order of the rows that does not depend on theirs; refuse what has no k clusters."""
    if vectors.ndim != 2 or not vectors.size:
        raise UserError("There are no vectors to cluster.")
    if not np.isfinite(vectors).all():
        raise UserError("The vectors hold values that are not numbers.")
    different, places = np.unique(vectors, axis=0, return_inverse=True)
    most = len(different)
    if not 1 <= k <= most:
        few = f"there are {most} different vectors, so choose k from 1 to {most}"
        raise UserError(f"k = {k} clusters are not possible: {few}.")
    return np.argsort(places.ravel(), kind="stable")
