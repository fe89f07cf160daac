import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest
from sentigeo.data.corpus import build_corpus
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from sentigeo.cache import Store
from sentigeo.data.reviews import load_reviews
from sentigeo.encoder.encoder import load_encoder
from sentigeo.encoder.extract import embed_texts
from sentigeo.encoder.trunk import make_batch
from sentigeo.errors import UserError
from sentigeo.profile import load_profile
from sentigeo.training.runs import Study, kept_models, pick_tuned, plan_runs

SMALL = {
    "draw_per_label": 20, "test_reviews": 30, "max_length": 32, "epochs": 1, "dose_epochs": 1,
    "seeds": 2, "headline_seeds": 2, "depth_reviews": 16, "depth_test_reviews": 8, "batch_size": 8,
}  # fmt: skip


@pytest.fixture(scope="module")
def study(tiny_bert, tmp_path_factory):
    profile = load_profile("quick", model=str(tiny_bert), **SMALL)
    store = Store(tmp_path_factory.mktemp("study"))
    return Study(load_reviews(profile), load_encoder(str(tiny_bert)), profile, store)


@pytest.fixture(scope="module")
def results(study):
    return study.results()


def test_corpus_keeps_what_is_scored_apart(study):
    parts = study.corpus.groupby("part")["id"].agg(set)
    assert len(parts["train"]) + len(parts["validation"]) == 40
    assert len(parts["test"]) == 30
    assert not parts["test"] & (parts["train"] | parts["validation"])
    assert len(parts["challenge"]) == 336
    assert len(parts["contrastive"]) == 144


def test_corpus_of_other_classes_has_no_handcrafted_texts(study):
    reviews = load_reviews(study.profile)
    reviews.attrs["classes"] = ["spam", "ham"]
    assert set(build_corpus(reviews, study.profile)["part"]) == {"train", "validation", "test"}


def test_study_in_another_language_has_no_handcrafted_texts(study, tmp_path):
    profile = load_profile("quick", model=study.profile.model, language="de", **SMALL)
    german = Study(load_reviews(profile), study.encoder, profile, Store(tmp_path))
    assert set(german.corpus["part"]) == {"train", "validation", "test"}
    assert {run.dose for run in german.runs} == {0}


def test_every_run_answers(study, results):
    assert len(results) == len(study.runs)
    for result in results:
        assert set(result.logits) == set(result.run.scored)
        for part, logits in result.logits.items():
            assert logits.shape == (len(study.rows(part)), 2)
        assert len(result.history.train_loss) == 1
    assert study.hits(results, "with", "test").shape == (2, 30)
    assert study.consistent(results, "without").shape == (2, 168)


def test_equal_runs_are_one(study):
    profile = study.profile.model_copy(update={"trained_layers": 1.0})
    keys = {}
    for run in plan_runs(profile, study.encoder.layers, handcrafted=True):
        if run.recipe.seed == 0:
            keys[run.name] = study._key(run)
    assert keys["without"] == keys["dose_0"]
    assert keys["with"] == keys["dose_8"]
    assert keys["with"] != keys["dose_32"]


def test_results_come_from_the_cache(study, results, monkeypatch):
    monkeypatch.setattr(Study, "_train", lambda *_: 1 / 0)
    again = study.results()
    for first, second in zip(results, again, strict=True):
        for part, logits in first.logits.items():
            assert np.array_equal(logits, second.logits[part])


@pytest.mark.parametrize("name", ["without", "with"])
def test_checkpoint_loads_anywhere_with_the_same_logits(study, results, name, tmp_path):
    result = next(r for r in results if r.run.name == name)
    folder = shutil.copytree(result.folder, tmp_path / name)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    AutoTokenizer.from_pretrained(folder)
    ids, mask = make_batch(study.tokens, study.rows("test"))
    logits = model(ids, attention_mask=mask.long()).logits.detach().numpy()
    assert np.abs(logits - result.logits["test"]).max() < 1e-5
    assert model.config.id2label == {0: "negative", 1: "positive"}
    card = (folder / "README.md").read_text()
    assert f"{result.run.dose} handcrafted samples" in " ".join(card.split())


def test_tuned_vectors_are_those_of_the_checkpoint(study, results):
    result = pick_tuned(results)
    assert (result.run.name, result.run.recipe.seed) == ("with", 0)
    tuned = study.tuned_vectors(result)
    assert {layer for layer, _ in tuned.kinds} == {1, 2}  # 1.5 of 2 layers were trained
    plain = load_encoder(str(result.folder))
    for layer, pooling in [(2, "cls"), (2, "mean"), (1, "max"), (0, "mean")]:
        expected = embed_texts(
            study.corpus["text"].tolist(), plain, layer, pooling, study.profile.max_length,
            truncation=study.profile.truncation,
        )  # fmt: skip
        assert np.abs(tuned.matrix(layer, pooling) - expected).max() < 1e-5
    assert not np.allclose(tuned.matrix(), study.vectors.matrix(), atol=1e-3)


def test_last_cls_vectors_alone_are_the_same(study, results):
    kept = kept_models(results)
    assert kept.keys() == {"without", "with"}
    alone = study.tuned_cls(kept["with"])
    assert alone.kinds == ((2, "cls"),)
    assert np.abs(alone.matrix() - study.tuned_vectors(kept["with"]).matrix()).max() < 1e-5


def test_trained_state_is_forgotten(study, results):
    assert not list((study.store.root / "training").glob("*"))


def test_depth_comparison_trains_on_both_classes_alike(study):
    run = next(run for run in study.runs if run.name == "head")
    assert np.bincount(study.labels[study.train_rows(run)]).tolist() == [8, 8]
    assert np.bincount(study.labels[study.rows("depth")]).tolist() == [4, 4]
    assert set(study.rows("depth")) < set(study.rows("test"))


def test_another_architecture_runs_without_a_trunk(tiny_distilbert, tmp_path):
    folder = tiny_distilbert
    profile = load_profile(
        "quick", model=str(folder), **SMALL | {"headline_seeds": 1, "seeds": 1, "doses": [0]}
    )
    study = Study(load_reviews(profile), load_encoder(str(folder)), profile, Store(tmp_path / "c"))
    names = [result.run.name for result in study.results()]
    assert names == ["without", "with", "head_only", "dose_0", "head", "top", "all"]
    history = json.loads((study.results()[0].folder / "history.json").read_text())
    assert history["train_loss"][0] > 0


def test_two_processes_share_the_study(tiny_bert, tmp_path):
    small = SMALL | {"headline_seeds": 1, "seeds": 1, "doses": "'[0, 8]'", "model": tiny_bert}
    small |= {"deep_sets": "[bbc_news]", "deep_draws": 1, "deep_epochs": 2}
    command = [
        sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2",
        "-m", "sentigeo", "train", "--profile", "quick",
        "--set", " ".join(f"{key}={value}" for key, value in small.items()),
    ]  # fmt: skip
    changes = {"SENTIGEO_CACHE": str(tmp_path), "ACCELERATE_USE_CPU": "true"}
    run = subprocess.run(
        command, env=os.environ | changes, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr[-3000:]
    assert run.stdout.count("13 runs are in the cache") == 2
    assert len(list((tmp_path / "deep").iterdir())) == 5
    folders = list((tmp_path / "finetune").iterdir())
    assert len(folders) == 8
    assert all((folder / "entry.json").is_file() for folder in folders)
    kept = [folder for folder in folders if (folder / "README.md").is_file()]
    assert len(kept) == 2
    for folder in kept:
        AutoModelForSequenceClassification.from_pretrained(folder)


def test_impossible_dose_is_said_before_anything_is_trained(tiny_bert, tmp_path):
    profile = load_profile("quick", model=str(tiny_bert), **SMALL | {"doses": [0, 500]})
    with pytest.raises(UserError, match="A dose of 500 contrastive samples is not possible"):
        Study(load_reviews(profile), load_encoder(str(tiny_bert)), profile, Store(tmp_path))
