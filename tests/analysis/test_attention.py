import numpy as np
import pandas as pd
import pytest
import torch

from sentigeo.analysis.attention import (
    MEASURES,
    count_parameters,
    decide,
    explain,
    group_words,
    list_tokens,
    make_decision,
    merge_pieces,
    rank_agreement,
    read_attention,
    read_versions,
    recompute_weights,
    rollout,
    run_with_attention,
    same_first,
    state_shapes,
)
from sentigeo.analysis.probes import fit_probe
from sentigeo.encoder.bert_layers import encoder_layers
from sentigeo.encoder.encoder import load_encoder
from sentigeo.encoder.tokens import tokenize
from sentigeo.errors import UserError

TEXTS = ["A fine film.", "It isn't good, but never as unwatchable as they say!", "So."]


@pytest.fixture(scope="module")
def encoder(tiny_bert):
    return load_encoder(str(tiny_bert))


@torch.inference_mode()
def test_weights_by_hand_are_those_of_the_model(encoder):
    batch, _ = tokenize(TEXTS, encoder)
    found = run_with_attention(encoder, batch)
    for number, layer in enumerate(encoder_layers(encoder.model)):
        weights = recompute_weights(layer, found.hidden_states[number], batch["attention_mask"])
        assert torch.allclose(weights, found.attentions[number], atol=1e-6)


def test_padding_gets_nothing(encoder):
    batch, _ = tokenize(TEXTS, encoder)
    found = torch.stack(run_with_attention(encoder, batch).attentions)
    padding = (batch["attention_mask"] == 0)[None, :, None, None].expand_as(found)
    assert padding.any()
    assert (found[padding] == 0).all()


def test_batches_and_padding_change_nothing(encoder):
    together = list(read_attention(TEXTS, encoder))
    for text, found in zip(TEXTS, together, strict=True):
        (alone,) = read_attention([text], encoder)
        assert alone.words == found.words
        assert np.allclose(alone.weights, found.weights, atol=1e-6)
        assert np.allclose(found.weights.sum(axis=-1), 1, atol=1e-5)


def test_words_that_split_are_merged(encoder):
    (found,) = read_attention([TEXTS[1]], encoder)
    assert found.words[:4] == ["[CLS]", "It", "isn't", "good"]
    assert "unwatchable" in found.words
    assert found.words[-2:] == ["!", "[SEP]"]
    assert found.special.tolist() == [True] + [False] * (len(found.words) - 2) + [True]
    assert found.weights.shape == (2, 4, len(found.words), len(found.words))


def test_texts_beyond_the_limit_are_cut(encoder):
    (found,) = read_attention(["word " * 500], encoder)
    assert len(found.words) == encoder.max_length


def test_other_architectures_have_attention(tiny_distilbert):
    (found,) = read_attention(TEXTS[:1], load_encoder(str(tiny_distilbert)))
    assert found.weights.shape == (2, 4, 6, 6)


def test_an_encoder_without_attention_is_refused(encoder):
    class Silent:
        config = encoder.model.config

        def set_attn_implementation(self, name):
            pass

        def __call__(self, **batch):
            return type("Output", (), {"attentions": None})()

    silent = type(encoder)(**{**vars(encoder), "model": Silent()})
    with pytest.raises(UserError, match="does not return attention"):
        list(read_attention(TEXTS, silent))


def test_merging_by_hand():
    weights = np.array([[0.5, 0.25, 0.25], [0.2, 0.4, 0.4], [0.0, 0.5, 0.5]])
    merged = merge_pieces(weights, np.array([0, 1, 1]))
    assert merged == pytest.approx(np.array([[0.5, 0.5], [0.1, 0.9]]))


@pytest.mark.parametrize(
    ("offsets", "groups"),
    [
        ([[0, 0], [0, 3], [3, 4], [4, 5], [6, 9], [0, 0]], [0, 1, 1, 1, 2, 3]),
        ([[0, 0], [0, 5], [5, 9], [0, 0]], [0, 1, 2, 3]),  # the space belongs to the next word
    ],
)
def test_tokens_find_their_words(offsets, groups):
    begin, end = np.array(offsets).T
    tokens = [f"t{place}" for place in range(len(offsets))]
    places = pd.DataFrame({"token": tokens, "begin": begin, "end": end, "special": end == 0})
    found = group_words("isn't bad", places)
    assert found.groups.tolist() == groups
    assert found.words == ["t0", "isn't", "bad", tokens[-1]]
    assert found.special.tolist() == [True, False, False, True]


@pytest.mark.parametrize(
    "text", ["Love \u2764\ufe0f it!!", "a\u200bb c", "cafe\u0301 noir", "Wait ... what ?!", ""]
)
def test_odd_signs_lose_no_word(encoder, text):
    (found,) = read_attention([text], encoder)
    assert found.weights.shape[-1] == len(found.words) == len(found.special)
    assert np.allclose(found.weights.sum(axis=-1), 1, atol=1e-5)
    assert found.special.sum() == 2


def test_long_texts_come_in_small_batches(encoder, monkeypatch):
    texts = ["word " * count for count in (50, 3, 40, 2, 60)]
    whole, sizes = list(read_attention(texts, encoder)), []
    monkeypatch.setattr("sentigeo.analysis.attention.CELLS", 4000)
    hook = encoder.model.register_forward_pre_hook(
        lambda _, args, batch: sizes.append(tuple(batch["input_ids"].shape)), with_kwargs=True
    )
    parts = list(read_attention(texts, encoder))
    hook.remove()
    assert max(rows * width**2 for rows, width in sizes) <= 4096
    for one, other in zip(whole, parts, strict=True):
        assert np.allclose(one.weights, other.weights, atol=1e-6)


def test_versions_stand_side_by_side(encoder, tiny_distilbert):
    encoders = {"before": encoder, "after": load_encoder(str(tiny_distilbert))}
    found = list(read_versions(TEXTS, encoders))
    assert [list(own) for own in found] == [["before", "after"]] * 3
    assert found[1]["before"].words == found[1]["after"].words


def test_rollout_of_two_layers_by_hand():
    first, second = np.array([[0.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0], [1.0, 0.0]])
    weights = np.stack([first, second])[:, None].repeat(3, axis=1)
    # Half of each is itself: [[.5, .5], [0, 1]], then [[1, 0], [.5, .5]] of that.
    assert rollout(weights) == pytest.approx(np.array([[0.5, 0.5], [0.25, 0.75]]))


def test_tokens_of_a_text(encoder):
    found = list_tokens("An unwatchable film", encoder)
    assert found["token"].tolist() == ["[CLS]", "an", "un", "##watch", "##able", "film", "[SEP]"]
    assert found["kind"].tolist() == [
        "special", "word", "word", "piece", "piece", "word", "special"
    ]  # fmt: skip
    assert found["position"].tolist() == list(range(7))
    assert found["id"].iloc[[0, -1]].tolist() == [101, 102]


def test_one_state_more_than_layers(encoder):
    assert state_shapes("An unwatchable film", encoder) == [(1, 7, 32)] * 3
    assert state_shapes("film " * 900, encoder)[0] == (1, 64, 32)  # longer than it reads


def test_weights_by_part(encoder):
    found = count_parameters(encoder).set_index("part")["weights"]
    width, inner, layers = 32, 64, 2
    assert found["attention"] == layers * 4 * (width * width + width)
    assert found["feed-forward"] == layers * (2 * width * inner + width + inner)
    assert found["layer norm"] == (2 * layers + 1) * 2 * width
    assert found["embeddings"] == (len(encoder.tokenizer) + 64 + 2) * width
    assert found.sum() == encoder.parameters


def test_weights_of_another_architecture(tiny_distilbert):
    other = load_encoder(str(tiny_distilbert))
    found = count_parameters(other).set_index("part")["weights"]
    assert found["attention"] == 2 * 4 * (32 * 32 + 32)
    assert found.sum() == other.parameters


TEXT = "It isn't unwatchable, but good!"


def make_probe(classes, seed=0):
    rng = np.random.default_rng(seed)
    vectors, labels = rng.normal(size=(120, 32)), rng.integers(classes, size=120)
    vectors[np.arange(120), labels] += 2
    return fit_probe(vectors, labels, (np.arange(80), np.arange(80, len(labels))))


@pytest.mark.parametrize("classes", [2, 3])
def test_a_folded_probe_decides_as_it_did(encoder, classes):
    probe = make_probe(classes)
    decision = make_decision(encoder, probe)
    vectors = np.random.default_rng(1).normal(size=(9, 32)).astype(np.float32)
    found = decision.log_probabilities(torch.tensor(vectors)).exp().numpy()
    assert found == pytest.approx(probe.predict_proba(vectors), abs=1e-4)


def test_words_are_rated_in_four_ways(encoder):
    decision = make_decision(encoder, make_probe(2))
    _, found = explain(["So bad.", TEXT], decision)
    assert found["word"].tolist() == ["It", "isn't", "unwatchable", ",", "but", "good", "!"]
    whole, without = decide([TEXT, "It isn't unwatchable, but !"], decision)
    chosen = whole.argmax()
    assert found["occlusion"][5] == pytest.approx(whole[chosen] - without[chosen], abs=1e-6)
    assert (found["rollout"] > 0).all()
    assert found["rollout"].sum() < 1  # the special tokens have the rest
    assert np.isfinite(found[list(MEASURES)].to_numpy()).all()


def test_the_gradient_is_that_of_a_small_change(encoder):
    """All weights on a word a little larger: the decision changes as the measure says."""
    decision = make_decision(encoder, make_probe(2))
    (found,) = explain(["good film"], decision)
    batch = encoder.tokenizer("good film", return_tensors="pt")
    chosen = decide(["good film"], decision)[0].argmax()
    own, size = torch.nn.functional.softmax, 1e-3

    def grown(scores, *args, **kwargs):
        weights = own(scores, *args, **kwargs)
        if weights.dim() == 4:
            weights = weights.clone()
            weights[..., 1] *= 1 + size
        return weights

    with torch.inference_mode():
        plain = run_with_attention(encoder, batch).last_hidden_state[:, 0]
        torch.nn.functional.softmax = grown
        try:
            moved = run_with_attention(encoder, batch).last_hidden_state[:, 0]
        finally:
            torch.nn.functional.softmax = own
        change = decision.log_probabilities(moved) - decision.log_probabilities(plain)
    slope = float(change[0, chosen]) / size
    assert slope == pytest.approx(found["attention x gradient"][0], rel=0.05)


def test_agreement_by_hand():
    same = pd.DataFrame({"rollout": [0.1, 0.2, 0.3], "occlusion": [0.0, -0.5, 0.6]})
    turned = pd.DataFrame({"rollout": [0.3, 0.2, 0.1], "occlusion": [0.0, -0.5, 0.6]})
    flat = pd.DataFrame({"rollout": [0.1, 0.1, 0.1], "occlusion": [0.0, 0.5, 0.6]})
    found = rank_agreement([same, turned, flat, same.head(2)], "rollout")
    assert found.tolist() == pytest.approx([1, -1, 0, 0])
    assert same_first([same, turned, flat], "rollout").tolist() == [True, False, False]


def test_odd_signs_do_not_shift_the_words(encoder):
    decision = make_decision(encoder, make_probe(2))
    text = "Love \u2764\ufe0f this film, not \u200b bad!"
    found = explain([text], decision)[0].set_index("word")
    assert found.index[-2:].tolist() == ["bad", "!"]
    whole, without = decide([text, text.replace("bad", "")], decision)
    chosen = whole.argmax()
    assert found["occlusion"]["bad"] == pytest.approx(whole[chosen] - without[chosen], abs=1e-6)


def test_an_encoder_without_a_mask(tiny_bert):
    encoder = load_encoder(str(tiny_bert))
    encoder.tokenizer.mask_token = None
    assert "masking" not in explain([TEXT], make_decision(encoder, make_probe(2)))[0]
