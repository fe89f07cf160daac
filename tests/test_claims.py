import pytest

from sentigeo.claims import (
    NOT_TESTABLE,
    Claim,
    judge_above,
    judge_all,
    judge_apart,
    judge_below,
    judge_given,
    judge_groups,
    judge_separation,
    judge_within,
    make_claim,
)
from sentigeo.stats import Estimate


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.01, 0.2, "supported"), (-0.2, -0.01, "refuted"), (-0.1, 0.1, "not supported")],
)
def test_judge_above_looks_at_the_whole_interval(low, high, verdict):
    assert judge_above(Estimate((low + high) / 2, low, high, 9), 0.0) == verdict


@pytest.mark.parametrize(
    ("verdicts", "verdict"),
    [
        (["supported", "supported"], "supported"),
        (["refuted", "refuted"], "refuted"),
        (["supported", "refuted"], "partly"),
        (["not supported", "refuted"], "not supported"),
    ],
)
def test_judge_all(verdicts, verdict):
    assert judge_all(verdicts) == verdict


def test_record_has_the_ledgers_keys():
    claim = Claim("C1", "002", "s", "m", "r", 0.1, 0.0, 0.2, "supported")
    assert list(claim.record()) == [
        "id", "source", "statement", "metric", "rule", "value", "low", "high", "verdict",
    ]  # fmt: skip


def test_claim_from_an_estimate():
    made = make_claim("C1", "002", "s", "m", "r", Estimate(0.1, 0.0, 0.2, 9), "supported")
    assert made == Claim("C1", "002", "s", "m", "r", 0.1, 0.0, 0.2, "supported")


def test_what_could_not_be_measured_is_null():
    nothing = Estimate(float("nan"), float("nan"), float("nan"), 0)
    record = make_claim("E3", "004", "s", "m", "r", nothing, NOT_TESTABLE).record()
    assert record["value"] is record["low"] is record["high"] is None
    assert record["verdict"] == "not testable in this profile"


@pytest.mark.parametrize(
    ("overlaps", "apart", "rises", "verdict"),
    [
        (True, [True, True], [True, True], "supported"),
        (False, [True, True], [True, True], "partly"),
        (True, [True, False], [True, True], "partly"),
        (True, [False, False], [True, False], "not supported"),
        (True, [True, True], [False, False], "refuted"),
    ],
)
def test_judge_separation(overlaps, apart, rises, verdict):
    assert judge_separation(overlaps, apart, rises) == verdict


@pytest.mark.parametrize(
    ("valley", "maps", "verdict"),
    [
        ((0.3, 0.5), [(0.95, 0.97), (0.92, 0.96)], "supported"),
        ((0.3, 0.5), [(0.95, 0.97), (0.85, 0.96)], "not supported"),
        ((0.0, 0.1), [(0.95, 0.97), (0.92, 0.96)], "refuted"),
        ((0.1, 0.3), [(0.95, 0.97), (0.92, 0.96)], "not supported"),
        ((float("nan"), float("nan")), [(0.95, 0.97)], "not supported"),
    ],
)
def test_groups_need_a_valley_and_must_be_visible_on_every_map(valley, maps, verdict):
    visible = [Estimate(sum(own) / 2, *own, 9) for own in maps]
    assert judge_groups(Estimate(sum(valley) / 2, *valley, 9), visible, 0.2, 0.9) == verdict


@pytest.mark.parametrize(
    ("low", "high", "below", "apart"),
    [
        (0.2, 0.3, "refuted", "supported"),
        (-0.3, -0.2, "supported", "supported"),
        (-0.05, 0.05, "supported", "refuted"),
        (0.05, 0.2, "not supported", "not supported"),
        (-0.2, 0.2, "not supported", "not supported"),
    ],
)
def test_judge_below_apart_and_within(low, high, below, apart):
    estimate = Estimate((low + high) / 2, low, high, 9)
    assert judge_below(estimate, 0.1) == below
    assert judge_apart(estimate, 0.1) == apart
    within = {"supported": "refuted", "refuted": "supported"}.get(apart, apart)
    assert judge_within(estimate, 0.1) == within


@pytest.mark.parametrize(
    ("verdict", "condition", "expected"),
    [
        ("supported", "supported", "supported"),
        ("supported", "not supported", "partly"),
        ("supported", "refuted", "partly"),
        ("refuted", "supported", "refuted"),
        ("not supported", "refuted", "not supported"),
    ],
)
def test_judge_given(verdict, condition, expected):
    assert judge_given(verdict, condition) == expected
