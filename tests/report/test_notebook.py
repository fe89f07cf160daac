import base64
import json

import pytest
from matplotlib.figure import Figure

from sentigeo.errors import UserError
from sentigeo.paths import ROOT
from sentigeo.profile import load_profile
from sentigeo.report.notebook import (
    CONDITIONS,
    NEEDS_VARIABLE,
    STAGE_VARIABLE,
    Chapter,
    open_chapter,
)
from sentigeo.stats import Estimate


@pytest.fixture
def chapter(tmp_path, monkeypatch, quick):
    monkeypatch.setenv(STAGE_VARIABLE, str(tmp_path))
    monkeypatch.setenv(NEEDS_VARIABLE, '["07_test"]')
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
    assert base64.b64decode(shown[0]["image/png"]) == path.read_bytes()
    assert shown[1]["text/html"] == "<p><em>Nothing (n = 0).</em></p>"
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


def test_by_hand_a_chapter_says_what_to_type(monkeypatch, tmp_path):
    monkeypatch.delenv(NEEDS_VARIABLE, raising=False)
    monkeypatch.setenv(STAGE_VARIABLE, str(tmp_path))
    chapter = Chapter("05_clusters", load_profile("quick", seeds=77))
    ask = "03_embeddings left no 'vectors' here: type 'make chapter N=03' first."
    with pytest.raises(UserError, match=f"^{ask}$"):
        chapter.fetch("vectors")
    with pytest.raises(UserError, match=r"^00_sources left no 'a\.b' here: type 'make chapter"):
        chapter.recall("a.b")


def test_by_hand_the_published_metrics_are_found(monkeypatch, tmp_path):
    monkeypatch.delenv(NEEDS_VARIABLE, raising=False)
    monkeypatch.setenv(STAGE_VARIABLE, str(tmp_path))
    chapter = Chapter("12_claims", load_profile("laptop"))
    assert chapter.recall("baseline.tfidf.test_accuracy").n >= 2000
    assert len(chapter.results()["claims"]) == 24


def test_metrics_of_earlier_chapters_are_recalled(chapter, monkeypatch, quick):
    chapter.record("a.b", Estimate(0.5, 0.4, 0.6, 10))
    chapter.record("a.c", Estimate(0.5, float("nan"), float("nan"), 1))
    later = Chapter("08_later", quick)
    assert later.recall("a.b") == Estimate(0.5, 0.4, 0.6, 10)
    assert later.recall("a.c").low != later.recall("a.c").low
    with pytest.raises(UserError, match=r"No chapter that 08_later needs has recorded 'a\.d'"):
        later.recall("a.d")


def test_checkpoints_are_recorded(chapter):
    chapter.checkpoint("with", chapter.store.root / "training/x")
    assert part(chapter)["checkpoints"] == {"with": "training/x"}


def test_claims_are_judged_by_what_the_run_recorded(chapter, shown):
    with pytest.raises(UserError, match="The claim C4 names"):
        chapter.verdict("C4")
    for name in ("pca", "tsne"):
        chapter.record(f"maps.after.{name}.svm_accuracy", Estimate(0.95, 0.93, 0.97, 10))
    chapter.verdict("C4")
    assert "classifies above 89%. Verdict: supported." in shown[0]["text/plain"]
    judged = part(chapter)["claims"]["C4"]
    assert judged["verdict"] == "supported"
    assert judged["margin"] == pytest.approx(0.04)
    assert chapter.results()["claims"] == [judged]


def test_claims_that_cannot_be_tested_are_recorded(chapter, shown):
    chapter.require(True, ["C9"], "It holds.")
    chapter.require(False, ["C1", "C8"], "There are no pairs.")
    assert part(chapter)["untestable"] == dict.fromkeys(["C1", "C8"], "There are no pairs.")
    chapter.verdict("C1")
    assert "Why: There are no pairs." in shown[0]["text/plain"]


@pytest.mark.usefixtures("shown")
def test_claims_that_require_a_condition_cannot_be_tested_without_it(chapter):
    told = {"conditions": {"english": "These are Italian."}, "skipped": {}, "claims": {}}
    (chapter.folder / f"parts/{CONDITIONS}.json").write_text(json.dumps(told))
    chapter.verdict("E1")
    assert part(chapter)["claims"]["E1"]["reason"] == "These are Italian."
    assert part(chapter)["untestable"] == {"E1": "These are Italian."}


def test_counts_have_no_interval(chapter):
    chapter.count("encoder.layers", 6)
    assert part(chapter)["metrics"]["encoder.layers"] == {
        "value": 6, "low": 6, "high": 6, "n": 1, "unit": "count",
    }  # fmt: skip


def test_arrays_are_left_for_the_chapters_after(chapter, quick, tmp_path):
    folder = tmp_path / "some" / "arrays"
    chapter.leave("space", folder)
    later = Chapter("08_later", quick)
    with pytest.raises(UserError, match="has recorded 'space'"):
        later.fetch("space")
    folder.mkdir(parents=True)
    assert later.fetch("space").resolve() == folder
    with pytest.raises(UserError, match="has recorded 'nothing'"):
        later.fetch("nothing")


def test_in_a_report_only_what_a_chapter_needs_is_found(chapter, monkeypatch, quick):
    chapter.record("a.b", Estimate(0.5, 0.4, 0.6, 10))
    later = Chapter("08_later", quick)
    later.record("own", Estimate(0.1, 0.0, 0.2, 3))
    monkeypatch.setenv(NEEDS_VARIABLE, "[]")
    assert later.recall("own").n == 3
    with pytest.raises(UserError, match=r"has recorded 'a\.b'"):
        later.recall("a.b")
    monkeypatch.setenv(NEEDS_VARIABLE, '["07_test"]')
    assert later.recall("a.b").n == 10
