"""What is behind clusters: other numbers of them, other algorithms, and whether there is a gap."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.stats import gaussian_kde
from sklearn.cluster import HDBSCAN, AgglomerativeClustering
from sklearn.decomposition import PCA
from sklearn.metrics import adjusted_rand_score, silhouette_score
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from sentigeo.analysis.clusters import NOISE, Clusters, align_clusters, find_clusters, sort_rows
from sentigeo.analysis.maps import direction_between
from sentigeo.progress import track
from sentigeo.stats import Estimate, bootstrap, no_estimate, share

COMPONENTS = 50  # principal components that the other algorithms see
STUDY_STARTS = 2  # initialisations of K-Means in a study of k, for texts and for clouds alike
GRID = 101  # places along the line through two centroids at which the density is taken
SPLITS = 10  # ways to cut the texts in two halves
CLOUDS = 5  # clouds without groups that the texts are compared with
SPLIT_STARTS = 3  # initialisations of K-Means in each half
GROUPS, PARTLY = 0.4, 0.2  # lead over such clouds from which clusters are called groups


def study_k(
    vectors: np.ndarray, labels: np.ndarray, numbers: Sequence[int], references: int = CLOUDS
) -> pd.DataFrame:
    """Try several numbers of clusters of (n, d) vectors.

    The gap statistic compares inertias with those in evenly spread clouds, `references` of them.

    Returns:
        Columns `k`, `inertia`, `silhouette` (none for k = 1), `gap` with its standard error
        `gap_error`, and `ari`, the adjusted Rand index with the (n,) labels.
    """
    clouds = [_uniform_cloud(vectors, seed) for seed in range(references)]
    rows = []
    for k in numbers:
        found, *evenly = (find_clusters(v, k, starts=STUDY_STARTS) for v in (vectors, *clouds))
        inertias = np.log([clusters.inertia for clusters in evenly])
        rows.append(
            {
                "k": k,
                "inertia": found.inertia,
                "silhouette": silhouette_score(vectors, found.members) if k > 1 else np.nan,
                "gap": np.mean(inertias) - np.log(found.inertia),
                "gap_error": np.std(inertias) * np.sqrt(1 + 1 / references),
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


def describe_study(study: pd.DataFrame) -> str:
    """Say at which k each measure of `study_k` is best."""
    best, agrees = (study.iloc[np.nanargmax(study[name])] for name in ("silhouette", "ari"))
    by_gap, most = choose_k(study), study["k"].max()
    return (
        f"the silhouette is largest at k = {best['k']:.0f} ({best['silhouette']:.3f}); the gap "
        f"statistic chooses {f'k = {by_gap}' if by_gap else f'none up to k = {most}'}; "
        f"agreement with the labels is largest at k = {agrees['k']:.0f} (ARI {agrees['ari']:.3f})"
    )


def find_other_clusters(vectors: np.ndarray, k: int) -> dict[str, np.ndarray]:
    """Return the (n,) clusters that other algorithms find in the first principal components.

    HDBSCAN finds its own number, of at least a fiftieth of the vectors; its noise is cluster -1.
    """
    order = sort_rows(vectors, k)
    components = min(COMPONENTS, *vectors.shape)
    with threadpool_limits(1):
        reduced = PCA(components, svd_solver="full").fit_transform(vectors[order])
        mixture = GaussianMixture(k, covariance_type="diag", n_init=3, random_state=0)
        found = {
            "Ward": AgglomerativeClustering(k).fit_predict(reduced),
            "Gaussian mixture": mixture.fit_predict(reduced),
            "HDBSCAN": HDBSCAN(max(5, len(vectors) // 50), copy=True).fit_predict(reduced),
        }
    back = np.argsort(order)
    return {name: np.asarray(members)[back] for name, members in found.items()}


def compare_algorithms(vectors: np.ndarray, labels: np.ndarray, k: int) -> pd.DataFrame:
    """Compare the clusters of K-Means and other algorithms with the labels of the same texts.

    Returns:
        Columns `name`, `clusters`, `noise` (share of the texts) and `estimate`: the share of texts
        in the cluster that is named after their label.
    """
    found = {"K-Means": find_clusters(vectors, k).members} | find_other_clusters(vectors, k)
    rows = []
    for name, groups in found.items():
        noise = groups == NOISE
        agreement = share(align_clusters(labels, groups) == labels)
        rows.append((name, len(np.unique(groups[~noise])), float(noise.mean()), agreement))
    return pd.DataFrame(rows, columns=["name", "clusters", "noise", "estimate"])


def estimate_dip(clusters: Clusters, vectors: np.ndarray, resamples: int) -> Estimate:
    """Estimate how far density drops between clusters, at the pair where it drops least.

    K-Means cuts anything into parts; a group is more than a part if fewer texts lie between it and
    its neighbour than in either. The vectors should be others than those that the clusters were
    found in; two or more must fall into each cluster.
    """
    members, along = clusters.assign(vectors), []
    for pair in combinations(range(len(clusters.centroids)), 2):
        line = direction_between(*clusters.centroids[list(pair)])
        positions = line.place(vectors[np.isin(members, pair)])
        if min((positions < 0).sum(), (positions > 0).sum()) < 2:
            return no_estimate(len(positions))
        along.append(positions)
    shallowest = min(along, key=dip_depth)
    return bootstrap(lambda rows: dip_depth(shallowest[rows]), len(shallowest), resamples)


def dip_depth(positions: np.ndarray) -> float:
    """Return how much lower the density is between two modes than at the lower of them.

    Positions are (n,) along the line through two centroids, which lie at -1 and +1. It is 0 where
    there is one mode only, 1 where nothing lies between two.
    """
    grid = np.linspace(-2, 2, GRID)
    density = gaussian_kde(positions)(grid)
    between = np.flatnonzero(np.abs(grid) <= 1)
    dip = between[density[between].argmin()]
    lower = min(density[: dip + 1].max(), density[dip:].max())
    return float(1 - density[dip] / lower)


def study_stability(vectors: np.ndarray, numbers: Sequence[int]) -> pd.DataFrame:
    """Try several numbers of clusters, from 2, of (n, d) vectors of which no two are alike.

    Clusters are found in one half of the texts and, apart from that, in the other; then either
    finding is asked about all texts. Stability is how far the two agree, as adjusted Rand index. A
    long cloud without groups is cut at the same place again, too; so the same is done with clouds
    of normal noise that have the covariance of the vectors.

    Returns:
        Columns `k`, `stability` (mean over splits), `spread` (standard deviation over splits),
        `cloud` (mean stability in clouds), `lead` (stability minus cloud), `silhouette`.
    """
    clouds = [_normal_cloud(vectors, seed) for seed in range(CLOUDS)]
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
    return float(adjusted_rand_score(*(clusters.assign(vectors) for clusters in found)))


def _uniform_cloud(vectors: np.ndarray, seed: int) -> np.ndarray:
    """Fill the box around vectors, its sides along their principal components, evenly."""
    box = PCA(svd_solver="full").fit_transform(vectors)
    cloud = np.random.default_rng(seed).uniform(box.min(axis=0), box.max(axis=0), box.shape)
    return np.asarray(cloud, np.float32)  # a rotation back would not change any distance


def _normal_cloud(vectors: np.ndarray, seed: int) -> np.ndarray:
    """Return as many normal vectors as there are, with their mean and covariance."""
    centre, size = vectors.mean(axis=0), len(vectors)
    mixed = np.random.default_rng(seed).normal(size=(size, size)) @ (vectors - centre)
    return np.asarray(centre + mixed / np.sqrt(size), np.float32)
