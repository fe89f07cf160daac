import numpy as np
import pytest

from sentigeo import deep_study
from sentigeo.cluster import find_clusters
from sentigeo.deep_study import CONDITIONS, DeepStudy
from sentigeo.embed import embed_texts
from sentigeo.encoder import load_encoder
from sentigeo.profile import load_profile
from sentigeo.store import Store
from sentigeo.text_sets import TextSet

WORDS = {"cats": "purr paw whisker tail", "cars": "engine wheel road brake"}


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(0)
    labels = np.arange(24) % 2
    lists = [words.split() for words in WORDS.values()]
    return TextSet(
        "toy", "Toy", [" ".join(rng.choice(lists[n], 8)) for n in labels], labels, list(WORDS)
    )


def make_study(texts, folder, store, **changes):
    small = {"deep_epochs": 3, "deep_batch_size": 8, "deep_seeds": 2, "deep_tokens": 16}
    profile = load_profile("quick", model=str(folder), **small | changes)
    return DeepStudy(texts, load_encoder(str(folder)), profile, store)


@pytest.fixture(scope="module")
def study(texts, tiny_bert, tmp_path_factory):
    return make_study(texts, tiny_bert, Store(tmp_path_factory.mktemp("deep-study")))


@pytest.fixture(scope="module")
def runs(study):
    return study.runs()


def test_every_condition_and_seed(study, runs):
    assert {(run.condition, run.seed) for run in runs} == {
        (name, seed) for name in CONDITIONS for seed in (0, 1)
    }
    for run in runs:
        epochs = 1 if run.condition == "mlm" else 3
        assert len(run.course.members) == epochs + 1
        assert run.vectors.shape == (24, 32)
        masked = CONDITIONS[run.condition].masked
        assert np.isfinite(run.course.masked[1:]).all() == masked
        assert run.course.members[0] == study.first_clusters[run.seed].members.tolist()


def test_conditions_and_seeds_differ(runs):
    found = {(run.condition, run.seed): run.vectors for run in runs}
    assert not np.allclose(found["kl", 0], found["kl", 1])
    assert not np.allclose(found["kl", 0], found["kl_mlm", 0])
    assert not np.allclose(found["kl", 0], found["kl_unbalanced", 0])


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
    (kept,) = [run for run in runs if (run.folder / "config.json").is_file()]
    assert (kept.condition, kept.seed) == deep_study.KEPT
    encoder = load_encoder(str(kept.folder))
    vectors = embed_texts(study.texts.texts, encoder, max_length=16)
    assert np.allclose(vectors, kept.vectors, atol=1e-4)
    centroids = np.load(kept.folder / "centroids.npy")
    nearest = np.linalg.norm(vectors[:, None] - centroids, axis=2).argmin(axis=1)
    assert nearest.tolist() == kept.course.members[-1]


def test_another_architecture_and_all_layers(texts, tiny_distilbert, tiny_bert, tmp_path):
    for folder, layers in ((tiny_distilbert, 1), (tiny_bert, 9)):
        small = {"deep_seeds": 1, "deep_epochs": 1, "deep_layers": layers}
        study = make_study(texts, folder, Store(tmp_path / folder.name), **small)
        assert len(study.runs()) == len(CONDITIONS)
        assert study.start.shape == (24, 32)


def test_a_checkpoint_with_a_head_needs_no_warming(texts, tiny_bert, tmp_path):
    from transformers import AutoTokenizer, BertForMaskedLM

    BertForMaskedLM.from_pretrained(tiny_bert).save_pretrained(tmp_path / "with-head")
    AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(tmp_path / "with-head")
    study = make_study(texts, tmp_path / "with-head", Store(tmp_path / "store"), deep_epochs=1)
    assert study.head_losses == []


def test_k_means_starts_from_the_seed(study):
    expected = find_clusters(study.start, 2, 1)
    assert np.array_equal(study.first_clusters[1].centroids, expected.centroids)
