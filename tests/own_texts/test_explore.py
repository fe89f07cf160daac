import re

import numpy as np
import pytest
from sklearn.decomposition import PCA

from sentigeo.encoder.encoder import load_encoder
from sentigeo.errors import UserError
from sentigeo.figures.style import colour_labels
from sentigeo.own_texts.decisions import Reading
from sentigeo.own_texts.explore import MOST_PIECES, SERVED, Explorer
from sentigeo.report.notebook import STAGE_VARIABLE

EXPLORE = "sentigeo.own_texts.explore"
KNOWN = ["good day", "good night", "bad day", "bad night", "<b>bad</b> end"]


def decide(texts):
    """The share of the word `bad` among good and bad ones."""
    bad = np.array([len(re.findall("bad", text)) for text in texts], float)
    good = np.array([len(re.findall("good", text)) for text in texts], float)
    chance = (bad + 1) / (bad + good + 2)
    return np.stack([chance, 1 - chance], axis=1)


@pytest.fixture(scope="module")
def explorer(tiny_bert):
    reading = Reading(load_encoder(str(tiny_bert)), "mean", 32)
    return Explorer(
        reading, decide, ["b_ad", "good"], texts=KNOWN, vectors=reading.vectors_of_few(KNOWN),
        groups=colour_labels(np.array([1, 1, 0, 0, 0]), ["b_ad", "good"]),
    )  # fmt: skip


def test_what_is_found_about_a_sentence(explorer):
    found = explorer.explore("bad day, bad night")
    np.testing.assert_allclose(found.probabilities, [0.75, 0.25])
    falls = dict(zip(found.words["word"], found.words["occlusion"], strict=True))
    assert falls["bad"] == pytest.approx(0.75 - 2 / 3)
    assert falls["day"] == falls[","] == 0
    assert found.words[["begin", "end"]].iloc[1].tolist() == [4, 7]
    assert list(found.near) == ["cosine", "group", "text"]
    assert len(found.near) == 5
    assert found.near["cosine"].is_monotonic_decreasing


def test_a_known_text_is_its_own_nearest_and_lies_where_it_lies(explorer):
    found = explorer.explore("bad night")
    assert found.near.iloc[0].tolist() == [pytest.approx(1), "b_ad", "bad night"]
    points = PCA(2, svd_solver="covariance_eigh").fit_transform(explorer.vectors)
    np.testing.assert_allclose(found.place, points[3], atol=1e-4)


def test_long_texts_are_taken_apart_in_phrases(explorer):
    found = explorer.explore("good bad " * 200)
    assert len(found.words) == MOST_PIECES
    assert found.words["end"].iloc[-1] == len("good bad " * 200) - 1


def test_mark_up_is_not_read(explorer):
    found = explorer.explore("bad<br /><br />day &amp; night")
    assert found.sentence == "bad day & night"
    assert found.words["word"].tolist() == ["bad", "day", "&", "night"]


def test_nothing_is_nothing_to_look_at(explorer):
    with pytest.raises(UserError, match="nothing to look at"):
        explorer.explore(" \n")


def test_show_escapes_texts(explorer, shown, monkeypatch):
    monkeypatch.setattr(
        "sentigeo.own_texts.explore.display", lambda value, **_: shown.append(value)
    )
    explorer.show('bad <script>alert(1)</script> "so"')
    assert r"**b\_ad** with probability 0.667" in shown[0].data
    assert "<script>" not in shown[1]["text/html"]
    assert "&lt;" in shown[1]["text/html"]
    assert "bad +0.167" in shown[1]["text/plain"]
    assert "<b>" not in shown[2]["text/html"]
    assert shown[3].data[:4] == b"\x89PNG"


def test_without_a_server_or_in_a_report_there_is_no_box(explorer, shown, monkeypatch):
    monkeypatch.delenv(SERVED, raising=False)
    explorer.box()
    monkeypatch.setenv(SERVED, "notebooks/90_your_texts.ipynb")
    monkeypatch.setenv(STAGE_VARIABLE, "stage")
    explorer.box()
    assert ["`make lab`" in output.data for output in shown] == [True, True]


def test_a_box_takes_sentences(explorer, monkeypatch):
    monkeypatch.setenv(SERVED, "notebooks/90_your_texts.ipynb")
    monkeypatch.delenv(STAGE_VARIABLE, raising=False)
    shown, seen = [], []
    monkeypatch.setattr(
        "sentigeo.own_texts.explore.display", lambda *values, **_: shown.extend(values)
    )
    monkeypatch.setattr(explorer, "show", seen.append)
    explorer.box()
    row, _ = shown
    field, button = row.children
    field.value = "bad day"
    button.click()
    assert seen == ["bad day"]
