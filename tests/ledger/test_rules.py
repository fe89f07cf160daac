import pytest

from sentigeo.errors import UserError
from sentigeo.ledger.rules import (
    judge,
    judge_above,
    judge_all,
    judge_apart,
    judge_below,
    judge_between,
    judge_separation,
    judge_within,
    leaves_of,
    list_bounds,
    match_names,
)
from sentigeo.stats import Estimate

ESTIMATES = {
    "high.a": Estimate(0.9, 0.8, 1.0, 9),
    "high.b": Estimate(0.7, 0.6, 0.8, 9),
    "wide.a": Estimate(0.5, 0.1, 0.9, 9),
    "low.a": Estimate(0.1, 0.0, 0.2, 9),
    "count.layers": Estimate(6, 6, 6, 1),
}
YES, NO, UNSURE = {"above": {"high.a": 0.5}}, {"above": {"low.a": 0.5}}, {"above": {"wide.a": 0.5}}


def estimate(low, high):
    return Estimate((low + high) / 2, low, high, 9)


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(0.01, 0.2, "supported"), (-0.2, -0.01, "refuted"), (-0.1, 0.1, "not supported")],
)
def test_judge_above_looks_at_the_whole_interval(low, high, verdict):
    assert judge_above(estimate(low, high), 0.0) == verdict


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
    assert judge_below(estimate(low, high), 0.1) == below
    assert judge_apart(estimate(low, high), 0.1) == apart
    within = {"supported": "refuted", "refuted": "supported"}.get(apart, apart)
    assert judge_within(estimate(low, high), 0.1) == within


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(12, 12, "supported"), (6, 6, "refuted"), (11, 13, "not supported"), (14, 15, "refuted")],
)
def test_judge_between(low, high, verdict):
    assert judge_between(estimate(low, high), (12, 12.5)) == verdict


@pytest.mark.parametrize(
    ("overlap", "apart", "rise", "verdict"),
    [
        ("++", "++", "++", "supported"),
        ("+-", "++", "++", "partly"),
        ("++", "+-", "++", "partly"),
        ("++", "--", "+-", "not supported"),
        ("++", "++", "--", "refuted"),
    ],
)
def test_judge_separation(overlap, apart, rise, verdict):
    signs = {"+": "supported", "-": "not supported"}
    assert judge_separation(*([signs[s] for s in own] for own in (overlap, apart, rise))) == verdict


@pytest.mark.parametrize(
    ("rule", "verdict"),
    [
        (YES, "supported"),
        (NO, "refuted"),
        (UNSURE, "not supported"),
        ({"above": {"high.a": 0.5, "low.a": 0.5}}, "partly"),
        ({"above": {"high.*": 0.5}}, "supported"),
        ({"above": {"high.*": 0.75}}, "partly"),
        ({"below": {"low.a": 0.5}}, "supported"),
        ({"between": {"count.layers": [6, 6]}}, "supported"),
        ({"all": [YES, NO]}, "partly"),
        ({"all": [UNSURE, NO]}, "not supported"),
        ({"holds": [YES, YES]}, "supported"),
        ({"holds": [YES, UNSURE]}, "refuted"),
        ({"rule": YES, "only_if": UNSURE}, "not supported"),
        ({"rule": NO, "only_if": UNSURE}, "not supported"),
        ({"rule": YES, "only_if": YES}, "supported"),
        ({"rule": YES, "supported_only_if": NO}, "not supported"),
        ({"rule": NO, "supported_only_if": NO}, "refuted"),
        ({"rule": YES, "partly_unless": NO}, "partly"),
        ({"rule": NO, "partly_unless": NO}, "refuted"),
        ({"rule": NO, "refuted_only_if": UNSURE}, "not supported"),
        ({"rule": YES, "refuted_only_if": UNSURE}, "supported"),
        ({"separation": {"overlap": {"below": {"low.a": 0.5}}, "apart": YES, "rise": YES}},
         "supported"),
        ({"separation": {"overlap": {"below": {"low.a": 0.5}}, "apart": YES, "rise": NO}},
         "refuted"),
    ],
)  # fmt: skip
def test_rules(rule, verdict):
    assert judge(rule, ESTIMATES) == verdict


def test_a_number_that_could_not_be_measured_supports_nothing():
    nothing = {"x.y": Estimate(float("nan"), float("nan"), float("nan"), 0)}
    assert judge({"above": {"x.y": 0}}, nothing) == "not supported"


def test_a_missing_metric_is_an_error():
    with pytest.raises(UserError, match=r"no chapter measured 'high\.c'"):
        judge({"above": {"high.c": 0.5}}, ESTIMATES)
    with pytest.raises(UserError, match=r"no chapter measured 'nothing\.\*'"):
        judge({"above": {"nothing.*": 0.5}}, ESTIMATES)


def test_comparisons_of_a_rule_are_listed():
    rule = {"all": [{"rule": YES, "partly_unless": UNSURE}, {"holds": [NO]}]}
    high, wide, low = (("above", f"{name}.a", 0.5) for name in ("high", "wide", "low"))
    assert leaves_of(rule) == [high, wide, low]
    separation = {"separation": {"overlap": YES, "apart": NO, "rise": NO}}
    assert leaves_of(separation) == [high, low, low]


@pytest.mark.parametrize(
    "rule",
    [{"over": {"a.b": 1}}, {"rule": YES, "if": NO}, {"separation": {"near": YES}}, {}],
)
def test_unknown_words_are_refused(rule):
    with pytest.raises(UserError, match=r"not one of|exactly one key"):
        leaves_of(rule)


def test_a_star_stands_for_anything():
    names = ["deep.gain", "deep.a.gain", "deep.b_c.gain", "deep.a.loss"]
    assert match_names("deep.*.gain", names) == [("deep.a.gain", "a"), ("deep.b_c.gain", "b_c")]
    assert match_names("deep.gain", names) == [("deep.gain", "")]
    assert match_names("deep.x", names) == []


@pytest.mark.parametrize(
    ("rule", "bounds"),
    [
        ({"above": {"x.y": 0.2, "z.y": 0.5}}, [0.2]),
        ({"within": {"x.y": 0.1}}, [-0.1, 0.1]),
        ({"between": {"x.y": [1, 2]}}, [1, 2]),
        ({"all": [{"above": {"x.y": 0.2}}, {"below": {"x.y": 0.5}}]}, [0.2, 0.5]),
        ({"rule": {"above": {"x.y": 0.2}}, "only_if": {"above": {"x.y": 0}}}, [0.2, 0]),
        ({"separation": {"overlap": {"below": {"x.y": 0.7}}, "apart": YES, "rise": YES}}, [0.7]),
        ({"above": {"z.y": 0.5}}, []),
    ],
)
def test_bounds_of_one_metric(rule, bounds):
    assert list_bounds(rule, "x.y") == bounds
