"""Intervals: how far a number can be trusted."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

CONFIDENCE = 0.95
HALVES = 30  # half-samples behind an interval


@dataclass(frozen=True)
class Estimate:
    """A number, its 95% interval and how many cases are behind it.

    Attributes:
        signed: Whether it is written with its sign, as a difference is.
    """

    value: float
    low: float
    high: float
    n: int
    signed: bool = False

    def compare(self, value: float) -> str:
        """Say where the whole interval lies: `below`, `above` or `not distinguishable from`."""
        if self.high < value:
            return "below"
        return "above" if self.low > value else "not distinguishable from"

    def over(self, known: float) -> "Estimate":
        """Return how far this lies above a number that is known."""
        return Estimate(self.value - known, self.low - known, self.high - known, self.n, True)

    def brief(self, spec: str = "") -> str:
        """Write as `0.873 [0.862, 0.884]`, for a table that gives its n elsewhere.

        A narrow column may break it before the interval, never within.
        """
        value, low, high = self._write(spec)
        return f"{value} [{low},\u00a0{high}]"

    def __format__(self, spec: str) -> str:
        """Write as `0.873 [0.862, 0.884; n = 4,000]`; the spec formats the three numbers."""
        value, low, high = self._write(spec)
        return f"{value} [{low}, {high}; n = {self.n:,}]"

    def _write(self, spec: str) -> list[str]:
        """Write the three numbers; what is rounded to 0 has no minus sign."""
        spec = (spec or ("+.3f" if self.signed else ".3f")).replace(".", "z.", 1)
        return [format(number, spec) for number in (self.value, self.low, self.high)]


def exactly(value: float, n: int = 1) -> Estimate:
    """Return a number that has no interval but itself, such as a count or an extreme."""
    return Estimate(float(value), float(value), float(value), n)


def range_over(values: ArrayLike) -> Estimate:
    """Return the mean of some values with their range in place of an interval."""
    every = np.asarray(values, dtype=float)
    return Estimate(float(every.mean()), float(every.min()), float(every.max()), len(every))


def list_estimates(found: Mapping[Any, Estimate], *columns: str) -> pd.DataFrame:
    """Lay estimates out as a table, one row per key, for tables and figures.

    The parts of a key, which may be a tuple, are in the named columns; `estimate` is the last.
    """
    keys = [key if isinstance(key, tuple) else (key,) for key in found]
    frame = pd.DataFrame(keys, columns=list(columns))
    return frame.assign(estimate=pd.Series(list(found.values()), dtype=object))


def unfold(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with its column `estimate` spread over `value`, `low`, `high` and `n`."""
    parts = {
        name: [getattr(estimate, name) for estimate in frame["estimate"]]
        for name in ("value", "low", "high", "n")
    }
    return frame.drop(columns="estimate").assign(**parts)


def no_estimate(n: int) -> Estimate:
    """Return an estimate of what n cases could not tell."""
    return Estimate(float("nan"), float("nan"), float("nan"), n)


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


def grouped_share(hits: np.ndarray, groups: np.ndarray, resamples: int, seed: int = 0) -> Estimate:
    """Estimate the share of (n,) hits that come in (n,) groups, by resampling whole groups.

    The two sides of a challenge pair are not independent: their interval is wider or narrower
    than that of as many separate texts.
    """
    _, codes = np.unique(groups, return_inverse=True)
    sizes = np.bincount(codes)
    sums = np.bincount(codes, weights=np.asarray(hits, dtype=float))
    draws = np.random.default_rng(seed).integers(len(sizes), size=(resamples, len(sizes)))
    means = sums[draws].sum(axis=1) / sizes[draws].sum(axis=1)
    return Estimate(float(sums.sum() / sizes.sum()), *_middle(means), len(codes))


def mean_share(shares: Sequence[float] | np.ndarray, lowest: float = 0.0) -> Estimate:
    """Estimate the mean of a share over repeated runs, with Student's interval.

    One run alone has no interval. The lowest possible value is 0 for a share, -1 for a difference.
    """
    runs = np.asarray(shares, dtype=float)
    error = stats.sem(runs) if len(runs) > 1 else np.nan
    return _student(runs, error, len(runs) - 1, lowest)


def mean_over_strata(values: np.ndarray, lowest: float = 0.0) -> Estimate:
    """Estimate the mean over fixed groups of repeated runs, with Student's interval.

    How far the (groups, runs) groups lie apart does not widen the interval: it speaks of these
    groups, and of other runs.
    """
    groups, runs = values.shape
    error = np.sqrt(values.var(axis=1, ddof=1).mean() / values.size) if runs > 1 else np.nan
    return _student(values, error, groups * (runs - 1), lowest)


def _student(values: np.ndarray, error: float, freedom: int, lowest: float) -> Estimate:
    """Return a mean of shares with Student's interval; without an error it has none."""
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, freedom) * error) if error == error else np.nan
    return _around(float(values.mean()), half, values.size, lowest)


def _around(value: float, half: float, n: int, lowest: float) -> Estimate:
    """Return a share with an interval of a half-width that stays within what is possible."""
    if not np.isfinite(half):
        return Estimate(value, float("nan"), float("nan"), n)
    return Estimate(value, max(lowest, value - half), min(1.0, value + half), n)


def mean_over_runs(hits: np.ndarray, resamples: int, groups: ArrayLike | None = None) -> Estimate:
    """Estimate a share over cases and repeated runs, by resampling both.

    Args:
        hits: (runs, n) values, one row per run and one column per case; or (n,) of a single run.
        resamples: Bootstrap resamples.
        groups: (n,) group of each case, resampled whole; every case is its own by default.
    """
    return _resample_both(np.atleast_2d(np.asarray(hits, dtype=float)), resamples, groups)


def paired_difference(
    after: np.ndarray, before: np.ndarray, resamples: int, groups: ArrayLike | None = None
) -> Estimate:
    """Estimate how much a share rises, both conditions run with the same seeds on the same cases.

    Args:
        after: (runs, n) values of the condition to be judged, or (n,) of a single run.
        before: The same of the condition that it is compared with.
        resamples: Bootstrap resamples over runs and cases.
        groups: As for `mean_over_runs`.
    """
    change = np.asarray(after, dtype=float) - np.asarray(before, dtype=float)
    return replace(_resample_both(np.atleast_2d(change), resamples, groups), signed=True)


def bootstrap(statistic: Callable[[np.ndarray], float], cases: int, resamples: int) -> Estimate:
    """Estimate any statistic of n cases, which maps (n,) drawn cases to its value."""
    found = _resample(statistic, cases, resamples)
    return Estimate(statistic(np.arange(cases)), *_middle(found), cases)


def bootstrap_index(
    statistic: Callable[[np.ndarray], float], cases: int, resamples: int
) -> Estimate:
    """Estimate an index of agreement, at most 1; arguments as for `bootstrap`.

    A case that is drawn twice agrees with itself, which pushes the index up; so what resamples
    give is moved until its mean is the value of all cases.
    """
    value = statistic(np.arange(cases))
    found = _resample(statistic, cases, resamples)
    low, high = _middle(found - found.mean() + value)
    return Estimate(value, low, min(high, 1.0), cases)


def _resample(statistic: Callable[[np.ndarray], float], cases: int, resamples: int) -> np.ndarray:
    draws = np.random.default_rng(0).integers(cases, size=(resamples, cases))
    return np.array([statistic(drawn) for drawn in draws])


def _middle(values: np.ndarray) -> tuple[float, float]:
    """Return the bounds of the middle part of values that intervals cover."""
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(values, [tail, 1 - tail])
    return float(low), float(high)


def balanced_share(hits: np.ndarray, groups: np.ndarray, resamples: int) -> Estimate:
    """Estimate the mean over (n,) groups of the share of (n,) hits: large groups drown no others.

    A resample that misses a group takes the mean of the others.
    """
    names = np.unique(groups)

    def mean_of_shares(rows: np.ndarray) -> float:
        drawn, right = groups[rows], hits[rows]
        present = [name for name in names if (drawn == name).any()]
        return float(np.mean([right[drawn == name].mean() for name in present]))

    return bootstrap(mean_of_shares, len(hits), resamples)


def half_samples(
    statistic: Callable[[np.ndarray], float],
    cases: int,
    halves: int = HALVES,
    lowest: float = 0.0,
) -> Estimate:
    """Estimate a share-like statistic that repeated cases would distort, such as a variance.

    A half of the cases drawn without replacement varies around the whole as much as the whole
    varies around the truth; a bootstrap would draw cases twice and be off to one side.

    Args:
        statistic: Maps (m,) numbers of cases to its value, at most 1.
        cases: n.
        halves: How many halves are drawn.
        lowest: The smallest value it can have: 0 for a share, -1 for a cosine or a difference.
    """
    return half_sample_all(lambda rows: {"": statistic(rows)}, cases, halves, {"": lowest})[""]


def half_sample_all(
    statistics: Callable[[np.ndarray], dict[str, float]],
    cases: int,
    halves: int = HALVES,
    lowest: dict[str, float] | None = None,
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


def _resample_both(values: np.ndarray, resamples: int, groups: ArrayLike | None) -> Estimate:
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
