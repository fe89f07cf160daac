import numpy as np
import pytest

from sentigeo.analysis.opinion_words import (
    Wording,
    draw_sentences,
    find_flip,
    find_opinion,
    opinion_words,
    split_sentences,
)
from sentigeo.errors import UserError

OPINIONS = {"good", "bad", "awful"}


def test_sentences_end_behind_their_signs():
    text = 'Good film. "Really?" he asked. Costs $3.50! '
    assert split_sentences(text) == ["Good film.", '"Really?', "he asked.", "Costs $3.50!"]


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
def test_flips_by_hand(sentence, found):
    assert find_flip(sentence.split(), OPINIONS) == found


def test_first_opinion():
    assert find_opinion(["a", "Bad", "and", "awful", "one"], OPINIONS) == 1
    assert find_opinion(["neutral"], OPINIONS) is None


def test_half_of_the_sentences_turn_an_opinion():
    plain = [f"This is film number {n} and a good one." for n in range(30)]
    turned = [f"This is film number {n} and not a bad one." for n in range(30)]
    short = ["Not good.", "Too short to be good."]
    drawn = draw_sentences([" ".join([*plain, *turned, *short]), plain[0]], OPINIONS, 20)
    assert len(set(drawn)) == 20
    assert sum("not a bad" in sentence for sentence in drawn) == 10
    assert not set(drawn) & set(short)
    assert drawn == draw_sentences([" ".join([*plain, *turned, *short]), plain[0]], OPINIONS, 20)
    few = draw_sentences([" ".join([*plain, *turned[:3]])], OPINIONS, 20)
    assert sum("not a bad" in sentence for sentence in few) == 3
    assert len(few) == 20
    neutral = "Nothing to see here, move along please."
    assert draw_sentences([neutral], OPINIONS, 5) == [neutral]
    assert draw_sentences(["Short.", neutral], OPINIONS, 5) == [neutral, "Short."]
    with pytest.raises(UserError, match="No text has a word"):
        draw_sentences([" "], OPINIONS, 5)


def test_long_sentences_are_cut():
    pieces = split_sentences("one, two " * 30)
    assert [len(piece.split()) for piece in pieces] == [24, 24, 12]


def test_sentences_without_spaces_end_too():
    assert split_sentences("\u597d\u770b\u3002\u4e0d\u597d\uff01") == [
        "\u597d\u770b\u3002",
        "\u4e0d\u597d\uff01",
    ]


def test_opinion_words_turn_nothing_round():
    wording = Wording(["bad", "don't", "not", "not bad", "though"], np.zeros(5, int), 0, 0)
    assert opinion_words(wording) == {"bad"}
