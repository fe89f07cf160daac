"""How alike vectors are."""

import numpy as np
import pandas as pd
from scipy import stats

from sentigeo.stats import CONFIDENCE, Estimate, mean_over_runs
from sentigeo.vectors import Vectors


def row_cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the (n,) cosine of each row of one (n, d) array with the same row of another."""
    a, b = first.astype(np.float64), second.astype(np.float64)
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return np.asarray(np.einsum("nd,nd->n", a, b) / norms)


def linear_cka(first: np.ndarray, second: np.ndarray) -> float:
    """Return the linear centred kernel alignment of two sets of vectors of the same n texts.

    It is 1 if one set is a rotated, shifted and scaled copy of the other, and 0 if nothing
    linear connects them (Kornblith et al., 2019).

    Args:
        first: (n, d) vectors.
        second: (n, e) vectors.
    """
    a, b = first - first.mean(axis=0), second - second.mean(axis=0)
    shared = np.linalg.norm(a.T @ b) ** 2
    return min(1.0, float(shared / (np.linalg.norm(a.T @ a) * np.linalg.norm(b.T @ b))))


def estimate_cka(first: np.ndarray, second: np.ndarray, resamples: int = 100) -> Estimate:
    """Estimate the linear alignment, its interval by the spread over random halves of the texts.

    A half drawn without replacement varies around the whole as the whole varies around the truth;
    the usual bootstrap would be off, because texts that are drawn twice make sets look more alike.
    """
    value, rng = linear_cka(first, second), np.random.default_rng(0)
    halves = (rng.permutation(len(first))[: len(first) // 2] for _ in range(resamples))
    spread = np.std([linear_cka(first[half], second[half]) for half in halves], ddof=1)
    margin = float(stats.norm.ppf((1 + CONFIDENCE) / 2) * spread)
    return Estimate(value, max(0.0, value - margin), min(1.0, value + margin), len(first))


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
        `low`, `high`, `n`.
    """
    found = []
    for layer, pooling in before.kinds:
        old, new = (vectors.matrix(layer, pooling)[rows] for vectors in (before, after))
        cosine = mean_over_runs(row_cosines(old, new)[None], resamples)
        measures = {"linear alignment": estimate_cka(old, new), "mean cosine": cosine}
        found += [
            {"group": group, "name": pooling, "layer": layer, **vars(estimate)}
            for group, estimate in measures.items()
        ]
    return pd.DataFrame(found)
