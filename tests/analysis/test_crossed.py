import numpy as np
import pytest
from scipy import stats

from sentigeo.analysis.crossed import (
    EFFECT,
    EXCLUDED,
    SMALL,
    SOME,
    UNDECIDED,
    crossed_difference,
    crossed_mean,
    describe_effect,
    equivalence,
)
from sentigeo.stats import Estimate

MARGIN = 0.3


def draw_values(runs, cases, spreads, simulations=400):
    """Return (simulations, runs, cases) values around 0: run + case + noise, by their spreads."""
    rng = np.random.default_rng(0)
    shapes = (runs, 1), (1, cases), (runs, cases)
    return sum(
        s * rng.normal(size=(simulations, *shape)) for s, shape in zip(spreads, shapes, strict=True)
    )


def test_one_run_has_the_one_sample_interval():
    values = np.random.default_rng(2).normal(0.2, 1, size=(1, 40))
    found = crossed_mean(values)
    expected = stats.ttest_1samp(values[0], 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert (found.value, found.n) == (pytest.approx(values.mean()), 40)


def test_crossed_interval_by_hand():
    # Rows 1 2 3 and 3 4 11: means 2, 6 and 2, 3, 7; squares runs 24, cases 14, residual 6.
    found = crossed_mean(np.array([[1.0, 2, 3], [3, 4, 11]]))
    error = np.sqrt((24 + 14 - 6) / 6)
    freedom = (24 + 14 - 6) ** 2 / (24**2 / 1 + 14**2 / 2 + 6**2 / 2)
    half = stats.t.ppf(0.975, freedom) * error
    assert (found.value, found.low, found.high) == pytest.approx((4, 4 - half, 4 + half))


def test_interval_is_never_narrower_than_that_of_cases_alone():
    values = np.array([[1.0, 2, 3, 9], [4, 3, 2, 6]]) - [[0.75], [0.75]]  # runs with equal means
    found, alone = crossed_mean(values), crossed_mean(values.mean(axis=0)[None])
    assert vars(found) == pytest.approx(vars(alone))


@pytest.mark.parametrize("spreads", [(0.1, 0.5, 0.5), (0.3, 0.3, 1), (0.5, 0.1, 0.5), (0, 0, 1)])
def test_intervals_cover_the_truth_as_often_as_they_say(spreads):
    found = [crossed_mean(values) for values in draw_values(10, 60, spreads)]
    share = np.mean([one.low < 0 < one.high for one in found])
    assert 0.93 <= share <= 0.985


@pytest.mark.parametrize("margin", [0.1, 0.3, 1.0])
def test_equivalence_of_one_run_is_two_one_sided_tests(margin):
    values = np.random.default_rng(3).normal(-0.15, 1, size=(1, 50))
    above = stats.ttest_1samp(values[0], -margin, alternative="greater").pvalue
    below = stats.ttest_1samp(values[0], margin, alternative="less").pvalue
    assert equivalence(values, margin) == pytest.approx(max(above, below))
    assert equivalence(-values, margin) == pytest.approx(max(above, below))


@pytest.mark.parametrize("truth", [-MARGIN, MARGIN])
def test_an_effect_at_the_margin_is_excluded_in_a_twentieth_of_cases(truth):
    values = truth + draw_values(10, 60, (0.1, 0.3, 0.5))
    share = np.mean([equivalence(one, MARGIN) < 0.05 for one in values])
    assert 0.025 <= share <= 0.075
    within = draw_values(10, 60, (0.1, 0.3, 0.5))
    assert np.mean([equivalence(one, MARGIN) < 0.05 for one in within]) > 0.95


def test_values_that_do_not_vary():
    blind = np.zeros((3, 5))
    assert crossed_mean(blind) == Estimate(0.0, 0.0, 0.0, 5)
    assert equivalence(blind, 0.1) == 0.0
    assert equivalence(blind + 0.25, 0.25) == 1.0


def test_a_share_stays_within_its_bounds():
    hits = np.zeros((4, 20))
    hits[:, 0] = hits[0, 1] = 1
    assert crossed_mean(hits).low < 0
    assert crossed_mean(hits, bounds=(0.0, 1.0)).low == 0.0


def test_differences_are_paired_and_signed():
    rng = np.random.default_rng(4)
    before = rng.random((5, 30)) < 0.5
    after = before | (rng.random((5, 30)) < 0.3)
    found = crossed_difference(after, before)
    assert found.signed
    assert found.value == pytest.approx(after.mean() - before.mean())
    assert 0 < found.low < found.value


@pytest.mark.parametrize(
    ("low", "high", "p", "words"),
    [
        (0.2, 0.5, 0.6, EFFECT),
        (-0.5, -0.2, 0.6, EFFECT),
        (0.01, 0.3, 0.6, SOME),
        (-0.3, -0.01, 0.6, SOME),
        (0.01, 0.05, 0.001, SMALL),
        (-0.03, 0.04, 0.001, EXCLUDED),
        (-0.2, 0.4, 0.3, UNDECIDED),
        (np.nan, np.nan, np.nan, UNDECIDED),
    ],
)
def test_what_a_difference_shows(low, high, p, words):
    assert describe_effect(Estimate((low + high) / 2, low, high, 9), p, margin=0.1) == words
