"""Directions: the offset between two means as one axis, such as that of sentiment."""

from dataclasses import dataclass

import numpy as np

from sentigeo.errors import UserError


@dataclass(frozen=True)
class Direction:
    """An axis through two means.

    Attributes:
        middle: (d,) the point half-way between them.
        axis: (d,) scaled so that the means lie at -1 and +1.
    """

    middle: np.ndarray
    axis: np.ndarray

    def place(self, vectors: np.ndarray) -> np.ndarray:
        """Return the (n,) positions of (n, d) vectors along the axis."""
        return np.asarray((vectors - self.middle) @ self.axis)


def class_direction(vectors: np.ndarray, labels: np.ndarray) -> Direction:
    """Return the direction from the mean of class 0 to the mean of class 1.

    Args:
        vectors: (n, d).
        labels: (n,) zeros and ones.
    """
    if set(np.unique(labels)) != {0, 1}:
        raise UserError("A direction between classes needs vectors of exactly two classes.")
    return direction_between(*(vectors[labels == number].mean(axis=0) for number in (0, 1)))


def direction_between(low: np.ndarray, high: np.ndarray) -> Direction:
    """Return the direction from one (d,) mean to another."""
    half = (high - low) / 2
    length = float(half @ half)
    if not length > 0:
        raise UserError("The means are the same: there is no direction between them.")
    return Direction((low + high) / 2, half / length)


def fisher_ratio(positions: np.ndarray, labels: np.ndarray) -> float:
    """Return the squared gap of two class means over the sum of the classes' variances."""
    low, high = positions[labels == 0], positions[labels == 1]
    return float((high.mean() - low.mean()) ** 2 / (high.var(ddof=1) + low.var(ddof=1)))
