import numpy as np
import pytest
from scipy import stats as scipy_stats

from sentigeo.stats import (
    Estimate,
    balanced_mean_over_runs,
    balanced_share,
    bootstrap,
    exactly,
    half_samples,
    list_estimates,
    mcnemar,
    mean_over_runs,
    mean_over_strata,
    mean_share,
    paired_difference,
    range_over,
    share,
    share_of_few,
    unfold,
)


def test_share_has_wilsons_interval():
    # Wilson 1927 for 7 of 13: centre (p + z2/2n) / (1 + z2/n), half-width by hand.
    n, p, z = 13, 7 / 13, 1.959964
    centre = (p + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    found = share([True] * 7 + [False] * 6)
    assert (found.value, found.n) == (p, 13)
    assert (found.low, found.high) == pytest.approx((centre - half, centre + half), abs=1e-6)


@pytest.mark.parametrize("hits", [[True] * 5, [False] * 5])
def test_share_of_all_or_none_keeps_an_interval(hits):
    found = share(hits)
    assert 0 <= found.low < found.high <= 1


@pytest.mark.parametrize("hits", [[1, 0, 1, 1], [0, 0, 0], [1] * 7])
def test_share_of_few_is_wilsons_for_whole_cases(hits):
    found, expected = share_of_few(hits), share(hits)
    assert vars(found) == pytest.approx(vars(expected))
    assert found.low <= found.value <= found.high


@pytest.mark.parametrize(
    ("numbers", "written"),
    [
        ((0.012, 0.004, 0.02), "+1.2 points (+0.4 to +2.0)"),
        ((-0.0001, -0.0321, 0.03), "+0.0 points (-3.2 to +3.0)"),
    ],
)
def test_difference_of_shares_in_points(numbers, written):
    assert Estimate(*numbers, 120, signed=True).points() == written


def test_share_of_nothing():
    with pytest.raises(ValueError, match="at least one"):
        share([])


def test_mean_share_is_students():
    found = mean_share([0.88, 0.90, 0.89])
    low, high = scipy_stats.t.interval(0.95, 2, loc=0.89, scale=scipy_stats.sem([0.88, 0.90, 0.89]))
    assert (found.value, found.low, found.high) == pytest.approx((0.89, low, high))


def test_mean_share_stays_a_share_and_one_run_has_no_interval():
    wide = mean_share([0.5, 0.99])
    assert (wide.low, wide.high) == (0.0, 1.0)
    assert mean_share([-0.2, -0.1], lowest=-1.0).low < -0.2
    single = mean_share([0.7])
    assert single.value == 0.7
    assert np.isnan(single.low)


def test_compare_needs_the_whole_interval():
    estimate = Estimate(0.3, 0.2, 0.41, 50)
    assert estimate.compare(0.25) == "not distinguishable from"
    assert estimate.compare(0.5) == "below"
    assert estimate.compare(0.1) == "above"


def test_estimate_is_written_with_interval_and_n():
    assert f"{Estimate(0.8734, 0.86, 0.889, 4000)}" == "0.873 [0.860, 0.889; n = 4,000]"
    assert f"{Estimate(0.5, 0.25, 0.75, 8):.0%}" == "50% [25%, 75%; n = 8]"


def test_paired_difference_sees_what_separate_intervals_hide():
    rng = np.random.default_rng(0)
    before = rng.random((3, 2000)) < 0.85
    after = before | (rng.random((3, 2000)) < 0.05)
    found = paired_difference(after, before, 500)
    assert found.value == pytest.approx(after.mean() - before.mean())
    assert found.low > 0
    assert found.high - found.low < 0.01


def test_mean_over_runs_includes_the_spread_of_runs():
    alike = np.tile(np.arange(1000) % 10 != 0, (4, 1))
    apart = np.concatenate([np.ones((2, 1000)), np.zeros((2, 1000))])
    close, wide = mean_over_runs(alike, 500), mean_over_runs(apart, 500)
    assert (close.value, close.n) == (0.9, 1000)
    expected = scipy_stats.norm.ppf(0.975) * np.sqrt(0.9 * 0.1 / 1000)
    assert close.high - close.value == pytest.approx(expected, rel=0.15)
    assert (wide.low, wide.high) == (0.0, 1.0)


def test_groups_are_resampled_whole():
    groups = np.repeat(np.arange(100), 2)
    together = np.repeat(np.arange(100) % 2 == 0, 2)
    one_each = np.tile([True, False], 100)
    assert mean_over_runs(one_each, 500, groups) == Estimate(0.5, 0.5, 0.5, 200)
    agreeing = mean_over_runs(np.tile(together, (2, 1)), 2000, groups)
    expected = scipy_stats.norm.ppf(0.975) * 0.5 / np.sqrt(100)
    assert agreeing.high - 0.5 == pytest.approx(expected, rel=0.1)


def test_groups_do_not_depend_on_the_order_of_cases():
    rng = np.random.default_rng(1)
    hits, groups = rng.random(60) < 0.4, rng.integers(20, size=60)
    order = rng.permutation(60)
    expected = mean_over_runs(hits, 200, groups)
    assert mean_over_runs(hits[order], 200, groups[order]) == expected


def test_mcnemar_is_the_binomial_test_of_discordant_cases():
    before = np.array([1] * 20 + [0] * 9 + [1] * 2 + [0] * 5, bool)
    after = np.array([1] * 20 + [1] * 9 + [0] * 2 + [0] * 5, bool)
    assert mcnemar(after, before) == pytest.approx(scipy_stats.binomtest(9, 11).pvalue)
    assert mcnemar(before, before) == 1.0


def test_bootstrap_of_a_mean_is_that_of_scipy():
    values = np.random.default_rng(1).normal(size=400)
    found = bootstrap(lambda drawn: float(values[drawn].mean()), 400, 4000)
    expected = scipy_stats.bootstrap(
        (values,), np.mean, n_resamples=4000, method="percentile", rng=0
    )
    assert found.value == values.mean()
    assert found.n == 400
    assert found.low == pytest.approx(expected.confidence_interval.low, abs=0.01)
    assert found.high == pytest.approx(expected.confidence_interval.high, abs=0.01)


def test_half_samples_of_a_mean_have_its_standard_error():
    values = np.random.default_rng(1).uniform(size=1000)
    found = half_samples(lambda drawn: float(values[drawn].mean()), 1000, 2000)
    error = values.std(ddof=1) / 1000**0.5
    assert found.value == values.mean()
    assert found.high - found.value == pytest.approx(1.96 * error, rel=0.06)
    assert found.value - found.low == pytest.approx(1.96 * error, rel=0.06)


def test_a_balanced_mean_resamples_runs_and_cases_within_groups():
    hits, groups = np.array([[1, 1, 1, 0], [1, 1, 1, 1]]), np.array(["a", "a", "a", "b"])
    found = balanced_mean_over_runs(hits, groups, 2000)
    assert (found.value, found.n) == (0.75, 4)
    assert (found.low, found.high) == pytest.approx((0.5, 1.0))  # only the run is left to chance


def test_the_rise_of_a_balanced_mean_pairs_runs_and_cases():
    before = np.array([[1.0, 1, 0, 0], [0, 0, 1, 0]])
    rise = balanced_mean_over_runs(before + np.eye(4)[3] - before, np.array([0, 0, 0, 2]), 100)
    assert rise.over(0.0) == Estimate(0.5, 0.5, 0.5, 4, signed=True)


def test_a_balanced_mean_varies_as_means_of_groups_do():
    rng, groups = np.random.default_rng(0), np.repeat([0, 1], [300, 50])
    hits = np.repeat((rng.random((1, 350)) < 0.7), 3, axis=0)  # equal runs add nothing
    found = balanced_mean_over_runs(hits, groups, 4000)
    own = [hits[0, groups == group] for group in (0, 1)]
    error = np.sqrt(sum(part.var() / part.size for part in own)) / 2
    assert found.value == pytest.approx(np.mean([part.mean() for part in own]))
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.06)


def test_balanced_share_counts_groups_alike():
    hits = np.array([True] * 8 + [False] * 2)
    groups = np.array([0] * 8 + [1] * 2)
    found = balanced_share(hits, groups, 200)
    assert found.value == 0.5  # all of the large group, none of the small one
    assert found.n == 10
    rng = np.random.default_rng(0)
    hits, groups = rng.random(300) < 0.7, rng.integers(3, size=300)
    assert balanced_share(hits, groups, 50).value == pytest.approx(
        np.mean([hits[groups == g].mean() for g in range(3)])
    )


def test_brief_estimates_break_before_the_interval_only():
    assert Estimate(0.5, 0.25, 0.75, 9).brief(".2f") == "0.50 [0.25,\u00a00.75]"


def test_mean_over_strata_ignores_how_far_groups_lie_apart():
    near = mean_over_strata(np.array([[0.4, 0.5, 0.6], [0.4, 0.5, 0.6]]))
    far = mean_over_strata(np.array([[0.1, 0.2, 0.3], [0.7, 0.8, 0.9]]))
    assert near.value == far.value == pytest.approx(0.5)
    assert near.high - near.low == pytest.approx(far.high - far.low)
    half = scipy_stats.t.ppf(0.975, 4) * 0.1 / np.sqrt(6)
    assert near.high - near.value == pytest.approx(half)
    alone = mean_over_strata(np.array([[0.1], [0.3]]))
    assert alone.value == pytest.approx(0.2)
    assert np.isnan(alone.low)


def test_how_far_an_estimate_lies_above_a_known_number():
    assert Estimate(0.75, 0.5, 1.0, 8).over(0.5) == Estimate(0.25, 0.0, 0.5, 8, signed=True)


def test_what_is_rounded_to_zero_has_no_minus_sign():
    tiny = Estimate(-0.0001, -0.2, 0.0, 5)
    assert f"{tiny:+.3f}" == "+0.000 [-0.200, +0.000; n = 5]"
    assert tiny.brief() == "0.000 [-0.200,\u00a00.000]"


def test_differences_are_written_with_their_sign():
    gain = paired_difference(np.array([1, 1, 0, 1]), np.array([0, 1, 0, 1]), 100)
    assert f"{gain}".startswith("+0.250 [+0.000,")
    assert gain == paired_difference(np.array([[1, 1, 0, 1]]), np.array([[0, 1, 0, 1]]), 100)
    assert f"{exactly(0.5, 3)}" == "0.500 [0.500, 0.500; n = 3]"


def test_estimates_as_a_table():
    found = {("a", 1): exactly(0.1), ("b", 2): range_over([1, 2, 6])}
    frame = list_estimates(found, "name", "layer")
    assert frame[["name", "layer"]].to_numpy().tolist() == [["a", 1], ["b", 2]]
    spread = unfold(frame)
    assert spread.columns.tolist() == ["name", "layer", "value", "low", "high", "n"]
    assert spread.iloc[1].tolist() == ["b", 2, 3.0, 1.0, 6.0, 3]
    assert list_estimates({"x": exactly(1)}, "name")["name"].tolist() == ["x"]
    assert unfold(list_estimates({}, "name")).empty
