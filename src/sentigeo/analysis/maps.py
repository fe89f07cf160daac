"""Maps in two dimensions and how far to trust them; places on the line between class means."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.manifold import trustworthiness
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from sentigeo.cache import Store, load_array, package_versions, save_arrays
from sentigeo.cores import run_in_processes
from sentigeo.errors import UserError
from sentigeo.hashes import hash_array, hash_code
from sentigeo.stats import Estimate, bootstrap, half_samples, list_estimates, range_over

NEIGHBOURS = 15  # of a point, for UMAP and for the measures of faithfulness
Drawn = tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]  # points, and how to place others
Wanted = Sequence[tuple[str, int]]  # methods and seeds


@dataclass(frozen=True)
class Map:
    """Points in the plane, drawn by `pca`, `tsne` or `umap`."""

    method: str
    seed: int
    fitted: np.ndarray  # (n, 2) the vectors that the map was fitted on
    placed: np.ndarray  # (m, 2) other vectors, placed into the finished map


def draw_maps(
    fitted: np.ndarray, placed: np.ndarray, wanted: Wanted, perplexity: float
) -> Iterator[Map]:
    """Draw maps of (n, d) fitted and (m, d) placed vectors, one per core at a time, in order."""
    _check_vectors(fitted)
    if not np.isfinite(placed).all():
        raise UserError("The vectors to be placed hold values that are not numbers.")
    most = largest_perplexity(len(fitted))
    if not 1 <= perplexity <= most:
        asked = f"A perplexity of {perplexity:g} is not possible with {len(fitted)} points"
        raise UserError(f"{asked}: choose one from 1 to {most}.")
    if "umap" in [method for method, _ in wanted] and len(fitted) <= NEIGHBOURS:
        raise UserError(f"A map needs more than {NEIGHBOURS} points, not {len(fitted)}.")
    jobs = [(fitted, placed, method, seed, perplexity) for method, seed in wanted]
    return run_in_processes(draw_map, jobs, "drawing maps")


def load_maps(
    store: Store, fitted: np.ndarray, placed: np.ndarray, wanted: Wanted, perplexity: float
) -> list[Map]:
    """Return maps from the store; draw those of these vectors that are not there yet."""
    versions = package_versions("openTSNE", "umap-learn", "scikit-learn", "numpy")
    vectors = [hash_array(fitted), hash_array(placed)]
    base = {"vectors": vectors, "code": hash_code(__name__), "versions": versions}
    more = {"tsne": {"perplexity": perplexity}}
    keys = {(m, seed): base | {"method": m, "seed": seed} | more.get(m, {}) for m, seed in wanted}
    missing = [one for one in wanted if not store.find("maps", keys[one])]
    drawn = draw_maps(fitted, placed, missing, perplexity) if missing else iter(())
    for one, new in zip(missing, drawn, strict=True):
        arrays = {"fitted": new.fitted, "placed": new.placed}
        store.put("maps", keys[one], partial(save_arrays, arrays=arrays))
    found = []
    for one, key in keys.items():
        place = store.place("maps", key)
        found.append(Map(*one, load_array(place / "fitted.npy"), load_array(place / "placed.npy")))
    return found


def draw_map(
    fitted: np.ndarray, placed: np.ndarray, method: str, seed: int, perplexity: float
) -> Map:
    """Draw one map with one thread, so that the same seed gives the same map; see `draw_maps`."""
    draw = {"pca": _pca, "tsne": _tsne, "umap": _umap}[method]
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")  # what matters of them was checked before
        points, place = draw(fitted, seed, perplexity)
        others = place(placed) if len(placed) else np.empty((0, 2))
    return Map(method, seed, np.asarray(points, np.float32), np.asarray(others, np.float32))


def _pca(fitted: np.ndarray, seed: int, perplexity: float) -> Drawn:
    pca = PCA(2, svd_solver="covariance_eigh").fit(fitted)
    return pca.transform(fitted), pca.transform


def _tsne(fitted: np.ndarray, seed: int, perplexity: float) -> Drawn:
    from openTSNE import TSNE  # slow to import, and only needed here

    # A theta of 0.5 takes half as long again, and its maps are no more faithful.
    tsne = TSNE(
        perplexity=perplexity, random_state=seed, n_jobs=1, neighbors="exact",
        negative_gradient_method="bh", theta=0.7,
    ).fit(fitted)  # fmt: skip
    return tsne, partial(tsne.transform, perplexity=min(5, perplexity))


def _umap(fitted: np.ndarray, seed: int, perplexity: float) -> Drawn:
    from umap import UMAP  # slow to import, and only needed here

    # Exact distances: the approximate search compiles for minutes before it begins.
    umap = UMAP(n_neighbors=NEIGHBOURS, metric="precomputed", random_state=seed, n_jobs=1)
    points = umap.fit_transform(pairwise_distances(fitted))
    return points, lambda placed: umap.transform(pairwise_distances(placed, fitted))


def some_rows(count: int, most: int) -> np.ndarray:
    """Return all rows, or as many as allowed, drawn at random, in order."""
    return np.sort(np.random.default_rng(0).permutation(count)[:most])


def largest_perplexity(points: int) -> int:
    """Return the largest perplexity that a map of a given number of points allows."""
    return (points - 1) // 3


def explained_variance(vectors: np.ndarray) -> np.ndarray:
    """Return the share of the variance that each principal component explains, exactly."""
    _check_vectors(vectors)
    return np.asarray(PCA(svd_solver="covariance_eigh").fit(vectors).explained_variance_ratio_)


def estimate_variance(vectors: np.ndarray, halves: int) -> Estimate:
    """Estimate the share of the variance that two principal components explain together."""
    return half_samples(
        lambda rows: float(explained_variance(vectors[rows])[:2].sum()), len(vectors), halves
    )


def faithfulness(vectors: np.ndarray, points: np.ndarray) -> dict[str, float]:
    """Measure how well (n, 2) points keep the nearest neighbours of (n, d) vectors; 1 is best."""
    neighbours = _count_neighbours(len(vectors))
    trust = float(trustworthiness(vectors, points, n_neighbors=neighbours))
    return {"trustworthiness": trust, "overlap": neighbour_overlap(vectors, points, neighbours)}


def compare_maps(maps: dict[str, list[Map]], vectors: dict[str, np.ndarray]) -> pd.DataFrame:
    """Measure the faithfulness of maps, by stage, to (n, d) vectors: mean and range over seeds."""
    rows = [
        {"stage": stage, "method": drawn.method} | faithfulness(vectors[stage], drawn.fitted)
        for stage, several in maps.items()
        for drawn in several
    ]
    measured = pd.DataFrame(rows).melt(["stage", "method"], var_name="measure")
    groups = measured.groupby(["stage", "method", "measure"], sort=False)["value"]
    found = {key: range_over(values) for key, values in groups}
    return list_estimates(found, "stage", "method", "measure")


def compare_seeds(maps: dict[str, list[Map]], method: str) -> pd.DataFrame:
    """Compare the neighbourhoods of maps of other seeds with the first seed's, by stage."""
    rows = []
    for stage, several in maps.items():
        points = [drawn.fitted for drawn in several if drawn.method == method]
        neighbours = _count_neighbours(len(points[0]))
        shared = [neighbour_overlap(points[0], other, neighbours) for other in points[1:]]
        rows.append((stage, len(points), min(shared, default=None), max(shared, default=None)))
    return pd.DataFrame(rows, columns=["vectors", "seeds", "least shared", "most shared"])


def neighbour_overlap(first: np.ndarray, second: np.ndarray, neighbours: int) -> float:
    """Return the mean share of nearest neighbours that the same n texts have in both arrays."""
    near = [
        NearestNeighbors(n_neighbors=neighbours).fit(points).kneighbors(return_distance=False)
        for points in (first, second)
    ]
    shared = [len(np.intersect1d(a, b)) for a, b in zip(*near, strict=True)]
    return float(np.mean(shared) / neighbours)


def _count_neighbours(points: int) -> int:
    """Return how many neighbours to compare on a map; few points do not have as many as usual."""
    return min(NEIGHBOURS, (points - 1) // 2)


def _check_vectors(vectors: np.ndarray) -> None:
    if not np.isfinite(vectors).all():
        raise UserError("The vectors hold values that are not numbers.")
    if len(vectors) < 2 or np.ptp(vectors, axis=0).max() == 0:
        raise UserError("There is nothing to map: at least two different vectors are needed.")


def place_between(vectors: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return the (n,) positions of (n, d) vectors along a line through two means at -1 and 1."""
    half = (high - low) / 2
    length = float(half @ half)
    if not length > 0:
        raise UserError("The means are the same: there is no direction between them.")
    return np.asarray((vectors - (low + high) / 2) @ (half / length))


def place_between_classes(vectors: np.ndarray, train: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the (n,) positions of (n, d) vectors between the training means of two classes."""
    if set(np.unique(labels)) != {0, 1}:
        raise UserError("A direction between classes needs vectors of exactly two classes.")
    return place_between(vectors, *(train[labels == number].mean(axis=0) for number in (0, 1)))


def estimate_fisher_ratio(positions: np.ndarray, labels: np.ndarray, resamples: int) -> Estimate:
    """Estimate the squared gap of two class means over the sum of the classes' variances."""

    def ratio(rows: np.ndarray) -> float:
        low, high = (positions[rows][labels[rows] == number] for number in (0, 1))
        return float((high.mean() - low.mean()) ** 2 / (high.var(ddof=1) + low.var(ddof=1)))

    return bootstrap(ratio, len(labels), resamples)
