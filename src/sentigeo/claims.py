"""The ledger: a claim of the sources, a rule fixed before the run, and the verdict it gives."""

from dataclasses import asdict, dataclass
from typing import Any

from sentigeo.stats import Estimate

SUPPORTED, PARTLY, NOT_SUPPORTED, REFUTED = "supported", "partly", "not supported", "refuted"
NOT_TESTABLE = "not testable in this profile"
_OPPOSITE = {SUPPORTED: REFUTED, REFUTED: SUPPORTED, NOT_SUPPORTED: NOT_SUPPORTED}


@dataclass(frozen=True)
class Claim:
    """A claim put to the test.

    Attributes:
        id: Its number in the ledger.
        source: The document that makes it.
        statement: What is claimed.
        metric: What was measured.
        rule: How the measurement decides, in words.
        value: Estimate.
        low: Lower end of its 95% interval.
        high: Upper end of its 95% interval.
        verdict: What the rule says.
    """

    id: str
    source: str
    statement: str
    metric: str
    rule: str
    value: float
    low: float
    high: float
    verdict: str

    def record(self) -> dict[str, Any]:
        """Return what `results.json` records; a number that could not be measured is null."""
        return {k: None if v != v else v for k, v in asdict(self).items()}


def make_claim(
    number: str,
    source: str,
    statement: str,
    metric: str,
    rule: str,
    found: Estimate,
    verdict: str,
) -> Claim:
    """Make a claim from the estimate that was judged; arguments as the attributes of `Claim`."""
    bounds = (found.value, found.low, found.high)
    return Claim(number, source, statement, metric, rule, *bounds, verdict)


def judge_above(estimate: Estimate, threshold: float) -> str:
    """Judge a claim that a number lies above a threshold by where its whole interval lies."""
    place = estimate.compare(threshold)
    return {"above": SUPPORTED, "below": REFUTED}.get(place, NOT_SUPPORTED)


def judge_below(estimate: Estimate, threshold: float) -> str:
    """Judge a claim that a number lies below a threshold by where its whole interval lies."""
    return _OPPOSITE[judge_above(estimate, threshold)]


def judge_apart(estimate: Estimate, margin: float) -> str:
    """Judge a claim that a number is further from 0 than a margin, on whichever side."""
    if estimate.compare(margin) == "above" or estimate.compare(-margin) == "below":
        return SUPPORTED
    within = estimate.compare(margin) == "below" and estimate.compare(-margin) == "above"
    return REFUTED if within else NOT_SUPPORTED


def judge_within(estimate: Estimate, margin: float) -> str:
    """Judge a claim that a number is no further from 0 than a margin."""
    return _OPPOSITE[judge_apart(estimate, margin)]


def judge_separation(overlaps: bool, apart: list[bool], rises: list[bool]) -> str:
    """Judge a claim that what overlapped lies apart now, in several spaces.

    Args:
        overlaps: Whether it did overlap.
        apart: Whether it lies apart now, in each space.
        rises: Whether it lies further apart than it did, in each space.
    """
    if overlaps and all(apart) and all(rises):
        return SUPPORTED
    if not any(rises):
        return REFUTED
    return PARTLY if any(apart) else NOT_SUPPORTED


def judge_groups(valley: Estimate, visible: list[Estimate], depth: float, threshold: float) -> str:
    """Judge a claim that clusters are groups, and visible on every one of several maps.

    Args:
        valley: Depth of the valley between clusters.
        visible: How well the cluster of a text can be told from each map.
        depth: What the valley must surpass.
        threshold: What each map must surpass.
    """
    groups = judge_above(valley, depth)
    if groups == SUPPORTED and any(own.compare(threshold) != "above" for own in visible):
        return NOT_SUPPORTED
    return groups


def judge_given(verdict: str, condition: str) -> str:
    """Judge a claim that holds only in part where a second thing it says does not."""
    return PARTLY if verdict == SUPPORTED and condition != SUPPORTED else verdict


def judge_all(verdicts: list[str]) -> str:
    """Judge a claim of several parts: `partly` when some parts hold and others do not."""
    if all(verdict == verdicts[0] for verdict in verdicts):
        return verdicts[0]
    return PARTLY if SUPPORTED in verdicts else NOT_SUPPORTED
