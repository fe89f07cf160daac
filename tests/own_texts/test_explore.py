import re

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA
from transformers import AutoModelForSequenceClassification

from sentigeo.encoder.encoder import load_encoder
from sentigeo.errors import UserError
from sentigeo.figures.style import colour_labels
from sentigeo.own_texts.explore import (
    MOST_PIECES,
    SERVED,
    Explorer,
    choose_decision,
    decide_by_classifier,
    decide_by_probe,
    decide_many,
)
from sentigeo.own_texts.read import Reading, is_classifier
from sentigeo.report.notebook import STAGE_VARIABLE

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
    def keep(value, **_):
        shown.append(value)

    monkeypatch.setattr("sentigeo.own_texts.explore.display", keep)
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


@pytest.mark.parametrize("kind", ["bert", "distilbert", "roberta", "mpnet"])
def test_a_classifier_decides_as_the_whole_model_does(kind, request, save_classifier):
    folder = save_classifier(request.getfixturevalue(f"tiny_{kind}"))
    encoder = load_encoder(str(folder))
    assert is_classifier(encoder)
    decide, classes = decide_by_classifier(str(folder), Reading(encoder, "cls", 32))
    assert classes == ["bad", "so so", "good"]
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    for text, found in zip(KNOWN, decide(KNOWN), strict=True):
        with torch.inference_mode():
            logits = model(**encoder.tokenizer(text, return_tensors="pt")).logits[0]
        np.testing.assert_allclose(found, logits.softmax(0).numpy(), atol=1e-5)


def test_many_texts_are_decided_in_parts_and_keep_their_order(monkeypatch):
    monkeypatch.setattr("sentigeo.own_texts.explore.BATCH", 2)
    sizes = []

    def count(texts):
        sizes.append(len(texts))
        return decide(texts)

    texts = ["bad " * (n * 7 % 40) + "good" for n in range(40)]
    np.testing.assert_array_equal(decide_many(count, texts), decide(texts))
    assert sizes == [20, 20]


@pytest.mark.parametrize("sizes", [(40, 60), (3, 60), (1, 60)])
def test_a_probe_learns_groups(tiny_bert, sizes, monkeypatch):
    monkeypatch.setattr("sentigeo.own_texts.explore.LEARNT", 40)  # a rare group is drawn, too
    reading = Reading(load_encoder(str(tiny_bert)), "mean", 32)
    rng = np.random.default_rng(0)
    words = ["cat dog cow", "car bus tram"]
    texts = [" ".join(rng.choice(words[g].split(), 8)) for g in (0, 1) for _ in range(sizes[g])]
    groups = np.repeat([0, 2], sizes)  # no text is of group 1
    decided = decide_by_probe(reading.vectors_of_few(texts), groups, reading)
    found = decided(["tram tram bus", "dog cow dog"])
    assert found.shape == (2, 3)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert found[1, 0] > found[0, 0]
    assert sizes[0] < 3 or found.argmax(axis=1).tolist() == [2, 0]
    assert (found[:, 1] == 0).all()


def test_a_classifier_answers_itself_and_for_others_a_probe_does(bert_classifier, tiny_bert):
    groups = colour_labels(np.arange(40) % 2, ["even", "odd"])
    expected = {bert_classifier: ["bad", "so so", "good"], tiny_bert: ["even", "odd"]}
    for folder, names in expected.items():
        reading = Reading(load_encoder(str(folder)), "mean", 32)
        vectors = reading.vectors_of_few([f"{['a', 'b'][n % 2]} {n}" for n in range(40)])
        decided, classes = choose_decision(str(folder), reading, vectors, groups)
        assert list(classes) == names
        assert decided(["a 2"]).shape == (1, len(names))
