import numpy as np
import pytest

from sentigeo.analysis.opinion_words import TAGS, Wording, errors_by_tag, learn_wording, tag_texts

KNOWN = Wording(["awful", "dull", "great", "lovely"], np.array([0, 0, 1, 1]), few=0.1, many=0.2)


@pytest.mark.parametrize(
    ("text", "label", "tag"),
    [
        ("great lovely picture", 1, "plain"),
        ("great lovely picture", 0, "other side"),
        ("great picture dull ending", 1, "mixed"),
        ("a man walks into town and meets people from there", 1, "few opinions"),
        ("great but however lovely", 1, "turns"),
        ("", 0, "few opinions"),
    ],
)
def test_tags_by_hand(text, label, tag):
    found = tag_texts(KNOWN, [text, "great"], np.array([label, 1]))
    assert found.loc[0, "tag"] == tag
    assert found.loc[1, "tag"] == "plain"


def test_counts_behind_a_tag():
    found = tag_texts(KNOWN, ["great great dull film but short"], np.array([1])).loc[0]
    assert (found["own"], found["other"], found["turns"], found["words"]) == (2, 1, 1, 6)


def test_opinion_words_are_learned_from_labels():
    rng = np.random.default_rng(0)
    labels = np.arange(400) % 2
    side = [
        ["dull plot", "great cast"][label] if rng.random() < 0.9 else "film" for label in labels
    ]
    wording = learn_wording([f"{own} seen today" for own in side], labels, 2)
    owners = dict(zip(wording.terms, wording.owners.tolist(), strict=True))
    assert owners["dull"] == 0
    assert owners["great"] == 1
    assert "today" not in owners


def test_more_than_two_classes():
    wording = Wording(["ball", "bank", "vote"], np.array([0, 1, 2]), few=0.0, many=1.0)
    found = tag_texts(wording, ["ball ball", "ball bank vote", "bank"], np.array([0, 2, 1]))
    assert found["tag"].tolist() == ["plain", "mixed", "plain"]  # one word of each class
    assert found["other"].tolist() == [0, 1, 0]


def test_error_rates_by_tag():
    tags = tag_texts(KNOWN, ["great", "great", "dull"], np.array([1, 1, 1]))["tag"]
    found = errors_by_tag(tags, np.array([True, False, True])).set_index("tag")
    assert found.loc["plain", ["errors", "n"]].tolist() == [1, 2]
    assert found.loc["plain", "value"] == 0.5
    assert found.loc["other side", "value"] == 1.0
    assert list(found.index) == list(TAGS)
    assert found.loc["mixed", "n"] == 0
    assert np.isnan(found.loc["mixed", "value"])


def test_texts_that_share_no_words_have_no_opinion_words():
    wording = learn_wording(["one two", "three four"], np.array([0, 1]), 2)
    assert wording.terms == []
    assert tag_texts(wording, ["one two"], np.array([0]))["tag"].tolist() == ["few opinions"]


def test_no_opinion_words_at_all():
    wording = Wording([], np.array([], int), few=0.0, many=1.0)
    assert tag_texts(wording, ["great film"], np.array([1]))["tag"].tolist() == ["few opinions"]
