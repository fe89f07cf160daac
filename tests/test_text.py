import pytest

from sentigeo.text import clean_text, excerpt, find_words, split_sentences, words


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("One.<br /><br />Two.<BR>Three", "One. Two. Three"),
        ("Tom &amp; Jerry&#8217;s &lt;br /&gt; show", "Tom & Jerry\u2019s show"),
        ("so<i>very</i>good", "so very good"),
        ("a\x96b \x85 c\x00d\te", "a\u2013b \u2026 c d e"),
        ("I <3 this <grin>", "I <3 this <grin>"),
    ],
)
def test_clean_text(raw, clean):
    assert clean_text(raw) == clean


def test_sentences_end_behind_their_signs():
    text = 'Good film. "Really?" he asked. Costs $3.50! '
    assert split_sentences(text) == ["Good film.", '"Really?', "he asked.", "Costs $3.50!"]


def test_long_sentences_are_cut():
    pieces = split_sentences("one, two " * 30)
    assert [len(piece.split()) for piece in pieces] == [24, 24, 12]


def test_sentences_without_spaces_end_too():
    assert split_sentences("\u597d\u770b\u3002\u4e0d\u597d\uff01") == [
        "\u597d\u770b\u3002",
        "\u4e0d\u597d\uff01",
    ]


def test_words_keep_contractions_whole():
    assert words("Don't STOP, it\u2019s 9_lives!") == ["don't", "stop", "it's", "9", "lives"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("It isn't bad...", ["It", "isn't", "bad", ".", ".", "."]),
        ("\u597d\u770b, ok", ["\u597d", "\u770b", ",", "ok"]),
        (
            "\u0939\u093f\u0928\u094d\u0926\u0940 film",
            ["\u0939\u093f\u0928\u094d\u0926\u0940", "film"],
        ),
    ],
)
def test_words_of_a_text(text, words):
    assert [text[a:b] for a, b in find_words(text)] == words


def test_excerpt_ends_at_a_word_if_there_is_one():
    assert excerpt("a short review") == "a short review"
    assert excerpt("one two three four", 12) == "one two ..."
    assert excerpt("x" * 300, 20) == "x" * 16 + " ..."
