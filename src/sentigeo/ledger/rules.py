"""Verdicts: what a rule, written down before a run, says about the numbers that the run measured.

A rule is a tree of plain values, as `notebooks/claims.yaml` holds it. Its leaves compare metrics
with numbers; everything above them says how their verdicts become one.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from sentigeo.errors import UserError
from sentigeo.stats import Estimate

SUPPORTED, PARTLY, NOT_SUPPORTED, REFUTED = "supported", "partly", "not supported", "refuted"
NOT_TESTABLE = "not testable in this profile"
VERDICTS = (SUPPORTED, PARTLY, NOT_SUPPORTED, REFUTED, NOT_TESTABLE)
Rule = dict[str, Any]


def judge_above(estimate: Estimate, threshold: float) -> str:
    """Judge a claim that a number lies above a threshold."""
    return _judge_interval(estimate.low > threshold, estimate.high < threshold)


def judge_below(estimate: Estimate, threshold: float) -> str:
    """Judge a claim that a number lies below a threshold."""
    return _judge_interval(estimate.high < threshold, estimate.low > threshold)


def judge_apart(estimate: Estimate, margin: float) -> str:
    """Judge a claim that a number is further from 0 than a margin, on whichever side."""
    near = -margin < estimate.low and estimate.high < margin
    return _judge_interval(estimate.low > margin or estimate.high < -margin, near)


def judge_within(estimate: Estimate, margin: float) -> str:
    """Judge a claim that a number is no further from 0 than a margin."""
    near = -margin < estimate.low and estimate.high < margin
    return _judge_interval(near, estimate.low > margin or estimate.high < -margin)


def judge_between(estimate: Estimate, bounds: tuple[float, float]) -> str:
    """Judge a claim that a number lies between two bounds, which belong to it."""
    low, high = bounds
    outside = estimate.high < low or estimate.low > high
    return _judge_interval(low <= estimate.low and estimate.high <= high, outside)


def _judge_interval(inside: bool, outside: bool) -> str:
    """Judge by whether the whole interval lies where the claim says, or the whole elsewhere."""
    return SUPPORTED if inside else REFUTED if outside else NOT_SUPPORTED


def judge_all(verdicts: list[str]) -> str:
    """Judge a claim of several parts: `partly` when some parts hold and others do not."""
    if all(verdict == verdicts[0] for verdict in verdicts):
        return verdicts[0]
    return PARTLY if SUPPORTED in verdicts else NOT_SUPPORTED


def judge_separation(overlap: list[str], apart: list[str], rise: list[str]) -> str:
    """Judge a claim that what overlapped lies apart now, and further apart than it did."""
    if {*overlap, *apart, *rise} == {SUPPORTED}:
        return SUPPORTED
    if SUPPORTED not in rise:
        return REFUTED
    return PARTLY if SUPPORTED in apart else NOT_SUPPORTED


COMPARISONS: dict[str, Callable[[Estimate, Any], str]] = {
    "above": judge_above,
    "below": judge_below,
    "apart": judge_apart,
    "within": judge_within,
    "between": judge_between,
}
# What becomes of a verdict where a second rule is not supported.
CONDITIONS = {
    "only_if": dict.fromkeys((SUPPORTED, PARTLY, REFUTED), NOT_SUPPORTED),
    "supported_only_if": {SUPPORTED: NOT_SUPPORTED},
    "partly_unless": {SUPPORTED: PARTLY},
    "refuted_only_if": {REFUTED: NOT_SUPPORTED},
}
SEPARATION = {"overlap", "apart", "rise"}


def judge(rule: Rule, metrics: Mapping[str, Estimate]) -> str:
    """Return the verdict of a rule; a metric that it asks for and that is missing is an error.

    A rule is `{above: {metric: number}}`, likewise `below`, `apart`, `within` and `between`, with
    one metric or several, which then are parts of one claim; `{all: [rules]}`, whose parts are
    rules; `{holds: [rules]}`, refuted unless all are supported; `{separation: ...}`; or
    `{rule: ..., only_if: ...}` with one or more of `CONDITIONS`. A `*` in a metric's name stands
    for anything.
    """
    if "rule" in rule:
        verdict = judge(rule["rule"], metrics)
        for word, changed in CONDITIONS.items():
            if word in rule and judge(rule[word], metrics) != SUPPORTED:
                verdict = changed.get(verdict, verdict)
        return verdict
    [(word, content)] = rule.items()
    if word == "all":
        return judge_all([judge(part, metrics) for part in content])
    if word == "holds":
        return SUPPORTED if {judge(part, metrics) for part in content} == {SUPPORTED} else REFUTED
    if word == "separation":
        return judge_separation(**{name: _compare(part, metrics) for name, part in content.items()})
    return judge_all(_compare(rule, metrics))


def leaves_of(rule: Rule) -> list[tuple[str, str, Any]]:
    """Return word, metric and number of every comparison in a rule; an unknown word is an error."""
    parts: Iterable[Rule] = rule.values()
    if "rule" in rule:
        _check_words(rule.keys() - {"rule"}, CONDITIONS)
    elif len(rule) != 1:
        raise UserError(f"a rule has exactly one key, not {len(rule)}")
    elif "separation" in rule:
        _check_words(rule["separation"], SEPARATION)
        parts = rule["separation"].values()
    elif "all" in rule or "holds" in rule:
        [parts] = rule.values()
    else:
        _check_words(rule, COMPARISONS)
        return [(word, *pair) for word, compared in rule.items() for pair in compared.items()]
    return [comparison for part in parts for comparison in leaves_of(part)]


def list_bounds(rule: Rule, metric: str) -> list[float]:
    """Return the numbers that a rule compares one metric with; those of a margin on both sides."""
    bounds: list[float] = []
    for word, name, number in leaves_of(rule):
        if name == metric:
            both = [-number, number] if word in ("apart", "within") else [number]
            bounds += number if word == "between" else both
    return bounds


def match_names(pattern: str, names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the names that a pattern with at most one `*` stands for, and what the `*` is."""
    shape = re.compile(re.escape(pattern).replace(r"\*", "(.+)"))
    matches = filter(None, map(shape.fullmatch, names))
    return [(match.string, "".join(match.groups())) for match in matches]


def _compare(rule: Rule, metrics: Mapping[str, Estimate]) -> list[str]:
    verdicts = []
    for word, pattern, bound in leaves_of(rule):
        found = [metrics[name] for name, _ in match_names(pattern, metrics)]
        if not found:
            raise UserError(f"no chapter measured '{pattern}'")
        verdicts += [COMPARISONS[word](estimate, bound) for estimate in found]
    return verdicts


def _check_words(words: Iterable[str], known: Collection[str]) -> None:
    for word in words:
        if word not in known:
            raise UserError(f"'{word}' is not one of {', '.join(sorted(known))}")
