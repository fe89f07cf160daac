import copy
import json

import pytest
from test_report import snapshot, write_chapter

from sentigeo import preflight, report
from sentigeo.errors import UserError
from sentigeo.paths import CACHE_VARIABLE
from sentigeo.profile import load_profile
from sentigeo.report.publish import run_report
from sentigeo.report.reproduce import (
    LEAST_TOLERANCE,
    Difference,
    compare_results,
    describe,
    run_again,
)

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
    assert describe([]) == "Reproduced: every metric and verdict is the same."


@pytest.mark.parametrize(
    ("name", "value", "tolerance", "outside"),
    [
        ("wide", 0.59, 0.1, False),  # half of 0.6 - 0.4
        ("wide", 0.39, 0.1, True),
        ("narrow", 0.881, LEAST_TOLERANCE, False),
        ("narrow", 0.879, LEAST_TOLERANCE, True),
        ("bare", 3.01, LEAST_TOLERANCE, False),
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
    assert describe(compare_results(WRITTEN, changed(*steps))).splitlines() == [
        "OUTSIDE  verdict on C1: supported before, refuted now",
        "within   wide, value: 0.5000 before, 0.5100 now, +0.0100 (allowed 0.1000)",
        "Not reproduced: 1 of 2 differences are too large.",
    ]
    assert describe(compare_results(WRITTEN, changed(steps[0]))).endswith(
        "Reproduced: 1 differences, all within their tolerance."
    )


def test_a_report_is_run_again_away_from_the_last(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "cache"))
    monkeypatch.setattr(report, "build_site", lambda reports, *_: (reports / "site").mkdir())
    monkeypatch.setattr(preflight, "check_run", lambda profile: {})
    quick = load_profile("quick")
    write_chapter(tmp_path, "01_first")
    with pytest.raises(UserError, match="no report to compare with"):
        run_again(quick, tmp_path)
    run_report(quick, tmp_path)
    written = tmp_path / "build/quick/reports/results.json"
    written.write_text(json.dumps(json.loads(written.read_text()) | {"seconds": {}}))
    before = snapshot(tmp_path / "build/quick"), snapshot(tmp_path / "cache")
    assert compare_results(*run_again(quick, tmp_path)) == []
    assert (snapshot(tmp_path / "build/quick"), snapshot(tmp_path / "cache")) == before
    assert not (tmp_path / "build/reproduce/quick/cache").exists()
    write_chapter(tmp_path, "01_first", True)
    changed = compare_results(*run_again(quick, tmp_path))
    assert changed[0] == Difference(
        "01_first.metric, value", pytest.approx(2 / 3), 1.0, pytest.approx(0.365, abs=0.001)
    )
