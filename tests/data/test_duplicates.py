import pytest

from sentigeo.data.reviews import near_duplicates
from sentigeo.text import words

TEXT = "one two three four five six seven eight nine ten"


def test_overlap_is_counted_by_hand():
    # 10 words have 6 shingles of five; the second text keeps the first four of them.
    other = "one two three four five six seven eight other words entirely new here"
    pairs = near_duplicates([TEXT, "unrelated words that share nothing at all", other], 0.1)
    assert pairs[["first", "second"]].to_numpy().tolist() == [[0, 2]]
    assert pairs["overlap"].item() == pytest.approx(4 / 6)


def test_case_punctuation_and_additions_do_not_hide_a_copy():
    longer = f"{TEXT.upper()}! And a long passage that nobody else in the whole world wrote."
    assert near_duplicates([TEXT, longer], 0.9)["overlap"].item() == pytest.approx(1.0)


def test_short_texts_match_only_when_equal():
    assert len(near_duplicates(["Great movie!", "great movie", "a great movie"], 0.1)) == 1


def test_one_common_phrase_is_no_copy():
    phrase = "this is one of the"
    assert near_duplicates([f"{phrase} worst films ever", f"{phrase} best shows around"], 0.2).empty


def test_texts_without_words_are_compared_as_they_are():
    pairs = near_duplicates([":)", ":(", "!!!", ":("], 0.2)
    assert pairs[["first", "second"]].to_numpy().tolist() == [[1, 3]]


def test_nothing_alike():
    assert near_duplicates([TEXT, "quite another text with other words in it"], 0.01).empty


def test_words_keep_contractions_whole():
    assert words("Don't STOP, it\u2019s 9_lives!") == ["don't", "stop", "it's", "9", "lives"]
