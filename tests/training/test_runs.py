import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers import store_corpus, store_toy_corpus
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from sentigeo.cache import Store
from sentigeo.encoder.encoder import load_encoder
from sentigeo.encoder.trunk import make_batch
from sentigeo.errors import CacheNotice, UserError
from sentigeo.profile import load_profile
from sentigeo.training.runs import (
    list_runs,
    plan_runs,
    rows_of,
    train_rows,
    train_run,
    train_runs,
)

SMALL = {
    "draw_per_label": 20, "test_reviews": 12, "max_length": 32, "epochs": 1, "dose_epochs": 1,
    "seeds": 1, "headline_seeds": 2, "depth_reviews": 16, "depth_test_reviews": 8, "batch_size": 8,
    "contrastive_samples": 8, "doses": [0, 8],
}  # fmt: skip


@pytest.fixture(scope="module")
def study(tiny_bert, tmp_path_factory):
    """A corpus, an encoder, a profile and a store."""
    profile = load_profile("quick", model=str(tiny_bert), **SMALL)
    encoder, store = load_encoder(str(tiny_bert)), Store(tmp_path_factory.mktemp("runs"))
    return store_toy_corpus(store, encoder), encoder, profile, store


@pytest.fixture(scope="module")
def results(study):
    return train_runs(*study)


def test_every_run_answers(study, results):
    corpus, encoder, profile, store = study
    assert [result.run for result in results] == list_runs(corpus, encoder, profile)
    for result in results:
        assert set(result.logits) == set(result.run.scored) == set(result.labels)
        for part, logits in result.logits.items():
            rows = rows_of(part, corpus, profile)
            assert logits.shape == (len(rows), 2)
            assert result.labels[part].tolist() == corpus.labels[rows].tolist()
        assert len(result.history.train_loss) == 1
    assert not list((store.root / "training").glob("*"))


def test_results_come_from_the_store_and_damaged_ones_are_trained_again(study, results):
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
        part = "test" if "test" in first.logits else "depth"
        assert np.array_equal(first.logits[part], second.logits[part])


@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_alone_has_one_thread_too(study, results, tmp_path, threads, monkeypatch):
    corpus, _, profile, _ = study
    seen, classify = [], AutoModelForSequenceClassification.from_pretrained

    def load(*arguments, **settings):
        seen.append(torch.get_num_threads())
        return classify(*arguments, **settings)

    monkeypatch.setattr(AutoModelForSequenceClassification, "from_pretrained", load)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    folder = train_run(results[0].run, corpus.folder, profile, tmp_path)
    assert torch.get_num_threads() == threads
    torch.set_num_threads(before)
    assert seen == [1]
    for part, logits in results[0].logits.items():  # of a process that trained several
        assert np.array_equal(np.load(folder / f"{part}.npy"), logits)


def test_equal_runs_are_one(study, tmp_path):
    corpus, encoder, profile, _ = study
    small = {"trained_layers": 1.0, "headline_seeds": 1}
    profile = profile.model_copy(update=small)
    folders = {r.run.name: r.folder for r in train_runs(corpus, encoder, profile, Store(tmp_path))}
    assert folders["without"] == folders["dose_0"]
    assert folders["with"] == folders["dose_8"]
    assert len(set(folders.values())) == len(folders) - 2


@pytest.mark.parametrize("name", ["without", "with"])
def test_checkpoint_loads_anywhere_with_the_same_logits(study, results, name, tmp_path):
    corpus = study[0]
    result = next(r for r in results if r.run.name == name)
    folder = shutil.copytree(result.folder, tmp_path / name)
    model = AutoModelForSequenceClassification.from_pretrained(folder).eval()
    AutoTokenizer.from_pretrained(folder)
    ids, mask = make_batch(corpus.tokens, corpus.rows("test"))
    logits = model(ids, attention_mask=mask.long()).logits.detach().numpy()
    assert np.abs(logits - result.logits["test"]).max() < 1e-5
    assert model.config.id2label == {0: "negative", 1: "positive"}
    card = (folder / "README.md").read_text()
    assert f"{result.run.dose} handcrafted samples" in " ".join(card.split())


def test_depth_comparison_trains_on_both_classes_alike(study):
    corpus, encoder, profile, _ = study
    run = next(run for run in list_runs(corpus, encoder, profile) if run.name == "head")
    assert np.bincount(corpus.labels[train_rows(run, corpus)]).tolist() == [8, 8]
    depth = rows_of("depth", corpus, profile)
    assert np.bincount(corpus.labels[depth]).tolist() == [4, 4]
    assert set(depth) < set(corpus.rows("test"))


def test_a_corpus_without_handcrafted_texts_has_one_dose(study, tmp_path):
    _, encoder, profile, _ = study
    parts = ["train"] * 4 + ["validation"] * 2 + ["test"] * 2
    corpus = store_corpus(Store(tmp_path), ["text"] * 8, [0, 1] * 4, parts)
    runs = list_runs(corpus, encoder, profile)
    assert {run.dose for run in runs} == {0}
    assert "with" not in {run.name for run in runs}


def test_another_architecture_runs_without_a_trunk(study, tiny_distilbert, tmp_path, monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")  # in this process
    changes = {"model": str(tiny_distilbert), "headline_seeds": 1, "doses": [0]}
    profile = study[2].model_copy(update=changes)
    encoder = load_encoder(str(tiny_distilbert))
    results = train_runs(replace(study[0]), encoder, profile, Store(tmp_path))
    names = [result.run.name for result in results]
    assert names == ["without", "with", "head_only", "dose_0", "head", "top", "all"]
    history = json.loads((results[0].folder / "history.json").read_text())
    assert history["train_loss"][0] > 0


def test_two_processes_share_the_study(tiny_bert, tmp_path):
    small = SMALL | {"headline_seeds": 1, "doses": "'[0, 8]'", "model": tiny_bert}
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


def test_impossible_dose_is_said_before_anything_is_trained(study):
    corpus, encoder, profile, _ = study
    profile = profile.model_copy(update={"doses": [0, 500]})
    with pytest.raises(UserError, match="A dose of 500 contrastive samples is not possible"):
        list_runs(corpus, encoder, profile)


def test_plan_of_the_published_report():
    profile = load_profile("laptop")
    runs = plan_runs(profile, layers=6, handcrafted=True)
    names = [run.name for run in runs]
    assert names.count("without") == names.count("with") == profile.headline_seeds
    for dose in (0, 8, 32, 128):
        own = [run for run in runs if run.name == f"dose_{dose}"]
        assert [run.recipe.seed for run in own] == list(range(profile.seeds))
        assert {run.dose for run in own} == {dose}
        assert len(own) >= 5
    depths = {run.name: run.layers for run in runs if run.reviews}
    assert depths == {"head": 0, "top": profile.trained_layers, "all": 6}
    assert {run.layers for run in runs if run.name in ("without", "with")} == {1.5}
    assert [run.name for run in runs if run.keep] == ["without", "with"]


def test_plan_of_the_paper_profile_trains_all_layers():
    runs = plan_runs(load_profile("paper"), layers=12, handcrafted=True)
    headline = [run for run in runs if run.name in ("without", "with")]
    assert {(run.layers, run.recipe.epochs) for run in headline} == {(12, 6)}


def test_plan_without_handcrafted_samples_has_one_dose():
    runs = plan_runs(load_profile("quick"), layers=6, handcrafted=False)
    assert {run.dose for run in runs} == {0}
    assert "with" not in {run.name for run in runs}


def test_plan_for_a_model_that_cannot_be_cut_has_whole_layers():
    runs = plan_runs(load_profile("quick"), layers=6, handcrafted=True, trunk=False)
    assert {(run.layers, run.recipe.token_share) for run in runs} == {(0, 1), (1, 1), (6, 1)}
