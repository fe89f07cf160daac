import numpy as np
import pytest

from sentigeo.encoder import load_encoder
from sentigeo.masking import mask_tokens
from sentigeo.tokens import encode_texts


@pytest.fixture(scope="module")
def tokenizer(tiny_bert):
    return load_encoder(str(tiny_bert)).tokenizer


def test_rates(tokenizer):
    tokens = encode_texts(["a good film with a long story " * 8] * 400, tokenizer, 64)
    masked = mask_tokens(tokens, tokenizer, 0)
    ids, plain = masked.tokens.ids, ~np.isin(tokens.ids, tokenizer.all_special_ids)
    assert len(masked.places) / plain.sum() == pytest.approx(0.15, abs=0.01)
    assert plain[masked.places].all()
    assert (masked.answers == tokens.ids[masked.places]).all()
    changed = np.flatnonzero(ids != tokens.ids)
    assert set(changed) <= set(masked.places)
    assert np.mean(ids[masked.places] == tokenizer.mask_token_id) == pytest.approx(0.8, abs=0.02)
    assert np.mean(ids[masked.places] == masked.answers) == pytest.approx(0.1, abs=0.02)


def test_seeds(tokenizer):
    tokens = encode_texts(["a good film with a long story"] * 50, tokenizer, 64)
    first, again, other = (mask_tokens(tokens, tokenizer, seed) for seed in (0, 0, 1))
    assert (first.tokens.ids == again.tokens.ids).all()
    assert first.places.tolist() != other.places.tolist()


def test_nothing_to_mask(tokenizer):
    masked = mask_tokens(encode_texts(["", ""], tokenizer, 64), tokenizer, 0)
    assert len(masked.places) == 0
