"""What clusters are worth: agreement with classes, other numbers and algorithms, gaps."""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.stats import gaussian_kde
from sklearn import metrics
from sklearn.cluster import HDBSCAN, AgglomerativeClustering
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture
from threadpoolctl import threadpool_limits

from sentigeo.analysis.clusters import NOISE, Clusters, align_clusters, find_clusters, sort_rows
from sentigeo.analysis.maps import place_between
from sentigeo.cores import track
from sentigeo.stats import Estimate, bootstrap, bootstrap_index, exactly, share

COMPONENTS = 50  # principal components that the other algorithms see
STUDY_STARTS = 2  # initialisations of K-Means in a study of k, for texts and for clouds alike
SPLITS = 10  # ways to cut the texts in two halves
CLOUDS = 5  # clouds without groups that the texts are compared with
SPLIT_STARTS = 3  # initialisations of K-Means in each half
GROUPS, PARTLY = 0.4, 0.2  # lead over such clouds from which clusters are called groups
INDICES: dict[str, Callable[..., float]] = {
    "ari": metrics.adjusted_rand_score,
    "ami": metrics.adjusted_mutual_info_score,
    "v_measure": metrics.v_measure_score,
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
    """Estimate how far (n,) groups, and classes they stand for (`answers`), agree with labels."""

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
    """Return the mean accuracy of matching groups with shuffled labels: the best of chance."""
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


def study_k(vectors: np.ndarray, labels: np.ndarray, numbers: Sequence[int]) -> pd.DataFrame:
    """Try several numbers of clusters; `gap` compares inertia with that of evenly spread clouds."""
    clouds = [_uniform_cloud(vectors, seed) for seed in range(CLOUDS)]
    rows = []
    for k in numbers:
        found, *evenly = (find_clusters(v, k, starts=STUDY_STARTS) for v in (vectors, *clouds))
        inertias = np.log([clusters.inertia for clusters in evenly])
        silhouette = metrics.silhouette_score(vectors, found.members) if k > 1 else np.nan
        gap = np.mean(inertias) - np.log(found.inertia)
        error = np.std(inertias) * np.sqrt(1 + 1 / CLOUDS)
        ari = metrics.adjusted_rand_score(labels, found.members)
        rows.append((k, found.inertia, silhouette, gap, error, ari))
    return pd.DataFrame(rows, columns=["k", "inertia", "silhouette", "gap", "gap_error", "ari"])


def choose_k(study: pd.DataFrame) -> int | None:
    """Return the smallest k whose gap the next one does not surpass by more than its error."""
    # Tibshirani, Walther and Hastie (2001); there is none if the gap grows to the end.
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
    """Return the (n,) clusters that other algorithms find; HDBSCAN chooses k, its noise is -1."""
    order = sort_rows(vectors, k)
    pca = PCA(min(COMPONENTS, *vectors.shape), svd_solver="full")
    with threadpool_limits(1):
        reduced = pca.fit_transform(vectors[order])
        mixture = GaussianMixture(k, covariance_type="diag", n_init=3, random_state=0)
        found = {
            "Ward": AgglomerativeClustering(k).fit_predict(reduced),
            "Gaussian mixture": mixture.fit_predict(reduced),
            "HDBSCAN": HDBSCAN(max(5, len(vectors) // 50), copy=True).fit_predict(reduced),
        }
    back = np.argsort(order)
    return {name: np.asarray(members)[back] for name, members in found.items()}


def compare_algorithms(vectors: np.ndarray, labels: np.ndarray, k: int) -> pd.DataFrame:
    """Compare clusters of several algorithms with labels; `estimate` is the share that agrees."""
    found = {"K-Means": find_clusters(vectors, k).members} | find_other_clusters(vectors, k)
    rows = []
    for name, groups in found.items():
        noise = groups == NOISE
        agreement = share(align_clusters(labels, groups) == labels)
        rows.append((name, len(np.unique(groups[~noise])), float(noise.mean()), agreement))
    return pd.DataFrame(rows, columns=["name", "clusters", "noise", "estimate"])


def estimate_dip(clusters: Clusters, vectors: np.ndarray, resamples: int) -> Estimate:
    """Estimate how far density drops between clusters, at the pair where it drops least."""
    # K-Means cuts anything; between groups fewer texts lie. Vectors that were clustered flatter it.
    members, along = clusters.assign(vectors), []
    for pair in combinations(range(len(clusters.centroids)), 2):
        positions = place_between(vectors[np.isin(members, pair)], *clusters.centroids[list(pair)])
        if min((positions < 0).sum(), (positions > 0).sum()) < 2:
            return exactly(np.nan, len(positions))
        along.append(positions)
    shallowest = min(along, key=dip_depth)
    return bootstrap(lambda rows: dip_depth(shallowest[rows]), len(shallowest), resamples)


def dip_depth(positions: np.ndarray) -> float:
    """Return how far density drops between centroids at -1 and 1: 0 for one mode, 1 for a gap."""
    grid = np.linspace(-2, 2, 101)
    density = gaussian_kde(positions)(grid)
    between = np.flatnonzero(np.abs(grid) <= 1)
    dip = between[density[between].argmin()]
    lower = min(density[: dip + 1].max(), density[dip:].max())
    return float(1 - density[dip] / lower)


def study_stability(vectors: np.ndarray, numbers: Sequence[int]) -> pd.DataFrame:
    """Try several numbers of clusters, from 2, of (n, d) vectors of which no two are alike.

    `stability` is how far clusters found in either half of the texts agree on all (ARI), `spread`
    its deviation over splits. A long cloud without groups is cut at the same place again, too: so
    `cloud` is the stability in normal noise of the same covariance, and `lead` the difference.
    """
    clouds = [_normal_cloud(vectors, seed) for seed in range(CLOUDS)]
    rows = []
    for k in track(list(numbers), "trying numbers of clusters"):
        found = [_agreement_of_halves(vectors, k, seed) for seed in range(SPLITS)]
        noise = [_agreement_of_halves(clouds[seed % CLOUDS], k, seed) for seed in range(SPLITS)]
        members = find_clusters(vectors, k, starts=SPLIT_STARTS).members
        silhouette = metrics.silhouette_score(vectors, members)
        mean, cloud = np.mean(found), np.mean(noise)
        rows.append((k, mean, np.std(found, ddof=1), cloud, mean - cloud, silhouette))
    return pd.DataFrame(rows, columns=["k", "stability", "spread", "cloud", "lead", "silhouette"])


def pick_stable(study: pd.DataFrame) -> int:
    """Return the k that leads clouds without groups by most; the smallest if none leads them."""
    leads = study["lead"].to_numpy()
    return int(study["k"].iloc[leads.argmax()] if leads.max() >= PARTLY else study["k"].min())


def possible_numbers(different: int, asked: int | None) -> list[int]:
    """Return values of k to try on a number of different vectors: from 2, and the one asked for."""
    # Either half has two vectors for each cluster; for the number asked for, one will do.
    numbers = set(range(2, max(2, min(10, different // 4)) + 1))
    return sorted(numbers | ({asked} if asked and asked <= different // 2 else set()))


def _agreement_of_halves(vectors: np.ndarray, k: int, seed: int) -> float:
    order = np.random.default_rng(seed).permutation(len(vectors))
    halves = order[: len(order) // 2], order[len(order) // 2 :]
    found = [find_clusters(vectors[half], k, seed, SPLIT_STARTS) for half in halves]
    return float(metrics.adjusted_rand_score(*(clusters.assign(vectors) for clusters in found)))


def _uniform_cloud(vectors: np.ndarray, seed: int) -> np.ndarray:
    """Fill the box around vectors, its sides along their principal components, evenly."""
    box = PCA(svd_solver="full").fit_transform(vectors)
    cloud = np.random.default_rng(seed).uniform(box.min(axis=0), box.max(axis=0), box.shape)
    return np.asarray(cloud, np.float32)  # a rotation back would not change any distance


def _normal_cloud(vectors: np.ndarray, seed: int) -> np.ndarray:
    centre, size = vectors.mean(axis=0), len(vectors)
    mixed = np.random.default_rng(seed).normal(size=(size, size)) @ (vectors - centre)
    return np.asarray(centre + mixed / np.sqrt(size), np.float32)
