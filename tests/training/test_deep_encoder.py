import numpy as np
import pytest
import torch

from sentigeo.cache import Store
from sentigeo.encoder.encoder import load_encoder
from sentigeo.encoder.extract import extract
from sentigeo.encoder.tokens import encode_texts
from sentigeo.encoder.trunk import make_batch
from sentigeo.training.deep_encoder import DeepEncoder, TopDeepEncoder, load_masked_lm

WORDS = np.arange(2000, 2100)
TEXTS = ["a good film", "a long and boring story about nothing", "fine"]


def make(kind, folder, layers=1):
    model, _ = load_masked_lm(str(folder), None)
    return kind(model, layers, np.ones((2, 32)), WORDS)


@pytest.fixture(scope="module")
def inputs(tiny_bert, tmp_path_factory):
    """Three texts as token ids, and what the first layer makes of them."""
    encoder = load_encoder(str(tiny_bert))
    tokens = encode_texts(TEXTS, encoder.tokenizer, 16)
    store = Store(tmp_path_factory.mktemp("deep-encoder"))
    return tokens, extract(tokens, encoder, store, [], keep=[1])[1][1]


def test_a_cached_trunk_gives_the_same(tiny_bert, inputs):
    tokens, trunk = inputs
    rows, chosen = np.arange(3), torch.zeros(3, 9, dtype=torch.bool)
    chosen[0, 1] = chosen[1, [2, 4]] = True
    found = []
    for kind, source in ((DeepEncoder, tokens), (TopDeepEncoder, trunk)):
        body = make(kind, tiny_bert)
        states, mask = make_batch(source, rows)
        found.append(body([states, mask], [states, mask, chosen[:, : mask.shape[1]]]))
    for whole, top in zip(*found, strict=True):
        assert torch.allclose(whole, top, atol=1e-5)
    assert found[0][0].shape == (3, 2)
    assert found[0][1].shape == (3, 100)


@pytest.mark.parametrize("kind", [DeepEncoder, TopDeepEncoder])
def test_parts_that_are_trained(tiny_bert, kind):
    body = make(kind, tiny_bert)
    assert list(body.train_parts({"centroids"})) == ["centroids"]
    layers = body.train_parts({"layers"})
    assert all(".encoder.layer.1." in name for name in layers)
    head = body.train_parts({"head"})
    assert "decoder.bias" in head
    assert not any("encoder" in name or "embeddings" in name for name in head)
    assert len(body.train_parts({"layers", "head", "centroids"})) == len(layers) + len(head) + 1


def test_another_architecture(tiny_distilbert):
    body = make(DeepEncoder, tiny_distilbert)
    tokens = encode_texts(TEXTS, load_encoder(str(tiny_distilbert)).tokenizer, 16)
    shares, scores = body(make_batch(tokens, np.arange(3)), None)
    assert scores is None
    assert torch.allclose(shares.sum(dim=1), torch.ones(3))
    assert all(".layer.1." in name for name in body.train_parts({"layers"}))
