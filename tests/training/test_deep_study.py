import numpy as np
import pytest

from sentigeo import deep_study
from sentigeo.analysis.clusters import find_clusters
from sentigeo.cache import Store
from sentigeo.data.text_sets import TextSet
from sentigeo.encoder.encoder import load_encoder
from sentigeo.encoder.extract import embed_texts
from sentigeo.errors import UserError
from sentigeo.profile import load_profile
from sentigeo.training.deep_study import CONDITIONS, DeepStudy

WORDS = {"cats": "purr paw whisker tail", "cars": "engine wheel road brake"}


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    labels = np.arange(24) % 2
    lists = [words.split() for words in WORDS.values()]
    return TextSet(
        "toy", "Toy", [" ".join(rng.choice(lists[n], 8)) for n in labels], labels, list(WORDS)
    )


def make_study(texts, folder, store, seed=0, **changes):
    small = {"deep_epochs": 3, "deep_batch_size": 8, "deep_tokens": 16}
    profile = load_profile("quick", model=str(folder), **small | changes)
    return DeepStudy(texts, load_encoder(str(folder)), profile, store, seed)


@pytest.fixture(scope="module")
def study(texts, tiny_bert, tmp_path_factory):
    return make_study(texts, tiny_bert, Store(tmp_path_factory.mktemp("deep-study")))


@pytest.fixture(scope="module")
def runs(study):
    return study.runs()


def test_every_condition(study, runs):
    assert [run.condition for run in runs] == list(CONDITIONS)
    for run in runs:
        epochs = 1 if run.condition == "mlm" else 3
        assert len(run.course.members) == epochs + 1
        assert run.vectors.shape == (24, 32)
        masked = CONDITIONS[run.condition].masked
        assert np.isfinite(run.course.masked[1:]).all() == masked
        assert run.course.members[0] == study.first_clusters.members.tolist()


def test_conditions_and_seeds_differ(study, runs, texts, tiny_bert):
    found = {run.condition: run.vectors for run in runs}
    assert not np.allclose(found["kl"], found["kl_mlm"])
    assert not np.allclose(found["kl"], found["kl_unbalanced"])
    assert not np.allclose(found["kl_mlm"], found["kl_mlm_unbalanced"])
    other = make_study(texts, tiny_bert, study.store, seed=1).runs()
    assert not np.allclose(found["kl"], next(r.vectors for r in other if r.condition == "kl"))
    assert not any(run.kept for run in other)


def test_runs_are_read_from_the_cache(study, runs, texts, tiny_bert, monkeypatch):
    monkeypatch.setattr(DeepStudy, "_train_all", lambda *_: pytest.fail("trained again"))
    again = make_study(texts, tiny_bert, study.store).runs()
    assert [str(vars(run.course)) for run in again] == [str(vars(run.course)) for run in runs]
    assert not list((study.store.root / "training").glob("*"))


def test_cores_that_train_side_by_side_find_the_same(runs, texts, tiny_bert, tmp_path, monkeypatch):
    def one_after_the_other(jobs, costs):
        for job in jobs:
            job()

    monkeypatch.setattr(deep_study, "_run_on_cores", one_after_the_other)
    alone = make_study(texts, tiny_bert, Store(tmp_path)).runs()
    for run, other in zip(runs, alone, strict=True):
        assert run.course.members == other.course.members
        assert np.allclose(run.vectors, other.vectors, atol=1e-5)


def test_the_head_was_warmed_up(study, runs):
    losses = study.head_losses
    assert len(losses) == deep_study.WARM_EPOCHS
    assert losses[-1] < losses[0]
    assert study.hidden_tokens > 0


def test_the_kept_encoder_gives_the_vectors_of_its_run(study, runs):
    (kept,) = [run for run in runs if run.kept]
    assert kept.condition == deep_study.KEPT
    encoder = load_encoder(str(kept.folder))
    vectors = embed_texts(study.texts.texts, encoder, max_length=16)
    assert np.allclose(vectors, kept.vectors, atol=1e-4)
    centroids = np.load(kept.folder / "centroids.npy")
    nearest = np.linalg.norm(vectors[:, None] - centroids, axis=2).argmin(axis=1)
    assert nearest.tolist() == kept.course.members[-1]


def test_another_architecture_and_all_layers(texts, tiny_distilbert, tiny_bert, tmp_path):
    for folder, layers in ((tiny_distilbert, 1), (tiny_bert, 9)):
        small = {"deep_epochs": 1, "deep_layers": layers}
        study = make_study(texts, folder, Store(tmp_path / folder.name), **small)
        assert len(study.runs()) == len(CONDITIONS)
        assert study.start().shape == (24, 32)
        assert study.depth == min(layers, 2)


def test_a_checkpoint_with_a_head_needs_no_warming(texts, tiny_bert, tmp_path):
    from transformers import AutoTokenizer, BertForMaskedLM

    BertForMaskedLM.from_pretrained(tiny_bert).save_pretrained(tmp_path / "with-head")
    AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(tmp_path / "with-head")
    study = make_study(texts, tmp_path / "with-head", Store(tmp_path / "store"), deep_epochs=1)
    assert study.head_losses == []


def test_k_means_starts_from_the_seed(texts, study, tiny_bert):
    other = make_study(texts, tiny_bert, study.store, seed=1)
    expected = find_clusters(study.start(), 2, 1)
    assert np.array_equal(other.first_clusters.centroids, expected.centroids)


def test_vectors_are_those_of_the_encoder(study, tiny_bert):
    encoder = load_encoder(str(tiny_bert))
    for pooling in ("cls", "mean"):
        expected = embed_texts(study.texts.texts, encoder, pooling=pooling, max_length=16)
        assert np.allclose(study.start(pooling), expected, atol=1e-6)


def test_a_head_warmed_with_other_batches_is_another(texts, tiny_bert, study, runs):
    other = make_study(texts, tiny_bert, study.store, deep_batch_size=24)
    assert other.head_losses != study.head_losses


def test_too_many_tokens_and_no_mask(texts, tiny_bert, tmp_path):
    with pytest.raises(UserError, match="deep_tokens is 600, but the encoder reads at most 64"):
        make_study(texts, tiny_bert, Store(tmp_path), deep_tokens=600)
    encoder = load_encoder(str(tiny_bert))
    encoder.tokenizer.mask_token = None
    with pytest.raises(UserError, match="has no mask"):
        DeepStudy(texts, encoder, load_profile("quick"), Store(tmp_path))


def test_an_encoder_without_a_masked_language_model(texts, tiny_bert, tmp_path):
    from transformers import CLIPTextConfig

    encoder = load_encoder(str(tiny_bert))
    encoder.model.config = CLIPTextConfig()
    with pytest.raises(UserError, match="has no masked-language head"):
        DeepStudy(texts, encoder, load_profile("quick"), Store(tmp_path))


def test_more_clusters_than_different_texts(tiny_bert, tmp_path):
    same = TextSet("toy", "Toy", ["cat"] * 6, np.arange(6) % 2, ["a", "b"])
    with pytest.raises(UserError, match="k = 2 clusters are not possible"):
        make_study(same, tiny_bert, Store(tmp_path)).runs()
