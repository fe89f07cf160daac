import copy
import json
from dataclasses import replace

import pytest
from fake_notebooks import snapshot, write_chapter

from sentigeo.errors import UserError
from sentigeo.ledger.claims import write_metric
from sentigeo.paths import CACHE_VARIABLE
from sentigeo.profile import load_profile
from sentigeo.report.fingerprint import Conditions
from sentigeo.report.publish import (
    Difference,
    compare_results,
    describe_differences,
    run_again,
)
from sentigeo.stats import share

WRITTEN = {
    "profile": "quick",
    "settings": {"seeds": 2},
    "encoder": {"sha256": "e"},
    "data": {"sha256": "d"},
    "skipped": {},
    "seconds": {"01_a": 3.0},
    "metrics": {
        "wide": {"value": 0.5, "low": 0.4, "high": 0.6, "n": 20, "unit": "share"},
        "narrow": {"value": 0.9, "low": 0.9, "high": 0.9, "n": 1, "unit": "share"},
        "chance": {"value": 0.03, "low": 0.03, "high": 0.03, "n": 30, "unit": "p-value"},
        "number": {"value": 7, "low": 7, "high": 7, "n": 1, "unit": "count"},
        "primary": {"value": -0.003, "low": -0.019, "high": 0.013, "n": 127, "unit": "difference"},
        "bare": {"value": 3.0, "low": None, "high": None, "n": 1, "unit": "words"},
    },
    "claims": [{"id": "C1", "verdict": "supported"}, {"id": "C2", "verdict": "refuted"}],
    "checkpoints": {"with": "here"},
}


def changed(*steps):
    """Return the results with values changed, each given by its path and value."""
    fresh = copy.deepcopy(WRITTEN)
    for *path, last, value in steps:
        place = fresh
        for step in path:
            place = place[step]
        place[last] = value
    return fresh


def test_equal_results():
    fresh = changed(("seconds", "01_a", 9.0), ("checkpoints", "with", "there"))
    assert compare_results(WRITTEN, fresh) == []
    assert describe_differences([]) == "Reproduced: every metric and verdict is the same."


@pytest.mark.parametrize(
    ("name", "value", "tolerance", "outside"),
    [
        ("wide", 0.549, 0.05, False),  # a quarter of 0.6 - 0.4
        ("wide", 0.449, 0.05, True),
        ("narrow", 0.8981, 0.002, False),
        ("narrow", 0.8979, 0.002, True),
        ("bare", 3.001, 0.002, False),
        ("chance", 0.039, 0.01, False),
        ("chance", 0.041, 0.01, True),
        ("number", 7.001, 0.0, True),
        ("primary", 0.004, 0.008, False),  # a quarter of 0.013 + 0.019
        ("primary", 0.017, 0.008, True),  # although the interval of either holds the other
    ],
)
def test_a_number_may_move_within_its_tolerance(name, value, tolerance, outside):
    (found,) = compare_results(WRITTEN, changed(("metrics", name, "value", value)))
    assert found.what == f"{name}, value"
    assert (found.before, found.after) == (WRITTEN["metrics"][name]["value"], value)
    assert found.tolerance == pytest.approx(tolerance)
    assert found.outside == outside


@pytest.mark.parametrize(
    ("step", "what"),
    [
        (("metrics", "wide", "n", 21), "wide, n"),
        (("metrics", "wide", "unit", "ratio"), "wide, unit"),
        (("metrics", "wide", "low", None), "wide, low"),
        (("metrics", "new", WRITTEN["metrics"]["bare"]), "new"),
        (("claims", 1, "verdict", "supported"), "verdict on C2"),
        (("claims", 1, "id", "C3"), "verdict on C2"),
        (("settings", "seeds", 3), "settings"),
        (("data", "sha256", "x"), "data"),
    ],
)
def test_all_else_must_be_equal(step, what):
    found = compare_results(WRITTEN, changed(step))
    assert found[0].what == what
    assert found[0].outside


def test_a_metric_that_went():
    fresh = changed()
    del fresh["metrics"]["bare"]
    assert compare_results(WRITTEN, fresh) == [Difference("bare", 3.0, None)]


def test_what_is_said():
    steps = [("metrics", "wide", "value", 0.51), ("claims", 0, "verdict", "refuted")]
    assert describe_differences(compare_results(WRITTEN, changed(*steps))).splitlines() == [
        "OUTSIDE  verdict on C1: supported before, refuted now",
        "within   wide, value: 0.5000 before, 0.5100 now, +0.0100 (allowed 0.0500)",
        "Not reproduced: 1 of 2 differences are too large.",
    ]
    assert describe_differences(compare_results(WRITTEN, changed(steps[0]))).endswith(
        "Reproduced: 1 differences, all within their tolerance."
    )


@pytest.mark.usefixtures("in_process")
def test_a_report_is_run_again_away_from_the_last(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    quick, apart = load_profile("quick"), tmp_path / "build/reproduce/quick"
    write_chapter(tmp_path, "01_first", last=False)
    with pytest.raises(UserError, match="no report to compare with"):
        run_again(quick, fits, tmp_path)
    write_report(tmp_path, quick)
    before = snapshot(tmp_path / "build/quick")
    written, fresh = run_again(quick, fits, tmp_path, keep=True)
    assert [str(own) for own in compare_results(written, fresh)] == [
        "01_first.metric, value: 0.5000 before, 0.6667 now, +0.1667 (allowed 0.1827)"
    ]
    assert snapshot(tmp_path / "build/quick") == before
    assert not (tmp_path / "cache").exists()
    assert list((apart / "cache/chapter").iterdir())  # from which a report can be made
    run_again(quick, fits, tmp_path)
    assert not (apart / "cache").exists()
    write_report(tmp_path, quick, seeds=99)
    with pytest.raises(UserError, match="The last report had other settings"):
        run_again(quick, fits, tmp_path)


def fits(profile):
    return Conditions()


def write_report(root, profile, **settings):
    """Write results as if the one chapter had been reported."""
    metric = write_metric(replace(share([True, True, False]), value=0.5), "share")
    results = {"profile": "quick", "settings": profile.settings | settings, "encoder": {}}
    results |= {"data": {}, "skipped": {}, "claims": [], "metrics": {"01_first.metric": metric}}
    path = root / "build/quick/reports/results.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results))
