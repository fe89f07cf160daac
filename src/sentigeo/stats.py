"""Intervals: how far a number can be trusted."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

CONFIDENCE = 0.95
HALVES = 30  # half-samples behind an interval
NUMBERS = ("value", "low", "high")
Statistic = Callable[[np.ndarray], float]  # of the cases with the (m,) numbers that it is given


@dataclass(frozen=True)
class Estimate:
    """A number, its 95% interval and how many cases are behind it."""

    value: float
    low: float
    high: float
    n: int
    signed: bool = False  # whether it is written with its sign, as a difference is

    def compare(self, value: float) -> str:
        """Say where the whole interval lies: `below`, `above` or `not distinguishable from`."""
        if self.high < value:
            return "below"
        return "above" if self.low > value else "not distinguishable from"

    def over(self, known: float) -> "Estimate":
        """Return how far this lies above a number that is known."""
        return Estimate(self.value - known, self.low - known, self.high - known, self.n, True)

    def brief(self, spec: str = "") -> str:
        """Write as `0.873 [0.862, 0.884]`, which a column may break before the interval only."""
        value, low, high = self._write(spec)
        return f"{value} [{low},\u00a0{high}]"

    def __format__(self, spec: str) -> str:
        """Write as `0.873 [0.862, 0.884; n = 4,000]`; the spec formats the three numbers."""
        value, low, high = self._write(spec)
        return f"{value} [{low}, {high}; n = {self.n:,}]"

    def points(self) -> str:
        """Write a difference of shares as `+1.2 points (+0.4 to +2.0)`."""
        value, low, high = (100 * getattr(self, name) for name in NUMBERS)
        return f"{value:+z.1f} points ({low:+z.1f} to {high:+z.1f})"

    def _write(self, spec: str) -> list[str]:
        """Write the three numbers; what is rounded to 0 has no minus sign."""
        spec = (spec or ("+.3f" if self.signed else ".3f")).replace(".", "z.", 1)
        return [format(getattr(self, name), spec) for name in NUMBERS]


def exactly(value: float, n: int = 1) -> Estimate:
    """Return a number whose interval is the number itself: a count, an extreme, or NaN."""
    return Estimate(float(value), float(value), float(value), n)


def range_over(values: ArrayLike) -> Estimate:
    """Return the mean of some values with their range in place of an interval."""
    every = np.asarray(values, dtype=float)
    return Estimate(float(every.mean()), float(every.min()), float(every.max()), len(every))


def list_estimates(found: Mapping[Any, Estimate], *columns: str) -> pd.DataFrame:
    """Lay estimates out as a table: the parts of their keys in the named columns, `estimate`."""
    keys = [key if isinstance(key, tuple) else (key,) for key in found]
    frame = pd.DataFrame(keys, columns=list(columns))
    return frame.assign(estimate=pd.Series(list(found.values()), dtype=object))


def unfold(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with its column `estimate` spread over `value`, `low`, `high` and `n`."""
    found = frame["estimate"]
    parts = {name: [getattr(one, name) for one in found] for name in (*NUMBERS, "n")}
    return frame.drop(columns="estimate").assign(**parts)


def share(hits: ArrayLike) -> Estimate:
    """Estimate the share of independent cases that are hits, with Wilson's interval."""
    hits = np.asarray(hits, dtype=bool)
    if not len(hits):
        raise ValueError("a share needs at least one case")
    interval = stats.binomtest(int(hits.sum()), len(hits)).proportion_ci(CONFIDENCE, "wilson")
    return Estimate(float(hits.mean()), float(interval.low), float(interval.high), len(hits))


def share_of_few(shares: ArrayLike) -> Estimate:
    """Estimate the mean of n shares of repeated runs with Wilson's interval over the n cases."""
    cases = np.asarray(shares, dtype=float)
    n, mean = len(cases), float(cases.mean())
    z2 = float(stats.norm.ppf((1 + CONFIDENCE) / 2)) ** 2
    centre = (mean + z2 / (2 * n)) / (1 + z2 / n)
    half = np.sqrt(z2) / (1 + z2 / n) * np.sqrt(mean * (1 - mean) / n + z2 / (4 * n**2))
    low, high = min(mean, float(centre - half)), max(mean, float(centre + half))
    return Estimate(mean, max(0.0, low), min(1.0, high), n)


def mean_share(shares: ArrayLike, lowest: float = 0.0) -> Estimate:
    """Estimate the mean of a share over repeated runs, with Student's interval; one has none."""
    runs = np.asarray(shares, dtype=float)
    error = stats.sem(runs) if len(runs) > 1 else np.nan
    return _student(runs, error, len(runs) - 1, lowest)


def mean_over_strata(values: np.ndarray, lowest: float = 0.0) -> Estimate:
    """Estimate the mean of (groups, runs) repeated runs of fixed groups, with Student's interval.

    How far groups lie apart does not widen it: it speaks of these groups, and of other runs.
    """
    groups, runs = values.shape
    error = np.sqrt(values.var(axis=1, ddof=1).mean() / values.size) if runs > 1 else np.nan
    return _student(values, error, groups * (runs - 1), lowest)


def _student(values: np.ndarray, error: float, freedom: int, lowest: float) -> Estimate:
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom) * error)
    return _around(float(values.mean()), half, values.size, lowest)


def _around(value: float, half: float, n: int, lowest: float) -> Estimate:
    """Return a share with an interval of a half-width that stays within what is possible."""
    if not np.isfinite(half):
        return Estimate(value, float("nan"), float("nan"), n)
    return Estimate(value, max(lowest, value - half), min(1.0, value + half), n)


def mean_over_runs(hits: ArrayLike, resamples: int, groups: ArrayLike | None = None) -> Estimate:
    """Estimate a share from (runs, n) hits, or (n,) of a single run, by resampling runs and cases.

    Cases of one of (n,) groups are resampled together: the two sides of a challenge pair are not
    independent.
    """
    values = np.atleast_2d(np.asarray(hits, dtype=float))
    runs, cases = values.shape
    codes = np.arange(cases) if groups is None else np.unique(groups, return_inverse=True)[1]
    sizes = np.bincount(codes)
    sums = np.stack([np.bincount(codes, weights=run) for run in values])
    rng = np.random.default_rng(0)
    means = []
    for _ in range(resamples):
        drawn = rng.integers(len(sizes), size=len(sizes))
        chosen = rng.integers(runs, size=runs)
        means.append(sums[np.ix_(chosen, drawn)].sum() / (runs * sizes[drawn].sum()))
    return Estimate(float(values.mean()), *_middle(np.array(means)), cases)


def paired_difference(
    after: ArrayLike, before: ArrayLike, resamples: int, groups: ArrayLike | None = None
) -> Estimate:
    """Estimate the rise of a share over runs of equal seeds and cases, as `mean_over_runs` does."""
    change = np.asarray(after, dtype=float) - np.asarray(before, dtype=float)
    return replace(mean_over_runs(change, resamples, groups), signed=True)


def bootstrap(statistic: Statistic, cases: int, resamples: int) -> Estimate:
    """Estimate any statistic of n cases."""
    found = _resample(statistic, cases, resamples)
    return Estimate(statistic(np.arange(cases)), *_middle(found), cases)


def bootstrap_index(statistic: Statistic, cases: int, resamples: int) -> Estimate:
    """Estimate an index of agreement of n cases, at most 1.

    A case that is drawn twice agrees with itself, which pushes the index up; so what resamples
    give is moved until its mean is the value of all cases.
    """
    value = statistic(np.arange(cases))
    found = _resample(statistic, cases, resamples)
    low, high = _middle(found - found.mean() + value)
    return Estimate(value, low, min(high, 1.0), cases)


def _resample(statistic: Statistic, cases: int, resamples: int) -> np.ndarray:
    draws = np.random.default_rng(0).integers(cases, size=(resamples, cases))
    return np.array([statistic(drawn) for drawn in draws])


def _middle(values: np.ndarray) -> tuple[float, float]:
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)


def balanced_share(hits: np.ndarray, groups: np.ndarray, resamples: int) -> Estimate:
    """Estimate the mean over (n,) groups of the share of (n,) hits: no group drowns another."""
    codes = np.unique(groups, return_inverse=True)[1]

    def mean_of_shares(rows: np.ndarray) -> float:
        sizes, sums = np.bincount(codes[rows]), np.bincount(codes[rows], weights=hits[rows])
        drawn = sizes > 0  # a resample may miss a group
        return float((sums[drawn] / sizes[drawn]).mean())

    return bootstrap(mean_of_shares, len(hits), resamples)


def balanced_mean_over_runs(hits: ArrayLike, groups: np.ndarray, resamples: int) -> Estimate:
    """Estimate the mean over (n,) groups of the share of (runs, n) hits, resampled by group."""
    values, rng = np.asarray(hits, dtype=float), np.random.default_rng(0)
    inside = [np.flatnonzero(groups == group) for group in np.unique(groups)]
    runs, *cases = (  # (resamples, m) weights of each run, and of each case of a group
        rng.multinomial(m, np.full(m, 1 / m), size=resamples) / m
        for m in (len(values), *map(len, inside))
    )
    means, shares = runs @ values, [values[:, own].mean() for own in inside]
    found = [(means[:, own] * drawn).sum(axis=1) for own, drawn in zip(inside, cases, strict=True)]
    return Estimate(float(np.mean(shares)), *_middle(np.mean(found, axis=0)), values.shape[1])


def half_samples(
    statistic: Statistic, cases: int, halves: int = HALVES, lowest: float = 0.0
) -> Estimate:
    """Estimate a statistic of at most 1 that repeated cases would distort, such as a variance.

    A half of the cases drawn without replacement varies around the whole as much as the whole
    varies around the truth; a bootstrap would draw cases twice and be off to one side. The lowest
    value is 0 for a share, -1 for a cosine or a difference.
    """
    return half_sample_all(lambda rows: {"": statistic(rows)}, cases, halves, {"": lowest})[""]


def half_sample_all(
    statistics: Callable[[np.ndarray], dict[str, float]],
    cases: int,
    halves: int = HALVES,
    lowest: Mapping[str, float] | None = None,
) -> dict[str, Estimate]:
    """Estimate several statistics by name from the same halves; see `half_samples`."""
    whole, rng = statistics(np.arange(cases)), np.random.default_rng(0)
    found = [statistics(rng.permutation(cases)[: cases // 2]) for _ in range(halves)]
    estimates = {}
    for name, value in whole.items():
        deviation = np.std(np.array([half[name] for half in found]), ddof=1)
        margin = float(stats.norm.ppf((1 + CONFIDENCE) / 2) * deviation)
        estimates[name] = _around(value, margin, cases, (lowest or {}).get(name, 0.0))
    return estimates


def mcnemar(after: ArrayLike, before: ArrayLike) -> float:
    """Return the exact two-sided p-value that two classifiers err alike on the same cases."""
    after, before = np.asarray(after, dtype=bool), np.asarray(before, dtype=bool)
    gained, lost = int((after & ~before).sum()), int((before & ~after).sum())
    return float(stats.binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0
