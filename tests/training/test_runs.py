import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
from helpers import store_corpus, store_toy_corpus
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from sentigeo.cache import Store
from sentigeo.encoder.bert_layers import make_batch
from sentigeo.encoder.encoder import load_encoder
from sentigeo.errors import CacheNotice, UserError
from sentigeo.profile import load_profile
from sentigeo.training.finetune import Recipe
from sentigeo.training.runs import (
    CONTROL_WEIGHT,
    SCORED,
    Run,
    extra_rows,
    list_runs,
    plan_runs,
    train_runs,
)

SMALL = {
    "max_length": 32, "epochs": 1, "head_epochs": 2, "seeds": 1, "headline_seeds": 2,
    "batch_size": 8, "contrastive_samples": 4, "doses": [4, 8],
}  # fmt: skip
ARMS = ["without", "with", "with_8", "positive_control", "head_only", "head_only_with"]


@pytest.fixture(scope="module")
def study(tiny_bert, tmp_path_factory):
    """A corpus, an encoder, a profile and a store."""
    profile = load_profile("quick", model=str(tiny_bert), **SMALL)
    encoder, store = load_encoder(str(tiny_bert)), Store(tmp_path_factory.mktemp("runs"))
    return store_toy_corpus(store, encoder), encoder, profile, store


@pytest.fixture(scope="module")
def results(study):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOKY_MAX_CPU_COUNT", "1")  # in this process
        return train_runs(*study)


def test_every_run_answers(study, results):
    corpus, encoder, profile, store = study
    assert [result.run for result in results] == list_runs(corpus, encoder, profile)
    for result in results:
        assert {*result.logits} == {*SCORED} & {*corpus.texts["part"]}
        for part, logits in result.logits.items():
            assert logits.shape == (len(corpus.rows(part)), 2)
        assert len(result.history.train_loss) == (1 if result.run.trained else 2)
    assert not list((store.root / "training").glob("*"))


def test_results_come_from_the_store_and_damaged_ones_are_trained_again(
    study, results, monkeypatch
):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    files = {r.folder: (r.folder / "history.json").stat().st_mtime_ns for r in results}
    damaged = results[2].folder / "test.npy"
    whole = damaged.read_bytes()
    damaged.unlink()  # the first results go on reading the old file
    damaged.write_bytes(whole[:-4] + b"oops")
    with pytest.warns(CacheNotice, match="finetune"):
        again = train_runs(*study)
    for first, second in zip(results, again, strict=True):
        kept = (second.folder / "history.json").stat().st_mtime_ns == files[first.folder]
        assert kept == (second.folder != results[2].folder)
        assert np.array_equal(first.logits["test"], second.logits["test"])


def test_equal_runs_are_one(study, tmp_path, monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    corpus, encoder, profile, _ = study
    profile = profile.model_copy(update={"doses": [4]})  # as many as in the arm `with`
    results = train_runs(corpus, encoder, profile, Store(tmp_path))
    folders = {(r.run.arm, r.run.recipe.seed): r.folder for r in results}
    assert folders["with_4", 1] == folders["with", 1]
    assert folders["with_4", 0] != folders["with", 0]  # whose model is kept
    assert len({*folders.values()}) == len(folders) - 1


def answer_by_transformers(folder, corpus):
    """Return the model of a folder and its logits of the test reviews."""
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    ids, mask = make_batch(corpus.tokens, corpus.rows("test"))
    return model, model(ids, attention_mask=mask.long()).logits.detach().numpy()


@pytest.mark.parametrize("name", ["without", "with"])
def test_checkpoint_loads_anywhere_with_the_same_logits(study, results, name, tmp_path):
    result = next(r for r in results if r.run.arm == name)
    folder = shutil.copytree(result.folder, tmp_path / name)
    AutoTokenizer.from_pretrained(folder)
    model, logits = answer_by_transformers(folder, study[0])
    assert np.abs(logits - result.logits["test"]).max() < 1e-5
    assert model.config.id2label == {0: "negative", 1: "positive"}
    card = (folder / "README.md").read_text()
    assert f"{result.run.dose} handcrafted samples" in " ".join(card.split())


def test_a_corpus_without_handcrafted_texts_has_one_dose(study, tmp_path):
    _, encoder, profile, _ = study
    parts = ["train"] * 4 + ["validation"] * 2 + ["test"] * 2
    corpus = store_corpus(Store(tmp_path), ["text"] * 8, [0, 1] * 4, parts)
    runs = list_runs(corpus, encoder, profile)
    assert {run.dose for run in runs} == {0}
    assert {run.arm for run in runs} == {"without", "head_only"}


def test_another_architecture_runs_without_a_trunk(study, tiny_distilbert, tmp_path, monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")  # in this process
    changes = {"model": str(tiny_distilbert), "headline_seeds": 1}
    profile = study[2].model_copy(update=changes)
    encoder = load_encoder(str(tiny_distilbert))
    results = train_runs(replace(study[0]), encoder, profile, Store(tmp_path))
    assert [result.run.arm for result in results] == ARMS
    _, logits = answer_by_transformers(results[0].folder, study[0])
    assert np.abs(logits - results[0].logits["test"]).max() < 1e-5
    history = json.loads((results[0].folder / "history.json").read_text())
    assert history["train_loss"] == pytest.approx([np.log(2)], abs=0.1)  # untrained: a coin


def test_impossible_dose_is_said_before_anything_is_trained(study):
    corpus, encoder, profile, _ = study
    profile = profile.model_copy(update={"doses": [8, 500]})
    with pytest.raises(UserError, match="A dose of 500 contrastive samples is not possible"):
        list_runs(corpus, encoder, profile)


def test_contrastive_samples_are_drawn_by_the_seed(study):
    corpus, recipe = study[0], Recipe(epochs=1, learning_rate=1e-3, batch_size=8, seed=0)
    seeds = [Run("with", 2, 1, 4, replace(recipe, seed=seed)) for seed in range(5)]
    drawn = [extra_rows(run, corpus) for run in seeds]
    for rows in drawn:
        assert {*rows} < {*corpus.rows("contrastive")}
        assert np.bincount(corpus.labels[rows]).tolist() == [2, 2]
    assert len({frozenset(rows.tolist()) for rows in drawn}) > 1
    assert {*drawn[0]} < {*extra_rows(replace(seeds[0], dose=8), corpus)}


def test_positive_control_sees_both_sides_of_every_pair_weighted(study):
    corpus, encoder, profile, _ = study
    runs = [run for run in list_runs(corpus, encoder, profile) if run.pairs]
    assert {run.arm for run in runs} == {"positive_control"}
    rows, times = np.unique(extra_rows(runs[0], corpus), return_counts=True)
    assert rows.tolist() == corpus.rows("natural_train").tolist()
    assert set(times) == {CONTROL_WEIGHT}


def test_plan_of_the_published_report():
    profile = load_profile("laptop")
    runs = plan_runs(profile, layers=6, handcrafted=True)
    doses = {"without": 0, "with": 8, "with_128": 128, "positive_control": 0}
    for arm, dose in doses.items():
        own = [run for run in runs if run.arm == arm]
        assert [run.recipe.seed for run in own] == list(range(len(own)))
        assert len(own) >= 10
        assert {(run.dose, run.layers, run.trained) for run in own} == {
            (dose, profile.kept_layers, 1)
        }
        assert {replace(run.recipe, seed=0) for run in own} == {
            Recipe(profile.epochs, profile.learning_rate, profile.batch_size, 0)
        }  # one recipe for all arms
        kept = [run.recipe.seed for run in own if run.saved]
        assert kept == (list(range(profile.seeds)) if arm in ("without", "with") else [])
    heads = [run for run in runs if run.arm not in doses]
    for arm, dose in {"head_only": 0, "head_only_with": 8}.items():
        own = [run for run in heads if run.arm == arm]
        assert [run.recipe.seed for run in own] == list(range(profile.seeds))
        assert {(run.dose, run.trained, run.recipe.epochs) for run in own} == {
            (dose, 0, profile.head_epochs)
        }
    assert {run.arm for run in heads} == {"head_only", "head_only_with"}


def test_plan_of_the_paper_profile_trains_all_layers():
    profile = load_profile("paper")
    runs = plan_runs(profile, layers=12, handcrafted=True)
    deep = [run for run in runs if not run.arm.startswith("head_only")]
    found = {(run.layers, run.trained, run.recipe.epochs, run.recipe.learning_rate) for run in deep}
    assert found == {(12, 12, 6, profile.all_learning_rate)}


def test_plan_never_trains_more_layers_than_there_are():
    runs = plan_runs(load_profile("quick", trained_layers=9), layers=2, handcrafted=True)
    assert {(run.layers, run.trained) for run in runs} == {(2, 0), (2, 2)}


def test_an_encoder_that_cannot_be_cut_keeps_its_layers():
    runs = plan_runs(load_profile("quick", kept_layers=1), layers=3, handcrafted=True, trunk=False)
    assert {run.layers for run in runs} == {3}
