import numpy as np
import pytest
import torch
from sentigeo.masked_copies import make_copies
from transformers import AutoModelForMaskedLM

from sentigeo.cluster import align_clusters, find_clusters
from sentigeo.deep_cluster import DeepEncoder, DeepRecipe, embed_all, train_clusters
from sentigeo.encoder import load_encoder
from sentigeo.extract import extract
from sentigeo.store import Store
from sentigeo.tokens import encode_texts

RECIPE = DeepRecipe(epochs=6, learning_rate=1e-3, batch_size=16, clustering=1.0, masked=1.0)


@pytest.fixture(scope="module")
def toy(tiny_bert, tmp_path_factory):
    """Two clear groups of texts, run through the first layer of a tiny BERT."""
    rng = np.random.default_rng(0)
    words = [["cat", "dog", "bird", "fish"], ["engine", "wheel", "road", "car"]]
    labels = np.arange(60) % 2
    texts = [" ".join(rng.choice(words[label], 8)) for label in labels]
    encoder = load_encoder(str(tiny_bert))
    store = Store(tmp_path_factory.mktemp("deep"))
    tokens = encode_texts(texts, encoder.tokenizer, 32)
    vectors, trunks = extract(tokens, encoder, store, [(2, "mean")], keep=[1])
    copies = make_copies(tokens, encoder, store, layer=1, count=2)
    return vectors.matrix(2, "mean"), labels, trunks[1], copies


def make_body(tiny_bert, vectors, clusters=2):
    torch.manual_seed(0)
    model = AutoModelForMaskedLM.from_pretrained(tiny_bert)
    return DeepEncoder(model, 1, find_clusters(vectors, clusters).centroids)


def test_vectors_before_training_are_those_of_the_encoder(toy, tiny_bert):
    vectors, _, trunk, _ = toy
    assert np.allclose(embed_all(make_body(tiny_bert, vectors), trunk), vectors, atol=1e-5)


def test_joint_training_recovers_two_groups_and_both_losses_fall(toy, tiny_bert):
    vectors, labels, trunk, copies = toy
    body, seen = make_body(tiny_bert, vectors), []
    train_clusters(body, trunk, copies, RECIPE, lambda *facts: seen.append(facts))
    assert [facts[0] for facts in seen] == list(range(7))
    members = seen[-1][2].argmax(axis=1)
    names = align_clusters(labels, members)
    assert np.mean([names[m] == label for m, label in zip(members, labels, strict=True)]) == 1
    assert seen[-1][3]["masked"] < seen[1][3]["masked"]
    assert seen[-1][2].max(axis=1).mean() > seen[0][2].max(axis=1).mean()
