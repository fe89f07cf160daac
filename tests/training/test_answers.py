import numpy as np
import pytest
import torch
from helpers import store_toy_corpus
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification

from sentigeo.cache import Store
from sentigeo.encoder.encoder import load_encoder
from sentigeo.encoder.extract import embed_texts
from sentigeo.profile import load_profile
from sentigeo.training.answers import (
    kept_models,
    list_checkpoints,
    list_curves,
    list_plan,
    logits_by_arm,
    pick_tuned,
    read_stages,
    score_tiers,
)
from sentigeo.training.runs import train_runs

SMALL = {
    "max_length": 32, "epochs": 4, "learning_rate": 1e-2, "head_epochs": 1, "seeds": 2,
    "headline_seeds": 3, "contrastive_samples": 4, "doses": [8],
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


def test_logits_stand_where_their_texts_do(study):
    corpus, _, _, results = study
    logits = logits_by_arm(results, corpus)
    assert [*logits] == [
        "without", "with", "with_8", "positive_control", "head_only", "head_only_with"
    ]  # fmt: skip
    assert logits["with"].shape == (3, len(corpus.texts), 2)
    assert logits["head_only"].shape == (2, len(corpus.texts), 2)
    own = [result for result in results if result.run.arm == "with"]
    for part in ("test", "natural"):
        expected = np.stack([result.logits[part] for result in own])
        assert np.array_equal(logits["with"][:, corpus.rows(part)], expected)
    never = np.isnan(logits["with"]).all(axis=(0, 2))
    parts = corpus.texts["part"]
    assert never.tolist() == parts.isin(["train", "contrastive", "natural_train"]).tolist()


def test_tiers_are_scored_by_model(study):
    corpus = study[0]
    right = np.where(corpus.labels == 1, 1.0, -1.0)
    margins = {"oracle": right[None], "two": np.stack([right, -right])}
    found = score_tiers(margins, corpus)
    tiers = {"natural": 3, "hard": 4}  # those that the corpus has
    assert [*found] == [(tier, model) for tier in tiers for model in margins]
    spread = right[corpus.rows("test")].std()
    for tier, pairs in tiers.items():
        scores = found[tier, "two"]
        assert scores["consistency"].tolist() == [[1] * pairs, [0] * pairs]
        assert scores["reversed"].tolist() == [[False] * pairs, [True] * pairs]
        assert np.allclose(scores["logit_difference"], [[2 / spread], [-2 / spread]])
        assert found[tier, "oracle"]["rank_accuracy"].tolist() == [[1] * pairs]


def test_checkpoints_are_named_by_arm_and_seed(study):
    results = study[3]
    places = list_checkpoints(results)
    assert [*places] == ["without", "with", "without_1", "with_1"]
    own = {(r.run.arm, r.run.recipe.seed): r.folder for r in results}
    assert places["with"] == own["with", 0]
    assert places["without_1"] == own["without", 1]
    assert all((place / "README.md").is_file() for place in places.values())


def test_plan_and_curves_have_a_row_for_what_was_trained(study):
    corpus, _, _, results = study
    profile = load_profile("quick", **SMALL)
    plan = list_plan([r.run for r in results], corpus, profile).set_index("arm")
    assert plan["seeds"].to_dict() == {
        "no samples": 3, "4 samples": 3, "8 samples": 3, "positive control": 3,
        "classification head only": 2, "classification head only, 4 samples": 2,
    }  # fmt: skip
    assert plan.loc["8 samples", ["added texts", "repeats per epoch"]].tolist() == [8, 1]
    assert plan.loc["no samples", ["added texts", "repeats per epoch"]].tolist() == [0, 0]
    assert plan.loc["positive control", ["added texts", "repeats per epoch"]].tolist() == [4, 5]
    curves = list_curves(results, ["with", "without"])
    assert set(curves.groupby(["condition", "seed"])["epoch"].apply(tuple)) == {(1, 2, 3, 4)}


def test_fine_tuned_vectors_are_those_of_the_checkpoint(study):
    corpus, encoder, store, results = study
    tuned, found = pick_tuned(results), read_stages(results, corpus, encoder, store)
    assert (tuned.run.arm, tuned.run.recipe.seed) == ("with", 0)
    assert {layer for layer, _ in found.fine_tuned.kinds} == {2}  # the other was not trained
    plain, texts = load_encoder(str(tuned.folder)), corpus.texts["text"].tolist()
    for layer, pooling in [(2, "cls"), (2, "mean"), (1, "max"), (0, "mean")]:
        expected = embed_texts(texts, plain, layer, pooling, 32, truncation="first+last")
        assert np.abs(found.fine_tuned.matrix(layer, pooling) - expected).max() < 1e-5
    assert not np.allclose(found.fine_tuned.matrix(), found.pretrained.matrix(), atol=1e-3, rtol=0)
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


def test_a_classifier_may_have_the_lowest_layers_only(tiny_bert, tmp_path, monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    taller, store = tmp_path / "taller", Store(tmp_path / "cache")
    config = AutoConfig.from_pretrained(tiny_bert, num_hidden_layers=4)
    AutoModel.from_config(config).save_pretrained(taller)
    encoder = load_encoder(str(tiny_bert))
    encoder.tokenizer.save_pretrained(taller)
    few = SMALL | {"epochs": 1, "seeds": 1, "headline_seeds": 1, "kept_layers": 2}
    encoder, profile = load_encoder(str(taller)), load_profile("quick", model=str(taller), **few)
    corpus = store_toy_corpus(store, encoder)
    results = train_runs(corpus, encoder, profile, store)
    assert {result.run.layers for result in results} == {2}
    found, tuned = read_stages(results, corpus, encoder, store), pick_tuned(results)
    assert (found.pretrained.layers, found.fine_tuned.layers) == (4, 2)
    assert {layer for layer, _ in found.fine_tuned.kinds} == {2}  # one layer was trained
    assert found.fine_tuned.readable == [kind for kind in found.pretrained.kinds if kind[0] <= 2]
    assert found.without.kinds == ((2, "cls"),)
    model = AutoModelForSequenceClassification.from_pretrained(tuned.folder).eval()
    rows = corpus.rows("test")
    asked = [torch.from_numpy(corpus.tokens[row].astype(np.int64))[None] for row in rows]
    with torch.no_grad():
        logits = np.concatenate([model(ids).logits.numpy() for ids in asked])
    assert np.abs(logits - tuned.logits["test"]).max() < 1e-5
