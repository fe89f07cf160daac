import signal
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
import torch
from helpers import run_script
from toy_training import CLASSIFIER_RECIPE as RECIPE
from toy_training import make_body, review_texts, train_toy_classifier, training_set
from transformers import AutoModelForSequenceClassification, DistilBertConfig

from sentigeo.cache import Store
from sentigeo.encoder.encoder import load_encoder
from sentigeo.encoder.extract import extract
from sentigeo.encoder.tokens import encode_texts
from sentigeo.errors import UserError
from sentigeo.training.finetune import (
    ClassifierTask,
    TopClassifier,
    WholeClassifier,
    load_classifier,
    predict,
    train_classifier,
)
from sentigeo.training.loop import load_state

CLASSES = ["bad", "fair", "good"]


@pytest.fixture
def toy(tiny_bert, tmp_path):
    """A corpus of two clear classes, as tokens and as a trunk below the last layer."""
    encoder = load_encoder(str(tiny_bert))
    texts, labels = review_texts()
    tokens = encode_texts(texts, encoder.tokenizer, 16)
    return tokens, extract(tokens, encoder, Store(tmp_path / "cache"), [], [1])[1][1], labels


def test_training_learns_two_clear_classes(toy, tiny_bert, tmp_path):
    _, trunk, labels = toy
    body = make_body(tiny_bert, TopClassifier)
    history = train_classifier(body, training_set(trunk, labels), RECIPE, tmp_path / "s")
    assert history.train_loss[-1] < history.train_loss[0]
    assert history.val_accuracy[-1] == 1.0
    predicted = predict(body, trunk, np.arange(32, 48)).argmax(1)
    assert (predicted == labels[32:48]).all()


def test_cached_trunk_equals_uncached_frozen_training(toy, tiny_bert, tmp_path):
    tokens, trunk, labels = toy
    logits = []
    for kind, source in ((TopClassifier, trunk), (WholeClassifier, tokens)):
        body = make_body(tiny_bert, kind)
        for module in body.modules():
            if isinstance(module, torch.nn.Dropout):
                module.p = 0.0  # the two draw their dropout masks in different shapes
        train_classifier(body, training_set(source, labels), RECIPE, tmp_path / kind.__name__)
        logits.append(predict(body, source, np.arange(48)))
    assert np.abs(logits[0] - logits[1]).max() < 1e-5
    assert np.abs(logits[0]).max() > 0.1


def test_predictions_do_not_depend_on_order_or_batching(toy, tiny_bert):
    _, trunk, _ = toy
    body = make_body(tiny_bert, TopClassifier)
    rows = np.random.default_rng(0).permutation(48)
    together = predict(body, trunk, np.arange(48))
    assert np.allclose(together[rows], predict(body, trunk, rows), atol=1e-6)
    apart = np.concatenate([predict(body, trunk, rows[[n]]) for n in range(48)])
    assert np.allclose(together[rows], apart, atol=1e-6)


def test_doses_share_batches_and_order(toy):
    _, trunk, labels = toy
    plain = training_set(trunk, labels).batches(RECIPE, 1)
    dosed = training_set(trunk, labels, extra=[40, 41, 42]).batches(RECIPE, 1)
    assert len(plain) == len(dosed)
    for before, after in zip(plain, dosed, strict=True):
        assert after[: len(before)].tolist() == before.tolist()
    added = np.concatenate([a[len(b) :] for b, a in zip(plain, dosed, strict=True)])
    assert sorted(added) == [40, 41, 42]
    other_epoch = training_set(trunk, labels).batches(RECIPE, 2)
    assert [b.tolist() for b in plain] != [b.tolist() for b in other_epoch]


class KilledError(Exception):
    pass


def stop_after(body, state, epochs):
    """Let a body fail once a state has so many epochs behind it."""

    def stop(*_):
        if (found := load_state(state)) and found[1]["epochs"] == epochs:
            raise KilledError

    body.register_forward_pre_hook(stop)
    return body


@pytest.mark.parametrize("epochs", [1, RECIPE.epochs])
def test_stopped_training_resumes_to_the_same_weights(toy, tiny_bert, tmp_path, epochs):
    _, trunk, labels = toy
    data = training_set(trunk, labels, extra=[40])
    whole, state = make_body(tiny_bert, TopClassifier), tmp_path / "s"
    expected = train_classifier(whole, data, RECIPE, tmp_path / "whole")
    cut = stop_after(make_body(tiny_bert, TopClassifier), state, epochs)
    with suppress(KilledError):  # after the last epoch there is nothing to stop
        train_classifier(cut, data, RECIPE, state)
    assert load_state(state)[1]["epochs"] == epochs
    resumed = make_body(tiny_bert, TopClassifier, seed=99)
    assert train_classifier(resumed, data, RECIPE, state) == expected
    for name, weight in whole.state_dict().items():
        assert torch.equal(weight, resumed.state_dict()[name]), name


def test_a_damaged_state_is_not_taken_for_a_whole_one(toy, tiny_bert, tmp_path):
    _, trunk, labels = toy
    data, body = training_set(trunk, labels), make_body(tiny_bert, TopClassifier)
    expected = train_classifier(body, data, RECIPE, tmp_path / "a")
    (tmp_path / "b").write_bytes((tmp_path / "a").read_bytes()[:100])
    body = make_body(tiny_bert, TopClassifier)
    assert train_classifier(body, data, RECIPE, tmp_path / "b") == expected


def test_validation_is_that_of_the_averaged_weights_which_stay(toy, tiny_bert, tmp_path):
    _, trunk, labels = toy
    data, body = training_set(trunk, labels), make_body(tiny_bert, TopClassifier)
    history = train_classifier(body, data, RECIPE, tmp_path / "s")
    logits = torch.from_numpy(predict(body, trunk, data.validation))
    truth = torch.from_numpy(labels[data.validation])
    assert history.val_loss[-1] == float(torch.nn.functional.cross_entropy(logits, truth))


def test_moving_average_by_hand(toy, tiny_bert):
    _, trunk, labels = toy
    body = make_body(tiny_bert, TopClassifier, layers=0)
    task = ClassifierTask(body, training_set(trunk, labels), RECIPE)
    bias = body.classifier.bias
    expected = bias[0].item()
    for step, value in enumerate([4.0, 8.0, 2.0, 6.0, 1.0, 9.0, 3.0, 5.0, 7.0, 0.5], start=1):
        bias.data.fill_(value)
        task.after_step()
        decay = min(RECIPE.averaging, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * value
    task.swap()
    assert bias[0].item() == pytest.approx(expected)
    task.swap()
    assert bias[0].item() == 0.5


def test_sigkill_in_the_middle_then_the_same_weights(tiny_bert, tmp_path):
    whole = train_toy_classifier(tiny_bert, tmp_path / "whole")
    call = f"train_toy_classifier({str(tiny_bert)!r}, Path({str(tmp_path)!r}), kill=True)"
    assert run_script("toy_training", "train_toy_classifier", call).returncode == -signal.SIGKILL
    assert load_state(tmp_path / "s")[1]["epochs"] == 2
    cut = train_toy_classifier(tiny_bert, tmp_path)
    assert all(torch.equal(whole[name], cut[name]) for name in whole)


@pytest.mark.parametrize(
    ("progress", "rate"), [(0.0, 0.0), (0.05, 0.5), (0.1, 1.0), (0.55, 0.5), (1.0, 0.0)]
)
def test_rate_rises_and_falls(toy, tiny_bert, progress, rate):
    recipe = replace(RECIPE, epochs=1, learning_rate=1.0, warmup=0.1)
    task = ClassifierTask(make_body(tiny_bert, TopClassifier), training_set(*toy[1:]), recipe)
    assert task.rate(0, round(20 * progress), 20) == pytest.approx(rate)


def test_loss_that_is_no_number(toy, tiny_bert, tmp_path):
    _, trunk, labels = toy
    body = make_body(tiny_bert, TopClassifier)
    body.classifier.weight.data[0, 0] = float("nan")
    with pytest.raises(UserError, match="no longer a number in epoch 1"):
        train_classifier(body, training_set(trunk, labels), RECIPE, tmp_path / "s")


@pytest.fixture
def batch():
    torch.manual_seed(1)
    ids = torch.randint(1000, 2000, (4, 12))
    mask = torch.arange(12) < torch.tensor([12, 7, 3, 12])[:, None]
    return ids.masked_fill(~mask, 0), mask


@pytest.fixture
def model(tiny_bert):
    return load_classifier(str(tiny_bert), None, CLASSES, seed=3).eval()


@pytest.fixture
def roberta(tiny_roberta):
    return load_classifier(str(tiny_roberta), None, CLASSES, seed=3).eval()


def plain_logits(model, ids, mask):
    with torch.no_grad():
        return model(ids, attention_mask=mask.long()).logits


def hidden_states(model, ids, mask):
    with torch.no_grad():
        return model(ids, attention_mask=mask.long(), output_hidden_states=True).hidden_states


def test_head_is_drawn_with_the_seed_and_knows_its_classes(tiny_bert):
    first, again, other = (load_classifier(str(tiny_bert), None, CLASSES, s) for s in (3, 3, 4))
    assert torch.equal(first.classifier.weight, again.classifier.weight)
    assert not torch.equal(first.classifier.weight, other.classifier.weight)
    assert first.config.id2label == {0: "bad", 1: "fair", 2: "good"}
    assert first.classifier.out_features == 3


@pytest.mark.parametrize("layers", [0, 1, 2])
def test_top_on_a_trunk_equals_the_whole_model(model, batch, layers):
    states = hidden_states(model, *batch)
    with torch.no_grad():
        found = TopClassifier(model, layers).eval()(states[2 - layers], batch[1])
    assert torch.allclose(found, plain_logits(model, *batch), atol=1e-5)


def test_roberta_has_a_trunk_too(roberta, batch):
    states = hidden_states(roberta, *batch)
    with torch.no_grad():
        top = TopClassifier(roberta, 1).eval()(states[1], batch[1])
        whole = TopClassifier(roberta, 2).eval()(*batch)
    for found in (top, whole):
        assert torch.allclose(found, plain_logits(roberta, *batch), atol=1e-5)


def test_the_top_with_all_layers_equals_the_whole_model_also_in_its_gradients(model, batch):
    losses = {}
    for name, body in {
        "fast": TopClassifier(model, 2),
        "plain": WholeClassifier(model, 2),
    }.items():
        model.zero_grad()
        body.eval()(*batch).square().sum().backward()
        losses[name] = {
            n: w.grad.clone() for n, w in model.named_parameters() if w.grad is not None
        }
    assert losses["fast"].keys() >= losses["plain"].keys() - {
        "bert.encoder.layer.1.attention.self.key.bias"
    }
    for name, gradient in losses["fast"].items():
        assert torch.allclose(gradient, losses["plain"][name], atol=1e-4), name


def test_frozen_layers_stay_frozen_and_without_dropout(model, batch):
    body = WholeClassifier(model, 1).train()
    assert not model.bert.encoder.layer[0].training
    assert not model.bert.embeddings.training
    assert model.bert.encoder.layer[1].training
    body(*batch).sum().backward()
    trained = {name.split(".")[3] if "layer" in name else name.split(".")[0]
               for name, w in model.named_parameters() if w.grad is not None}  # fmt: skip
    assert trained == {"1", "bert", "classifier"}
    assert model.bert.embeddings.word_embeddings.weight.grad is None
    assert model.bert.pooler.dense.weight.grad is not None


def test_other_architectures_run_whole(batch):
    config = DistilBertConfig(
        vocab_size=2000, dim=32, n_layers=2, n_heads=4, hidden_dim=64, num_labels=3
    )
    distil = AutoModelForSequenceClassification.from_config(config)
    WholeClassifier(distil, 1)(*batch).sum().backward()
    assert distil.distilbert.transformer.layer[0].attention.q_lin.weight.grad is None
    assert distil.distilbert.transformer.layer[1].attention.q_lin.weight.grad is not None
