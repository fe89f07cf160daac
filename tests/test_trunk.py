import numpy as np
import pytest
import torch

from sentigeo.encoder import load_encoder
from sentigeo.layers import feed_forward
from sentigeo.store import Store
from sentigeo.tokens import encode_texts
from sentigeo.trunk import load_trunks, pad

TEXTS = [
    "a fine film",
    "dull",
    "long and winding but in the end worth every one of its minutes",
    "",
]


@pytest.fixture(scope="module")
def packaged():
    return load_encoder("packaged")


def test_pad():
    ids, mask = pad([np.array([5, 6, 7]), np.array([8])], filling=9)
    assert ids.tolist() == [[5, 6, 7], [8, 9, 9]]
    assert mask.tolist() == [[True, True, True], [True, False, False]]


@pytest.mark.parametrize("model", ["packaged", "tiny"])
def test_trunk_holds_the_models_own_hidden_states(model, packaged, tiny_bert, tmp_path):
    encoder = packaged if model == "packaged" else load_encoder(str(tiny_bert))
    last = encoder.layers
    tokens = encode_texts(TEXTS, encoder.tokenizer, 12)
    trunks = load_trunks(tokens, encoder, [0, last - 1, last], Store(tmp_path))
    for row in range(len(TEXTS)):
        ids = torch.from_numpy(tokens[row].astype(np.int64))[None]
        with torch.no_grad():
            states = encoder.model(ids, output_hidden_states=True).hidden_states
        for layer in (0, last - 1):
            trunk = trunks[layer]
            found = trunk.hidden[trunk.starts[row] : trunk.starts[row + 1]]
            assert np.allclose(found, states[layer][0].numpy(), atol=1e-5)
        assert np.allclose(trunks[last].hidden[row], states[last][0, 0].numpy(), atol=1e-5)
    assert trunks[last].lengths.tolist() == [1] * len(TEXTS)
    assert trunks[0].hidden.dtype == np.float32


@pytest.mark.parametrize("model", ["packaged", "tiny"])
def test_trunk_in_the_middle_of_a_layer(model, packaged, tiny_bert, tmp_path):
    encoder = packaged if model == "packaged" else load_encoder(str(tiny_bert))
    tokens = encode_texts(TEXTS, encoder.tokenizer, 12)
    trunks = load_trunks(tokens, encoder, [0.5, 1], Store(tmp_path))
    middle = torch.from_numpy(np.array(trunks[0.5].hidden))
    with torch.no_grad():
        end = feed_forward(encoder.model.encoder.layer[0], middle)
    assert np.allclose(end.numpy(), trunks[1].hidden, atol=1e-5)


def test_trunk_is_computed_once(tiny_bert, tmp_path, monkeypatch):
    encoder = load_encoder(str(tiny_bert))
    tokens = encode_texts(TEXTS, encoder.tokenizer, 12)
    first = load_trunks(tokens, encoder, [1], Store(tmp_path))[1].hidden
    monkeypatch.setattr("sentigeo.trunk._compute", lambda *_: 1 / 0)
    assert np.array_equal(load_trunks(tokens, encoder, [1], Store(tmp_path))[1].hidden, first)
    with pytest.raises(ZeroDivisionError):
        load_trunks(encode_texts(TEXTS[:2], encoder.tokenizer, 12), encoder, [1], Store(tmp_path))
