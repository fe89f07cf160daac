from dataclasses import replace

import numpy as np
import pytest

from sentigeo.analysis.clusters import find_clusters
from sentigeo.cache import Store
from sentigeo.data.text_sets import TextSet
from sentigeo.encoder.encoder import load_encoder
from sentigeo.encoder.extract import embed_texts
from sentigeo.errors import UserError
from sentigeo.profile import load_profile
from sentigeo.training.deep_clustering import KEPT
from sentigeo.training.deep_study import CONDITIONS, WARM_EPOCHS, prepare_draws, train_draws

WORDS = {"cats": "purr paw whisker tail", "cars": "engine wheel road brake"}


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    labels = np.arange(24) % 2
    lists = [words.split() for words in WORDS.values()]
    return TextSet(
        "toy", "Toy", [" ".join(rng.choice(lists[n], 8)) for n in labels], labels, list(WORDS)
    )


def make_profile(folder, **changes):
    small = {"deep_epochs": 3, "deep_batch_size": 8, "deep_tokens": 16}
    return load_profile("quick", model=str(folder), **small | changes)


def train(texts, folder, store, count=1, **changes):
    """Train so many draws of the same texts in this process."""
    encoder, profile = load_encoder(str(folder)), make_profile(folder, **changes)
    draws = prepare_draws({"toy": [texts] * count}, encoder, profile)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOKY_MAX_CPU_COUNT", "1")
        return train_draws(draws, encoder, store)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return Store(tmp_path_factory.mktemp("deep-study"))


@pytest.fixture(scope="module")
def found(texts, tiny_bert, store):
    return train(texts, tiny_bert, store, count=2)


def test_every_condition(found):
    for result in found:
        assert [run.condition for run in result.runs] == list(CONDITIONS)
        for run in result.runs:
            epochs = 1 if run.condition == "mlm" else 3
            assert len(run.course.members) == epochs + 1
            assert run.vectors.shape == (24, 32)
            masked = result.draw.recipes[run.condition].masked > 0
            assert np.isfinite(run.course.masked[1:]).all() == masked
            assert run.course.members[0] == result.first.members.tolist()


def test_conditions_and_seeds_differ(found):
    first, other = ({run.condition: run.vectors for run in result.runs} for result in found)
    assert not np.allclose(first["kl"], first["kl_mlm"])
    assert not np.allclose(first["kl"], first["kl_unbalanced"])
    assert not np.allclose(first["kl_mlm"], first["kl_mlm_unbalanced"])
    assert not np.allclose(first["kl"], other["kl"])
    assert not any(run.kept for run in found[1].runs)


def test_draws_are_read_from_the_store(found, texts, tiny_bert, store):
    stamps = [run.folder.stat().st_mtime_ns for run in found[0].runs]
    (again,) = train(texts, tiny_bert, store)
    assert [run.folder.stat().st_mtime_ns for run in again.runs] == stamps
    courses = [[str(vars(run.course)) for run in result.runs] for result in (again, found[0])]
    assert courses[0] == courses[1]
    assert not list((store.root / "training").glob("*"))


def test_the_head_was_warmed_up(found):
    losses = found[0].head_losses
    assert len(losses) == WARM_EPOCHS
    assert losses[-1] < losses[0]
    assert found[0].hidden_tokens > 0


def test_the_kept_encoder_gives_the_vectors_of_its_run(found, texts):
    (kept,) = [run for run in found[0].runs if run.kept]
    assert kept.condition == KEPT
    encoder = load_encoder(str(kept.folder))
    vectors = embed_texts(texts.texts, encoder, max_length=16)
    assert np.allclose(vectors, kept.vectors, atol=1e-4)
    centroids = np.load(kept.folder / "centroids.npy")
    nearest = np.linalg.norm(vectors[:, None] - centroids, axis=2).argmin(axis=1)
    assert nearest.tolist() == kept.course.members[-1]


def test_another_architecture_and_all_layers(texts, tiny_distilbert, tiny_bert, tmp_path):
    for folder, layers in ((tiny_distilbert, 1), (tiny_bert, 9)):
        small = {"deep_epochs": 1, "deep_layers": layers}
        (result,) = train(texts, folder, Store(tmp_path / folder.name), **small)
        assert len(result.runs) == len(CONDITIONS)
        assert result.pretrained.matrix().shape == (24, 32)
        assert result.draw.depth == min(layers, 2)


def test_a_checkpoint_with_a_head_needs_no_warming(texts, tiny_bert, tmp_path):
    from transformers import AutoTokenizer, BertForMaskedLM

    BertForMaskedLM.from_pretrained(tiny_bert).save_pretrained(tmp_path / "with-head")
    AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(tmp_path / "with-head")
    (result,) = train(texts, tmp_path / "with-head", Store(tmp_path / "store"), deep_epochs=1)
    assert result.head_losses == []


def test_k_means_starts_from_the_seed(found):
    expected = find_clusters(found[0].pretrained.matrix(), 2, 1)
    assert np.array_equal(found[1].first.centroids, expected.centroids)


def test_vectors_are_those_of_the_encoder(found, texts, tiny_bert):
    encoder = load_encoder(str(tiny_bert))
    for pooling in ("cls", "mean"):
        expected = embed_texts(texts.texts, encoder, pooling=pooling, max_length=16)
        assert np.allclose(found[0].pretrained.matrix(-1, pooling), expected, atol=1e-6)


def test_a_head_warmed_with_other_batches_is_another(found, texts, tiny_bert, store):
    (other,) = train(texts, tiny_bert, store, deep_batch_size=24, deep_epochs=1)
    assert other.head_losses != found[0].head_losses


def test_too_many_tokens_and_no_mask(texts, tiny_bert):
    encoder = load_encoder(str(tiny_bert))
    with pytest.raises(UserError, match="deep_tokens is 600, but the encoder reads at most 64"):
        prepare_draws({"toy": [texts]}, encoder, make_profile(tiny_bert, deep_tokens=600))
    encoder.tokenizer.mask_token = None
    with pytest.raises(UserError, match="has no mask"):
        prepare_draws({"toy": [texts]}, encoder, make_profile(tiny_bert))


def test_without_texts_nothing_is_asked_of_the_encoder(tiny_bert):
    encoder = load_encoder(str(tiny_bert))
    encoder.tokenizer.mask_token = None
    assert prepare_draws({}, encoder, make_profile(tiny_bert)) == []


def test_an_encoder_without_a_masked_language_model(texts, tiny_bert):
    from transformers import CLIPTextConfig

    encoder = load_encoder(str(tiny_bert))
    encoder.model.config = CLIPTextConfig()
    with pytest.raises(UserError, match="has no masked-language head"):
        prepare_draws({"toy": [texts]}, encoder, make_profile(tiny_bert))


def test_more_clusters_than_different_texts(texts, tiny_bert, tmp_path):
    same = replace(texts, texts=["cat"] * 24)
    with pytest.raises(UserError, match="k = 2 clusters are not possible"):
        train(same, tiny_bert, Store(tmp_path))
