import numpy as np
import pytest

from sentigeo.analysis.opinion_words import (
    TAGS,
    OpinionWords,
    draw_sentences,
    errors_by_tag,
    find_negated,
    find_opinion,
    learn_opinion_words,
    tag_texts,
)
from sentigeo.errors import UserError
from sentigeo.stats import unfold

KNOWN = OpinionWords(
    ["awful", "dull", "great", "lovely"], np.array([0, 0, 1, 1]), few=0.1, many=0.2
)
OPINIONS = {"good", "bad", "awful"}


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
    known = learn_opinion_words([f"{own} seen today" for own in side], labels, 2)
    owners = dict(zip(known.terms, known.classes.tolist(), strict=True))
    assert owners["dull"] == 0
    assert owners["great"] == 1
    assert "today" not in owners


def test_more_than_two_classes():
    known = OpinionWords(["ball", "bank", "vote"], np.array([0, 1, 2]), few=0.0, many=1.0)
    found = tag_texts(known, ["ball ball", "ball bank vote", "bank"], np.array([0, 2, 1]))
    assert found["tag"].tolist() == ["plain", "mixed", "plain"]  # one word of each class
    assert found["other"].tolist() == [0, 1, 0]


def test_error_rates_by_tag():
    tags = tag_texts(KNOWN, ["great", "great", "dull"], np.array([1, 1, 1]))["tag"]
    found = unfold(errors_by_tag(tags, np.array([True, False, True]))).set_index("tag")
    assert found.loc["plain", ["errors", "n"]].tolist() == [1, 2]
    assert found.loc["plain", "value"] == 0.5
    assert found.loc["other side", "value"] == 1.0
    assert list(found.index) == list(TAGS)
    assert found.loc["mixed", "n"] == 0
    assert np.isnan(found.loc["mixed", "value"])


def test_texts_that_share_no_words_have_no_opinion_words():
    known = learn_opinion_words(["one two", "three four"], np.array([0, 1]), 2)
    assert known.terms == []
    assert tag_texts(known, ["one two"], np.array([0]))["tag"].tolist() == ["few opinions"]


def test_no_opinion_words_at_all():
    known = OpinionWords([], np.array([], int), few=0.0, many=1.0)
    assert tag_texts(known, ["great film"], np.array([1]))["tag"].tolist() == ["few opinions"]


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("it is not a good film", (2, 4)),
        ("it isn't bad", (1, 2)),
        ("it ISN\u2019T Bad", (1, 2)),
        ("nice but awful", (1, 2)),
        ("good but never bad", (2, 3)),  # the nearest word before the opinion
        ("a good film", None),
        ("good , not long", None),
        ("not that it was in any way good", None),  # too far away
    ],
)
def test_negated_opinions_by_hand(sentence, found):
    assert find_negated(sentence.split(), OPINIONS) == found


def test_first_opinion():
    assert find_opinion(["a", "Bad", "and", "awful", "one"], OPINIONS) == 1
    assert find_opinion(["neutral"], OPINIONS) is None


def test_half_of_the_sentences_negate_an_opinion():
    plain = [f"This is film number {n} and a good one." for n in range(30)]
    negated = [f"This is film number {n} and not a bad one." for n in range(30)]
    short = ["Not good.", "Too short to be good."]
    drawn = draw_sentences([" ".join([*plain, *negated, *short]), plain[0]], OPINIONS, 20)
    assert len(set(drawn)) == 20
    assert sum("not a bad" in sentence for sentence in drawn) == 10
    assert not set(drawn) & set(short)
    assert drawn == draw_sentences([" ".join([*plain, *negated, *short]), plain[0]], OPINIONS, 20)
    few = draw_sentences([" ".join([*plain, *negated[:3]])], OPINIONS, 20)
    assert sum("not a bad" in sentence for sentence in few) == 3
    assert len(few) == 20
    neutral = "Nothing to see here, move along please."
    assert draw_sentences([neutral], OPINIONS, 5) == [neutral]
    assert draw_sentences(["Short.", neutral], OPINIONS, 5) == [neutral, "Short."]
    with pytest.raises(UserError, match="No text has a word"):
        draw_sentences([" "], OPINIONS, 5)


def test_single_words_are_no_negations():
    known = OpinionWords(["bad", "don't", "not", "not bad", "though"], np.zeros(5, int), 0, 0)
    assert known.single == {"bad"}
