import json
import os
import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from sentigeo.cache import Store
from sentigeo.encoder.encoder import load_encoder
from sentigeo.encoder.extract import extract
from sentigeo.encoder.tokens import encode_texts
from sentigeo.errors import UserError
from sentigeo.training.classifier import TopClassifier, WholeClassifier, load_classifier
from sentigeo.training.loop import Recipe, TrainingSet, predict, train
from sentigeo.training.loop import _batches as make_batches
from sentigeo.training.loop import _set_rate as set_rate
from sentigeo.training.state import forget_state

GOOD, BAD = ["lovely", "warm", "clever", "brilliant"], ["awful", "cold", "stupid", "boring"]
RECIPE = Recipe(epochs=6, learning_rate=2e-2, batch_size=8, token_share=1.0, seed=0, averaging=0.5)


def toy_texts(count=48):
    rng = np.random.default_rng(0)
    labels = np.arange(count) % 2
    texts = [
        " ".join(["film", *rng.choice(GOOD if label else BAD, rng.integers(2, 9))])
        for label in labels
    ]
    return texts, labels.astype(np.int64)


@pytest.fixture
def toy(tiny_bert, tmp_path):
    """A corpus of two clear classes, as tokens and as a trunk below the last layer."""
    encoder = load_encoder(str(tiny_bert))
    texts, labels = toy_texts()
    tokens = encode_texts(texts, encoder.tokenizer, 16)
    return tokens, extract(tokens, encoder, Store(tmp_path / "cache"), [], [1])[1][1], labels


def make_body(tiny_bert, kind, layers=1, seed=0):
    return kind(load_classifier(str(tiny_bert), None, ["bad", "good"], seed), layers)


def training_set(source, labels, extra=()):
    return TrainingSet(source, labels, np.arange(32), np.array(extra, dtype=int))


def test_training_learns_two_clear_classes(toy, tiny_bert, tmp_path):
    _, trunk, labels = toy
    body = make_body(tiny_bert, TopClassifier)
    history, _ = train(body, training_set(trunk, labels), np.arange(32, 48), RECIPE, tmp_path / "s")
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
        train(
            body, training_set(source, labels), np.arange(32, 48), RECIPE, tmp_path / kind.__name__
        )
        logits.append(predict(body, source, np.arange(48)))
    assert np.abs(logits[0] - logits[1]).max() < 1e-5
    assert np.abs(logits[0]).max() > 0.1


def test_predictions_do_not_depend_on_order_or_batching(toy, tiny_bert, monkeypatch):
    _, trunk, _ = toy
    body = make_body(tiny_bert, TopClassifier)
    rows = np.random.default_rng(0).permutation(48)
    together = predict(body, trunk, np.arange(48))
    monkeypatch.setattr("sentigeo.training.loop.EVALUATION_TOKENS", 20)
    apart = predict(body, trunk, rows)
    assert np.allclose(together[rows], apart, atol=1e-6)


def test_doses_share_batches_and_order(toy):
    _, trunk, labels = toy
    plain = make_batches(training_set(trunk, labels), RECIPE, 1)
    dosed = make_batches(training_set(trunk, labels, extra=[40, 41, 42]), RECIPE, 1)
    assert len(plain) == len(dosed)
    for before, after in zip(plain, dosed, strict=True):
        assert after[: len(before)].tolist() == before.tolist()
    added = np.concatenate([a[len(b) :] for b, a in zip(plain, dosed, strict=True)])
    assert sorted(added) == [40, 41, 42]
    other_epoch = make_batches(training_set(trunk, labels), RECIPE, 2)
    assert [b.tolist() for b in plain] != [b.tolist() for b in other_epoch]


def weights_of(body):
    return {name: weight.clone() for name, weight in body.state_dict().items()}


class KilledError(Exception):
    pass


@pytest.mark.parametrize("after", [0, 1, RECIPE.epochs - 1])
def test_stopped_training_resumes_to_the_same_weights(toy, tiny_bert, tmp_path, after):
    _, trunk, labels = toy
    data, validation = training_set(trunk, labels, extra=[40]), np.arange(32, 48)
    whole = make_body(tiny_bert, TopClassifier)
    expected, logits = train(whole, data, validation, RECIPE, tmp_path / "whole")

    def stop(epoch, history):
        if epoch == after:
            raise KilledError

    with pytest.raises(KilledError):
        train(make_body(tiny_bert, TopClassifier), data, validation, RECIPE, tmp_path / "s", stop)
    resumed = make_body(tiny_bert, TopClassifier, seed=99)
    history, found = train(resumed, data, validation, RECIPE, tmp_path / "s")
    assert history == expected
    np.testing.assert_array_equal(found, logits)
    for name, weight in weights_of(whole).items():
        assert torch.equal(weight, weights_of(resumed)[name]), name


def test_half_written_state_is_not_taken_for_a_whole_one(toy, tiny_bert, tmp_path):
    _, trunk, labels = toy
    data, validation = training_set(trunk, labels), np.arange(32, 48)
    body = make_body(tiny_bert, TopClassifier)
    expected, logits = train(body, data, validation, RECIPE, tmp_path / "a")
    np.testing.assert_array_equal(logits, predict(body, trunk, validation))
    half = tmp_path / "b-2"
    half.mkdir()
    (half / "weights").write_bytes((tmp_path / "a-6" / "weights").read_bytes()[:100])
    body = make_body(tiny_bert, TopClassifier)
    history, _ = train(body, data, validation, RECIPE, tmp_path / "b")
    assert history == expected
    forget_state(tmp_path / "b")
    assert not list(tmp_path.glob("b*"))


SCRIPT = """
import json, os, sys, pathlib, numpy as np, torch
from accelerate import Accelerator
sys.path.insert(0, {tests!r})
from test_finetune import RECIPE, make_body, toy_texts, training_set
from sentigeo.training.classifier import WholeClassifier
from sentigeo.encoder.encoder import load_encoder
from sentigeo.training.loop import predict, train
from sentigeo.encoder.tokens import encode_texts
from safetensors.torch import save_file
model, folder = sys.argv[1], pathlib.Path(sys.argv[2])
texts, labels = toy_texts()
tokens = encode_texts(texts, load_encoder(model).tokenizer, 16)
body = make_body(model, WholeClassifier, layers=2)
for module in body.modules():
    if "still" in sys.argv and isinstance(module, torch.nn.Dropout):
        module.p = 0.0
def on_epoch(epoch, history):
    (folder / f"epoch-{{epoch}}").touch()
    if epoch == 1 and "kill" in sys.argv:
        import os, signal
        os.kill(os.getpid(), signal.SIGKILL)
train(body, training_set(tokens, labels), np.arange(32, 48), RECIPE, folder / "s", on_epoch)
rank = os.environ.get("RANK", "0")
save_file(body.model.state_dict(), folder / f"final-{{rank}}")
logits = predict(body, tokens, np.arange(3))
answer = {{"processes": Accelerator().num_processes, "logits": logits.round(4).tolist()}}
(folder / f"answer-{{rank}}").write_text(json.dumps(answer))
"""


def launch(tiny_bert, folder, *more, launcher=()):
    folder.mkdir(exist_ok=True)
    script = folder / "script.py"
    script.write_text(SCRIPT.format(tests=os.path.dirname(__file__)))
    command = [sys.executable, *launcher, str(script), str(tiny_bert), str(folder), *more]
    environment = os.environ | {"ACCELERATE_USE_CPU": "true"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_sigkill_in_the_middle_then_the_same_weights(tiny_bert, tmp_path):
    assert launch(tiny_bert, tmp_path / "whole").returncode == 0
    assert launch(tiny_bert, tmp_path / "cut", "kill").returncode == -signal.SIGKILL
    assert not (tmp_path / "cut/final-0").exists()
    run = launch(tiny_bert, tmp_path / "cut")
    assert run.returncode == 0, run.stderr
    whole, cut = load_file(tmp_path / "whole/final-0"), load_file(tmp_path / "cut/final-0")
    assert all(torch.equal(whole[name], cut[name]) for name in whole)


TWO_PROCESSES = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]


def test_two_processes_train_one_model(tiny_bert, tmp_path):
    one = launch(tiny_bert, tmp_path / "one", "still")
    two = launch(tiny_bert, tmp_path / "two", "still", launcher=TWO_PROCESSES)
    assert two.returncode == one.returncode == 0, two.stderr[-3000:]
    answers = [json.loads((tmp_path / f"two/answer-{rank}").read_text()) for rank in (0, 1)]
    assert answers[0] == answers[1]
    assert answers[0]["processes"] == 2
    alone, first, second = (
        load_file(tmp_path / name) for name in ("one/final-0", "two/final-0", "two/final-1")
    )
    for name, weight in alone.items():
        assert torch.equal(first[name], second[name]), name
        assert torch.allclose(first[name], weight, atol=1e-3), name


@pytest.mark.parametrize(
    ("progress", "rate"), [(0.0, 0.0), (0.05, 0.5), (0.1, 1.0), (0.55, 0.5), (1.0, 0.0)]
)
def test_rate_rises_and_falls(progress, rate):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=9.0)
    set_rate(optimizer, replace(RECIPE, learning_rate=1.0, warmup=0.1), progress)
    assert optimizer.param_groups[0]["lr"] == pytest.approx(rate)


def test_loss_that_is_no_number(toy, tiny_bert, tmp_path):
    _, trunk, labels = toy
    body = make_body(tiny_bert, TopClassifier)
    body.classifier.weight.data[0, 0] = float("nan")
    with pytest.raises(UserError, match="no longer a number in epoch 1"):
        train(body, training_set(trunk, labels), np.arange(32, 48), RECIPE, tmp_path / "s")
