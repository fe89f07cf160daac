import numpy as np
import pytest
from helpers import store_toy_corpus

from sentigeo.cache import Store
from sentigeo.encoder.encoder import load_encoder
from sentigeo.encoder.extract import embed_texts
from sentigeo.profile import load_profile
from sentigeo.training.answers import consistent, hits, kept_models, pick_tuned, read_stages
from sentigeo.training.runs import train_runs

SMALL = {
    "max_length": 32, "epochs": 1, "dose_epochs": 1, "seeds": 1, "headline_seeds": 2,
    "depth_reviews": 8, "depth_test_reviews": 8, "contrastive_samples": 8, "doses": [0],
}  # fmt: skip


@pytest.fixture(scope="module")
def study(tiny_bert, tmp_path_factory):
    """A corpus, an encoder, a store, and the results of all runs."""
    profile = load_profile("quick", model=str(tiny_bert), **SMALL)
    encoder, store = load_encoder(str(tiny_bert)), Store(tmp_path_factory.mktemp("answers"))
    corpus = store_toy_corpus(store, encoder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOKY_MAX_CPU_COUNT", "1")  # in this process
        return corpus, encoder, store, train_runs(corpus, encoder, profile, store)


def test_hits_and_consistent_pairs(study):
    corpus, _, _, results = study
    right = hits(results, "with", "test")
    own = [result for result in results if result.run.name == "with"]
    assert right.shape == (2, 12)
    for row, result in zip(right, own, strict=True):
        expected = result.logits["test"].argmax(1) == corpus.labels_of("test")
        assert row.tolist() == expected.tolist()
    assert hits(results, "all", "depth").shape == (1, 8)
    pairs = corpus.texts["pair"].iloc[corpus.rows("challenge")]
    sides = hits(results, "without", "challenge")[1]
    expected = [sides[(pairs == pair).to_numpy()].all() for pair in pairs.unique()]
    assert consistent(results, "without", corpus)[1].tolist() == expected


def test_fine_tuned_vectors_are_those_of_the_checkpoint(study):
    corpus, encoder, store, results = study
    tuned, found = pick_tuned(results), read_stages(results, corpus, encoder, store)
    assert (tuned.run.name, tuned.run.recipe.seed) == ("with", 0)
    assert {layer for layer, _ in found.fine_tuned.kinds} == {1, 2}  # 1.5 of 2 were trained
    plain, texts = load_encoder(str(tuned.folder)), corpus.texts["text"].tolist()
    for layer, pooling in [(2, "cls"), (2, "mean"), (1, "max"), (0, "mean")]:
        expected = embed_texts(texts, plain, layer, pooling, 32, truncation="first+last")
        assert np.abs(found.fine_tuned.matrix(layer, pooling) - expected).max() < 1e-5
    assert not np.allclose(found.fine_tuned.matrix(), found.pretrained.matrix(), atol=1e-6, rtol=0)
    assert found.logits is tuned.logits


def test_last_cls_vectors_without_samples(study):
    corpus, encoder, store, results = study
    kept = kept_models(results)
    assert kept.keys() == {"without", "with"}
    alone = read_stages(results, corpus, encoder, store).without
    assert alone.kinds == ((2, "cls"),)
    plain = load_encoder(str(kept["without"].folder))
    texts = corpus.texts["text"].tolist()
    expected = embed_texts(texts, plain, max_length=32, truncation="first+last")
    assert np.abs(alone.matrix() - expected).max() < 1e-5
