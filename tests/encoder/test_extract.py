"""One pass over texts: what it computes, keeps and goes on from."""

import os
import signal
import time

import numpy as np
import pytest
import torch
from helpers import run_script

from sentigeo.cache import Store
from sentigeo.encoder import bert_layers
from sentigeo.encoder import extract as extract_module
from sentigeo.encoder.encoder import load_encoder
from sentigeo.encoder.extract import embed_texts, extract
from sentigeo.encoder.tokens import encode_texts
from sentigeo.encoder.vectors import POOLINGS
from sentigeo.errors import CacheNotice, UserError

TEXTS = [
    "a fine film",
    "dull",
    "long and winding but in the end worth every one of its minutes",
    "",
]
MANY_TEXTS = [f"film {i} " + "good " * (i % 7) for i in range(24)]


def plain_states(encoder, ids):
    """The model's own hidden states of one text, (w, d) a layer."""
    with torch.no_grad():
        found = encoder.model(
            torch.from_numpy(ids.astype(np.int64))[None], output_hidden_states=True
        )
    return [states[0].numpy() for states in found.hidden_states]


@pytest.mark.parametrize("name", ["packaged", "tiny"])
def test_one_pass_gives_every_layer_and_every_pooling(name, request, tmp_path):
    encoder = request.getfixturevalue(name)
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


@pytest.mark.parametrize("layer", [0, 1])
def test_a_pass_may_start_from_a_trunk(tiny, tmp_path, layer):
    tokens = encode_texts(TEXTS, tiny.tokenizer, 12)
    kinds = [(2, "cls"), (2, "mean")]
    whole, trunks = extract(tokens, tiny, Store(tmp_path), kinds, [layer])
    upper, _ = extract(trunks[layer], tiny, Store(tmp_path), kinds)
    for kind in kinds:
        assert np.allclose(upper.matrix(*kind), whole.matrix(*kind), atol=1e-5)


def test_all_tokens_of_the_top_layer_are_kept_beside_its_cls(tiny, tmp_path):
    tokens = encode_texts(TEXTS, tiny.tokenizer, 12)
    vectors, trunks = extract(tokens, tiny, Store(tmp_path), [(2, "cls")], [2])
    for row in range(len(TEXTS)):
        assert trunks[2][row].shape == (tokens.lengths[row], tiny.width)
        assert np.allclose(trunks[2][row][0], vectors.matrix()[row], atol=1e-5)


def test_only_what_is_asked_for_is_computed(tiny, tmp_path, monkeypatch):
    steps = []
    for name in ("attend", "feed_forward", "attend_from_cls"):
        own = getattr(bert_layers, name)
        monkeypatch.setattr(
            bert_layers, name,
            lambda *a, own=own, name=name: (steps.append(name), own(*a))[1],
        )  # fmt: skip
    tokens = encode_texts(TEXTS, tiny.tokenizer, 12)
    extract(tokens, tiny, Store(tmp_path), [(0, "mean")])
    assert steps == []
    extract(tokens, tiny, Store(tmp_path), [(2, "cls")])
    assert steps[:3] == ["attend", "feed_forward", "attend_from_cls"]
    assert steps.count("attend") == 1


class CountingStore(Store):
    """A store that counts what is put into it, and stops its run when there should be more."""

    done, most = 0, None

    def put(self, *arguments, **options):
        if self.done == self.most:
            self.stop()
        self.done += 1
        return super().put(*arguments, **options)

    def stop(self):
        raise KeyboardInterrupt


def make_small_shards(monkeypatch):
    for name in ("BATCH_TOKENS", "SHARD_TOKENS"):
        monkeypatch.setattr(extract_module, name, 20)


def test_a_pass_is_made_once_and_goes_on_after_an_interruption(tiny, tmp_path, monkeypatch):
    make_small_shards(monkeypatch)
    tokens = encode_texts(TEXTS * 5, tiny.tokenizer, 12)
    expected = extract(tokens, tiny, Store(tmp_path / "whole"), [(2, "cls")])[0]
    assert len(expected.shards) > 3
    store = CountingStore(tmp_path / "cut")
    store.most = 2
    with pytest.raises(KeyboardInterrupt):
        extract(tokens, tiny, store, [(2, "cls")])
    store.most = None
    resumed = extract(tokens, tiny, store, [(2, "cls")])[0]
    assert store.done == len(expected.shards)  # nothing was computed twice
    assert np.array_equal(resumed.matrix(), expected.matrix())
    monkeypatch.setattr(extract_module, "hidden_states", lambda *_: 1 / 0)
    again = extract(tokens, tiny, store, [(2, "cls")])[0]
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


class OtherProcessStore(CountingStore):
    """A store whose process is killed, or waits until another one has stored some shards."""

    def find(self, *arguments):
        while os.environ.get("RANK") == "1" and not list(self.root.glob("vectors/[!.]*")):
            time.sleep(0.01)
        return super().find(*arguments)

    def stop(self):
        os.kill(os.getpid(), signal.SIGKILL)


def embed_elsewhere(model, folder, most=None):
    """Embed texts in small shards in a process that `embed_in_processes` started."""
    extract_module.BATCH_TOKENS = extract_module.SHARD_TOKENS = 20
    store = OtherProcessStore(folder / "store")
    store.most = most
    found = embed_texts(MANY_TEXTS, load_encoder(model), pooling="mean", store=store)
    np.savez(folder / f"{os.environ['RANK']}.npz", found=found, done=store.done)


def embed_in_processes(tiny_bert, folder, most=None, processes=1):
    call = f"embed_elsewhere({str(tiny_bert)!r}, Path({str(folder)!r}), {most})"
    return run_script("encoder.test_extract", "embed_elsewhere", call, processes)


def test_sigkill_then_the_same_matrix(tiny, tiny_bert, tmp_path, monkeypatch):
    make_small_shards(monkeypatch)
    run = embed_in_processes(tiny_bert, tmp_path, most=3)
    assert run.returncode == -signal.SIGKILL, run.stderr[-3000:]
    assert len(list(tmp_path.glob("store/vectors/[!.]*"))) == 3
    store = CountingStore(tmp_path / "store")
    found = embed_texts(MANY_TEXTS, tiny, pooling="mean", store=store)
    assert store.done == len(list(tmp_path.glob("store/vectors/[!.]*"))) - 3
    assert np.array_equal(found, embed_texts(MANY_TEXTS, tiny, pooling="mean"))


def test_two_processes_share_the_shards_and_get_the_same_matrix(
    tiny, tiny_bert, tmp_path, monkeypatch
):
    make_small_shards(monkeypatch)
    run = embed_in_processes(tiny_bert, tmp_path, processes=2)
    assert run.returncode == 0, run.stderr[-3000:]
    first, second = (np.load(tmp_path / f"{rank}.npz") for rank in (0, 1))
    total = len(list(tmp_path.glob("store/vectors/[!.]*")))
    assert first["done"] + second["done"] == total > 3
    assert abs(first["done"] - second["done"]) <= 1
    expected = embed_texts(MANY_TEXTS, tiny, pooling="mean")
    assert np.array_equal(first["found"], expected)
    assert np.array_equal(second["found"], expected)


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
