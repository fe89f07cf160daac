"""How alike vectors are."""

from functools import partial

import numpy as np
import pandas as pd

from sentigeo.stats import HALVES, half_samples, mean_over_runs
from sentigeo.vectors import Vectors

NO_VARIANCE = 1e-6  # what rounding leaves of equal float32 vectors


def row_cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the (n,) cosine of each row of one (n, d) array with the same row of another."""
    a, b = first.astype(np.float64), second.astype(np.float64)
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return np.asarray(np.einsum("nd,nd->n", a, b) / norms)


def linear_cka(first: np.ndarray, second: np.ndarray) -> float:
    """Return the linear centred kernel alignment of two sets of vectors of the same n texts.

    It is 1 if one set is a rotated, shifted and scaled copy of the other (Kornblith et al., 2019).
    Unrelated sets come close to 0 only if n is much larger than d: normal vectors reach about
    d / (n + d). A set without variance has no alignment: the result is not a number.

    Args:
        first: (n, d) vectors.
        second: (n, e) vectors.
    """
    a, b = (v.astype(np.float64) for v in (first, second))
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    if min(np.abs(a).max(), np.abs(b).max()) < NO_VARIANCE:
        return float("nan")
    shared = np.linalg.norm(a.T @ b) ** 2
    return min(1.0, float(shared / (np.linalg.norm(a.T @ a) * np.linalg.norm(b.T @ b))))


def shuffled_cka(first: np.ndarray, second: np.ndarray) -> float:
    """Return the alignment that two sets have by chance: that of one with the other shuffled."""
    return linear_cka(first, np.random.default_rng(0).permutation(second))


def compare_layers(
    before: Vectors, after: Vectors, rows: np.ndarray, resamples: int
) -> pd.DataFrame:
    """Compare the vectors of the same texts before and after, in every layer and pooling.

    Args:
        before: Vectors of all texts.
        after: Vectors of the same texts.
        rows: Texts to compare.
        resamples: Bootstrap resamples behind the interval of a mean cosine.

    Returns:
        Columns `group` (`linear alignment` or `mean cosine`), `name` (pooling), `layer`, `value`,
        `low`, `high`, `n`. Where all vectors are equal there is no alignment.
    """
    found = []
    for layer, pooling in before.kinds:
        old, new = (vectors.matrix(layer, pooling)[rows] for vectors in (before, after))
        cosine = mean_over_runs(row_cosines(old, new)[None], resamples)
        halves = HALVES if (layer, pooling) in after.kinds else 2  # what did not move does not vary
        cka = half_samples(partial(_cka_of, old, new), len(rows), halves)
        measures = {"linear alignment": cka, "mean cosine": cosine}
        found += [
            {"group": group, "name": pooling, "layer": layer, **vars(estimate)}
            for group, estimate in measures.items()
        ]
    return pd.DataFrame(found)


def _cka_of(first: np.ndarray, second: np.ndarray, rows: np.ndarray) -> float:
    return linear_cka(first[rows], second[rows])
