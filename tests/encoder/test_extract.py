import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch

from sentigeo import extract as extract_module
from sentigeo.cache import Store
from sentigeo.encoder.bert_layers import feed_forward
from sentigeo.encoder.encoder import load_encoder
from sentigeo.encoder.extract import extract
from sentigeo.encoder.tokens import encode_texts
from sentigeo.encoder.vectors import POOLINGS
from sentigeo.errors import CacheNotice, UserError

TEXTS = [
    "a fine film",
    "dull",
    "long and winding but in the end worth every one of its minutes",
    "",
]


@pytest.fixture(scope="module")
def packaged():
    return load_encoder("packaged")


@pytest.fixture(scope="module")
def tiny(tiny_bert):
    return load_encoder(str(tiny_bert))


@pytest.fixture
def encoder(request, packaged, tiny):
    return packaged if request.param == "packaged" else tiny


def plain_states(encoder, ids):
    """The model's own hidden states of one text, (w, d) a layer."""
    with torch.no_grad():
        found = encoder.model(
            torch.from_numpy(ids.astype(np.int64))[None], output_hidden_states=True
        )
    return [states[0].numpy() for states in found.hidden_states]


@pytest.mark.parametrize("encoder", ["packaged", "tiny"], indirect=True)
def test_one_pass_gives_every_layer_and_every_pooling(encoder, tmp_path):
    last = encoder.layers
    tokens = encode_texts(TEXTS, encoder.tokenizer, 12)
    kinds = [(layer, pooling) for layer in range(last + 1) for pooling in POOLINGS]
    vectors, trunks = extract(tokens, encoder, Store(tmp_path), kinds, [0, last - 1])
    for row in range(len(TEXTS)):
        states = plain_states(encoder, tokens[row])
        for layer in range(last + 1):
            own = states[layer]
            pooled = {"cls": own[0], "mean": own.mean(axis=0), "max": own.max(axis=0)}
            for pooling, expected in pooled.items():
                found = vectors.matrix(layer, pooling)[row]
                assert np.allclose(found, expected, atol=1e-5), (layer, pooling)
        for layer in (0, last - 1):
            assert np.allclose(trunks[layer][row], states[layer], atol=1e-5)
    assert vectors.matrix().dtype == np.float32


@pytest.mark.parametrize("encoder", ["packaged", "tiny"], indirect=True)
def test_trunk_in_the_middle_of_a_layer(encoder, tmp_path):
    tokens = encode_texts(TEXTS, encoder.tokenizer, 12)
    _, trunks = extract(tokens, encoder, Store(tmp_path), [], [0.5, 1])
    for row in range(len(TEXTS)):
        with torch.no_grad():
            middle = torch.from_numpy(np.array(trunks[0.5][row]))
            end = feed_forward(encoder.model.encoder.layer[0], middle)
        assert np.allclose(end.numpy(), trunks[1][row], atol=1e-5)


@pytest.mark.parametrize("layer", [0.5, 1])
def test_a_pass_may_start_from_a_trunk(tiny, tmp_path, layer):
    tokens = encode_texts(TEXTS, tiny.tokenizer, 12)
    kinds = [(2, "cls"), (2, "mean")]
    whole, trunks = extract(tokens, tiny, Store(tmp_path), kinds, [layer])
    upper, _ = extract(trunks[layer], tiny, Store(tmp_path), kinds)
    for kind in kinds:
        assert np.allclose(upper.matrix(*kind), whole.matrix(*kind), atol=1e-5)


def test_states_inside_the_top_layer_are_kept_beside_its_cls(tiny, tmp_path):
    tokens = encode_texts(TEXTS, tiny.tokenizer, 12)
    vectors, trunks = extract(tokens, tiny, Store(tmp_path), [(2, "cls")], [1.5])
    with torch.no_grad():
        middle = torch.from_numpy(np.array(trunks[1.5][0]))
        end = feed_forward(tiny.model.encoder.layer[1], middle)
    assert np.allclose(end[0].numpy(), vectors.matrix()[0], atol=1e-5)


def test_only_what_is_asked_for_is_computed(tiny, tmp_path, monkeypatch):
    steps = []
    for name in ("attend", "feed_forward", "attend_from_cls"):
        own = getattr(extract_module.layers_module, name)
        monkeypatch.setattr(
            extract_module.layers_module, name,
            lambda *a, own=own, name=name: (steps.append(name), own(*a))[1],
        )  # fmt: skip
    tokens = encode_texts(TEXTS, tiny.tokenizer, 12)
    extract(tokens, tiny, Store(tmp_path), [(0, "mean")])
    assert steps == []
    extract(tokens, tiny, Store(tmp_path), [(2, "cls")])
    assert steps[:3] == ["attend", "feed_forward", "attend_from_cls"]
    assert steps.count("attend") == 1


def test_a_pass_is_made_once_and_goes_on_after_an_interruption(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(extract_module, "BATCH_TOKENS", 20)
    monkeypatch.setattr(extract_module, "SHARD_TOKENS", 20)
    tokens = encode_texts(TEXTS * 5, tiny.tokenizer, 12)
    expected = extract(tokens, tiny, Store(tmp_path / "whole"), [(2, "cls")])[0]
    assert len(expected.shards) > 3
    own, done = extract_module._store_shard, []

    def killed(*arguments):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(own(*arguments))

    monkeypatch.setattr(extract_module, "_store_shard", killed)
    with pytest.raises(KeyboardInterrupt):
        extract(tokens, tiny, Store(tmp_path / "cut"), [(2, "cls")])
    monkeypatch.setattr(extract_module, "_store_shard", lambda *a: done.append(own(*a)))
    resumed = extract(tokens, tiny, Store(tmp_path / "cut"), [(2, "cls")])[0]
    assert len(done) == len(expected.shards)  # nothing was computed twice
    assert np.array_equal(resumed.matrix(), expected.matrix())
    monkeypatch.setattr(extract_module, "hidden_states", lambda *_: 1 / 0)
    again = extract(tokens, tiny, Store(tmp_path / "cut"), [(2, "cls")])[0]
    assert np.array_equal(again.matrix(), expected.matrix())


def test_damaged_shard_is_computed_again(tiny, tmp_path):
    tokens = encode_texts(TEXTS, tiny.tokenizer, 12)
    first = extract(tokens, tiny, Store(tmp_path), [(2, "cls")])[0]
    expected = first.matrix()
    file = first.shards[0] / "vectors.npy"
    file.write_bytes(file.read_bytes()[:-4] + b"oops")
    with pytest.warns(CacheNotice, match="cached vectors"):
        again = extract(tokens, tiny, Store(tmp_path), [(2, "cls")])[0]
    assert np.array_equal(again.matrix(), expected)


SCRIPT = """
import os, signal, sys, time
from pathlib import Path
from sentigeo import extract as module
from sentigeo.encoder.extract import embed_texts
from sentigeo.encoder.encoder import load_encoder
from sentigeo.cache import Store
import numpy as np
model, folder = sys.argv[1], Path(sys.argv[2])
module.BATCH_TOKENS = module.SHARD_TOKENS = 40
own, done = module._store_shard, []
def store_shard(*arguments):
    own(*arguments)
    done.append(1)
    if "kill" in sys.argv and len(done) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
module._store_shard = store_shard
if os.environ.get("RANK") == "1":  # it looks for shards when the other has stored some
    is_stored = module._is_stored
    module._is_stored = lambda *a: (time.sleep(0.2), is_stored(*a))[1]
texts = [f"film {i} " + "good " * (i % 7) for i in range(60)]
found = embed_texts(texts, load_encoder(model), pooling="mean", store=Store(folder / "store"))
rank = os.environ.get("RANK", "0")
np.save(folder / f"found-{rank}.npy", found)
(folder / f"shards-{rank}").write_text(str(len(done)))
"""


def launch(tiny_bert, folder, *more, launcher=()):
    folder.mkdir(exist_ok=True)
    script = folder / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, *launcher, str(script), str(tiny_bert), str(folder), *more]
    environment = os.environ | {"ACCELERATE_USE_CPU": "true"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_sigkill_then_the_same_matrix(tiny_bert, tmp_path):
    assert launch(tiny_bert, tmp_path / "whole").returncode == 0
    assert launch(tiny_bert, tmp_path / "cut", "kill").returncode == -signal.SIGKILL
    run = launch(tiny_bert, tmp_path / "cut")
    assert run.returncode == 0, run.stderr
    whole, cut = (np.load(tmp_path / name / "found-0.npy") for name in ("whole", "cut"))
    assert np.array_equal(whole, cut)


def test_two_processes_share_the_shards_and_get_the_same_matrix(tiny_bert, tmp_path):
    one = launch(tiny_bert, tmp_path / "one")
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    two = launch(tiny_bert, tmp_path / "two", launcher=torchrun)
    assert one.returncode == two.returncode == 0, two.stderr[-3000:]
    counts = [int((tmp_path / f"two/shards-{rank}").read_text()) for rank in (0, 1)]
    total = int((tmp_path / "one/shards-0").read_text())
    assert sorted(counts) == [total // 2, total - total // 2]
    alone = np.load(tmp_path / "one/found-0.npy")
    for rank in (0, 1):
        assert np.array_equal(np.load(tmp_path / f"two/found-{rank}.npy"), alone)


def test_other_architectures_have_vectors_but_no_trunk(tiny_distilbert, tmp_path):
    distil = load_encoder(str(tiny_distilbert))
    tokens = encode_texts(TEXTS, distil.tokenizer, 12)
    vectors, _ = extract(tokens, distil, Store(tmp_path), [(1, "mean"), (2, "cls")])
    for row in range(len(TEXTS)):
        states = plain_states(distil, tokens[row])
        assert np.allclose(vectors.matrix(1, "mean")[row], states[1].mean(axis=0), atol=1e-5)
        assert np.allclose(vectors.matrix(2, "cls")[row], states[2][0], atol=1e-5)
    with pytest.raises(UserError, match="distilbert model has no cached trunk"):
        extract(tokens, distil, Store(tmp_path), [], [1])


def test_vectors_that_are_no_numbers(tiny_bert, tmp_path):
    broken = load_encoder(str(tiny_bert))
    with torch.no_grad():
        broken.model.embeddings.word_embeddings.weight[:] = float("nan")
    tokens = encode_texts(TEXTS, broken.tokenizer, 12)
    with pytest.raises(UserError, match="vector of text 1 holds values that are not numbers"):
        extract(tokens, broken, Store(tmp_path), [(2, "cls")])
