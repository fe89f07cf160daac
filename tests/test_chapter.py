import json

import pytest
from matplotlib.figure import Figure

from sentigeo.chapter import NEEDS_VARIABLE, STAGE_VARIABLE, Chapter, open_chapter
from sentigeo.claims import Claim
from sentigeo.errors import UserError
from sentigeo.paths import ROOT
from sentigeo.stats import Estimate


@pytest.fixture
def chapter(tmp_path, monkeypatch, quick):
    monkeypatch.setenv(STAGE_VARIABLE, str(tmp_path))
    return Chapter("07_test", quick)


def part(chapter):
    return json.loads((chapter.folder / "parts/07_test.json").read_text())


def test_metrics_are_recorded(chapter):
    chapter.record("a.b", Estimate(0.5, 0.4, 0.6, 10))
    chapter.record("a.c", Estimate(3.0, float("nan"), float("nan"), 1), unit="words")
    assert part(chapter)["metrics"] == {
        "a.b": {"value": 0.5, "low": 0.4, "high": 0.6, "n": 10, "unit": "share"},
        "a.c": {"value": 3.0, "low": None, "high": None, "n": 1, "unit": "words"},
    }


def test_figures_are_saved_and_shown_as_saved(chapter, shown):
    chapter.figure(Figure(figsize=(2, 1)), "empty", "Nothing (n = 0).")
    path = chapter.folder / "figures/07_test_empty.png"
    assert shown[0].data == path.read_bytes()
    assert shown[1].data == "*Nothing (n = 0).*"
    assert part(chapter)["figures"] == [{"file": path.name, "caption": "Nothing (n = 0)."}]


def test_pages_are_saved_and_linked(chapter, shown):
    chapter.page("<p>hello</p>", "view", "Look & see.")
    path = chapter.folder / "figures/07_test_view.html"
    assert path.read_text() == "<p>hello</p>"
    assert part(chapter)["pages"] == [{"file": path.name, "caption": "Look & see."}]
    assert shown[0]["text/html"] == (
        '<p><a href="../figures/07_test_view.html">Look &amp; see.</a></p>'
    )


def test_by_hand_nothing_published_is_touched(monkeypatch, shown):
    monkeypatch.delenv(STAGE_VARIABLE, raising=False)
    chapter = open_chapter("01_reviews", "laptop", {})
    assert chapter.folder == ROOT / "build/lab/laptop"
    assert "**laptop**" in shown[0].data
    assert "torch" in shown[0].data


def test_metrics_of_earlier_chapters_are_recalled(chapter, monkeypatch, quick):
    chapter.record("a.b", Estimate(0.5, 0.4, 0.6, 10))
    chapter.record("a.c", Estimate(0.5, float("nan"), float("nan"), 1))
    later = Chapter("08_later", quick)
    assert later.recall("a.b") == Estimate(0.5, 0.4, 0.6, 10)
    assert later.recall("a.c").low != later.recall("a.c").low
    with pytest.raises(UserError, match=r"No chapter has recorded 'a\.d' yet"):
        later.recall("a.d")


def test_claims_and_checkpoints_are_recorded(chapter, shown):
    chapter.claim(Claim("C1", "002", "It helps.", "gain", "above 0.", 0.1, 0.05, 0.2, "supported"))
    chapter.checkpoint("with", ROOT / "data/cache/x")
    assert part(chapter)["claims"][0]["verdict"] == "supported"
    assert part(chapter)["checkpoints"] == {"with": "data/cache/x"}
    assert "Verdict: **supported**" in shown[0].data


def test_arrays_are_left_for_the_chapters_after(chapter, quick, tmp_path):
    folder = tmp_path / "some" / "arrays"
    chapter.leave("space", folder)
    later = Chapter("08_later", quick)
    with pytest.raises(UserError, match="'space' are not in the cache: run 'make report'"):
        later.fetch("space")
    folder.mkdir(parents=True)
    assert later.fetch("space").resolve() == folder
    with pytest.raises(UserError, match="No chapter has recorded 'nothing' yet"):
        later.fetch("nothing")


def test_in_a_report_only_what_a_chapter_needs_is_found(chapter, monkeypatch, quick):
    chapter.record("a.b", Estimate(0.5, 0.4, 0.6, 10))
    later = Chapter("08_later", quick)
    later.record("own", Estimate(0.1, 0.0, 0.2, 3))
    monkeypatch.setenv(NEEDS_VARIABLE, "[]")
    assert later.recall("own").n == 3
    with pytest.raises(UserError, match=r"No chapter has recorded 'a\.b' yet"):
        later.recall("a.b")
    monkeypatch.setenv(NEEDS_VARIABLE, '["07_test"]')
    assert later.recall("a.b").n == 10
