import numpy as np
import pytest

from sentigeo.encoder.encoder import load_encoder
from sentigeo.encoder.tokens import encode_texts
from sentigeo.training.deep_encoder import NO_ANSWER, mask_tokens


@pytest.fixture(scope="module")
def tokenizer(tiny_bert):
    return load_encoder(str(tiny_bert)).tokenizer


def test_rates(tokenizer):
    tokens = encode_texts(["a good film with a long story " * 8] * 400, tokenizer, 64)
    masked = mask_tokens(tokens, tokenizer, 0)
    ids, plain = masked.source.ids, ~np.isin(tokens.ids, tokenizer.all_special_ids)
    owners = np.repeat(np.arange(400), np.diff(masked.starts))
    places = tokens.starts[owners] + masked.places
    assert len(places) / plain.sum() == pytest.approx(0.15, abs=0.01)
    assert plain[places].all()
    assert set(np.flatnonzero(ids != tokens.ids)) <= set(places)
    assert np.mean(ids[places] == tokenizer.mask_token_id) == pytest.approx(0.8, abs=0.02)
    assert np.mean(ids[places] == tokens.ids[places]) == pytest.approx(0.1, abs=0.02)
    assert (masked.words[masked.answers] == tokens.ids[places]).all()
    assert masked.words.tolist() == sorted(set(tokens.ids.tolist()))


def test_batches_ask_for_what_was_hidden(tokenizer):
    tokens = encode_texts(["a good film with a long story " * 3, "", "fine " * 20], tokenizer, 64)
    masked = mask_tokens(tokens, tokenizer, 0)
    rows = np.array([2, 0])
    chosen, answers = masked.ask(rows, 64)
    assert int(chosen.sum()) == len(answers) == masked.count(rows) > 0
    asked = [tokens[row][np.flatnonzero(chosen[i])] for i, row in enumerate(rows)]
    assert masked.words[answers.numpy()].tolist() == np.concatenate(asked).tolist()


def test_nothing_to_mask(tokenizer):
    masked = mask_tokens(encode_texts(["", ""], tokenizer, 64), tokenizer, 0)
    rows = np.array([0, 1])
    assert masked.count(rows) == 0
    chosen, answers = masked.ask(rows, 5)
    assert chosen.nonzero().tolist() == [[0, 0]]
    assert answers.tolist() == [NO_ANSWER]


def test_seeds(tokenizer):
    tokens = encode_texts(["a good film with a long story"] * 50, tokenizer, 64)
    first, again, other = (mask_tokens(tokens, tokenizer, seed) for seed in (0, 0, 1))
    assert (first.source.ids == again.source.ids).all()
    assert first.places.tolist() != other.places.tolist()
