"""Processes that train together or side by side, started once for all that they have to show."""

import numpy as np
import pytest
import torch
from helpers import run_script, store_toy_corpus, write_rows
from safetensors.torch import load_file
from toy_training import group_texts, train_toy_classifier, train_toy_clusters
from transformers import AutoModelForSequenceClassification

from sentigeo.cache import Store
from sentigeo.data.tables import read_packaged
from sentigeo.data.text_sets import TextSet
from sentigeo.encoder.encoder import load_encoder
from sentigeo.profile import load_profile
from sentigeo.training.deep_study import prepare_draws, train_draws
from sentigeo.training.runs import train_runs


@pytest.fixture(scope="module")
def together(tiny_bert, tmp_path_factory):
    folder = tmp_path_factory.mktemp("together")
    reviews = read_packaged("imdb").groupby("label").head(60)
    write_rows(folder / "reviews.json", reviews.to_dict("records"))
    call = f"sys.exit(train_together({str(tiny_bert)!r}, {str(folder)!r}))"
    run = run_script("toy_training", "train_together", call, processes=2)
    assert run.returncode == 0, run.stderr[-3000:]
    return folder, run.stdout


@pytest.mark.parametrize(("name", "tolerance"), [("classifier", 1e-3), ("clusters", 2e-3)])
def test_two_processes_train_one_model(together, tiny_bert, tmp_path, name, tolerance):
    if name == "classifier":
        alone = train_toy_classifier(tiny_bert, tmp_path, dropout=False)
    else:
        alone = train_toy_clusters(tiny_bert, tmp_path)
    first, second = (load_file(together[0] / f"{name}-{rank}") for rank in (0, 1))
    for part, weight in alone.items():
        assert torch.equal(first[part], second[part]), part
        assert torch.allclose(first[part], weight, atol=tolerance), part


def test_two_processes_share_the_study(together):
    folder, said = together
    assert said.count("11 runs are in the cache") == 2
    assert len(list((folder / "cache" / "deep").iterdir())) == 5
    folders = list((folder / "cache" / "finetune").iterdir())
    assert len(folders) == 6
    assert all((folder / "entry.json").is_file() for folder in folders)
    kept = [folder for folder in folders if (folder / "README.md").is_file()]
    assert len(kept) == 2
    for folder in kept:
        AutoModelForSequenceClassification.from_pretrained(folder)


def train_side_by_side(model, store):
    """Train both studies, one draw and a run of each kind, and return their results."""
    small = {"epochs": 1, "head_epochs": 1, "headline_seeds": 1, "seeds": 1}
    small |= {"contrastive_samples": 4, "doses": [8]}
    small |= {"deep_epochs": 2, "deep_batch_size": 8, "deep_tokens": 16}
    profile = load_profile("quick", model=str(model), **small)
    encoder = load_encoder(str(model))
    runs = train_runs(store_toy_corpus(store, encoder), encoder, profile, store)
    texts, labels = group_texts(24)
    toy = TextSet("toy", "Toy", texts, labels, ["animals", "cars"])
    return runs, train_draws(prepare_draws({"toy": [toy, toy]}, encoder, profile), encoder, store)


def test_processes_side_by_side_find_what_one_finds(tiny_bert, tmp_path, monkeypatch):
    monkeypatch.setattr("sentigeo.cores.count_processes", lambda: 2)
    runs, draws = train_side_by_side(tiny_bert, Store(tmp_path / "two"))
    monkeypatch.setattr("sentigeo.cores.count_processes", lambda: 1)
    same_runs, same_draws = train_side_by_side(tiny_bert, Store(tmp_path / "one"))
    for run, same in zip(runs, same_runs, strict=True):
        assert (run.run, run.history) == (same.run, same.history)
        for part, logits in run.logits.items():
            assert np.array_equal(logits, same.logits[part])
    for draw, same in zip(draws, same_draws, strict=True):
        assert (draw.head_losses, draw.hidden_tokens) == (same.head_losses, same.hidden_tokens)
        for run, other in zip(draw.runs, same.runs, strict=True):
            assert str(vars(run.course)) == str(vars(other.course))
            assert np.array_equal(run.vectors, other.vectors)
