"""What can be done to vectors before their cosines are taken; learned from training texts alone."""

from collections.abc import Callable

import numpy as np

from sentigeo.cosine import unit_rows
from sentigeo.errors import UserError

TOP = 3  # principal components that are removed
FLAT = 1e-9  # share of the largest variance below which a direction is left out

Transform = Callable[[np.ndarray], np.ndarray]


def learn_transforms(train: np.ndarray) -> dict[str, Transform]:
    """Return what can be done to (n, d) vectors, by name.

    Args:
        train: (m, d) vectors to learn means, deviations and components from.
    """
    if len(train) < 2 or not np.isfinite(train).all():
        raise UserError("At least two vectors of numbers are needed to learn a transformation.")
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1)
    variances, axes = np.linalg.eigh(np.cov(train.astype(np.float64), rowvar=False))
    variances, axes = variances[::-1], axes[:, ::-1]
    kept = variances > FLAT * max(variances[0], np.finfo(float).tiny)
    top = axes[:, :TOP]
    whiten = axes[:, kept] / np.sqrt(variances[kept])
    return {
        "raw": lambda vectors: vectors,
        "normalised": unit_rows,
        "centred": lambda vectors: vectors - mean,
        "standardised": lambda vectors: (vectors - mean) / deviation,
        f"top {TOP} removed": lambda vectors: (vectors - mean) - (vectors - mean) @ top @ top.T,
        "whitened": lambda vectors: (vectors - mean) @ whiten,
    }
