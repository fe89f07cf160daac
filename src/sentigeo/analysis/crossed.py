"""Means over runs and cases that are both samples, and whether an effect of interest is excluded.

Every run answers every case, so the two are crossed: the intervals speak of other runs and of
other cases at once.
"""

from dataclasses import replace

import numpy as np
from scipy import stats

from sentigeo.stats import CONFIDENCE, Estimate

EFFECT = "effect of interest"
SOME = "differs from 0, size undecided"
SMALL = "effect too small to be of interest"
EXCLUDED = "no effect of interest"
UNDECIDED = "undecided"
UNBOUNDED = (-np.inf, np.inf)


def crossed_mean(values: np.ndarray, bounds: tuple[float, float] = UNBOUNDED) -> Estimate:
    """Estimate the mean of (runs, cases) values, with Student's interval within the bounds.

    Degrees of freedom are Satterthwaite's: the smaller number less one would be safe, but with ten
    runs that hardly differ the interval would be a seventh wider than it need be. In simulations
    the interval covers 94 to 98% from five runs on, but down to 88% with two. A single run has the
    one-sample interval over its cases.
    """
    error, freedom = _crossed_error(values)
    value, half = float(values.mean()), float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom) * error)
    low, high = np.clip([value - half, value + half], *bounds)
    return Estimate(value, float(low), float(high), values.shape[1])


def crossed_difference(after: np.ndarray, before: np.ndarray) -> Estimate:
    """Estimate the mean change of (runs, cases) values; runs are paired by seed."""
    return replace(crossed_mean(np.subtract(after, before, dtype=float)), signed=True)


def equivalence(values: np.ndarray, margin: float) -> float:
    """Return the p-value of TOST: is the mean of (runs, cases) values within plus/minus margin?

    Of the two one-sided t tests the one nearer to its margin decides.
    """
    error, freedom = _crossed_error(values)
    room = margin - abs(float(values.mean()))
    if error == 0:
        return float(room <= 0)
    return float(stats.t.sf(room / error, freedom))


def describe_effect(estimate: Estimate, p: float, margin: float) -> str:
    """Say what a difference and its `equivalence` within a margin show, in one of five phrases."""
    if estimate.compare(margin) == "above" or estimate.compare(-margin) == "below":
        return EFFECT
    excluded = p < 1 - CONFIDENCE
    if estimate.compare(0) in ("above", "below"):
        return SMALL if excluded else SOME
    return EXCLUDED if excluded else UNDECIDED


def _crossed_error(values: np.ndarray) -> tuple[float, float]:
    """Return the standard error of the mean of (runs, cases) values and its degrees of freedom.

    With mean squares MS of a two-way analysis of variance, its square is
    (MS runs + MS cases - MS residual) / (runs * cases), at least that of either factor alone.
    """
    if min(values.shape) == 1:
        return float(stats.sem(values, axis=None)), values.size - 1
    runs, cases = values.shape
    freedoms = np.array([runs - 1, cases - 1])
    by_run, by_case = values.mean(axis=1, keepdims=True), values.mean(axis=0, keepdims=True)
    squares = np.array([cases * by_run.var(ddof=1), runs * by_case.var(ddof=1)])
    rest = (values - by_run - by_case + values.mean()) ** 2
    residual = rest.sum() / freedoms.prod()
    larger, smaller = np.argsort(-squares, kind="stable")
    if squares[smaller] <= residual:
        return float(np.sqrt(squares[larger] / values.size)), float(freedoms[larger])
    total = squares.sum() - residual
    terms = (squares**2 / freedoms).sum() + residual**2 / freedoms.prod()
    return float(np.sqrt(total / values.size)), float(total**2 / terms)
