import numpy as np
import pandas as pd
import pytest
import torch

from sentigeo.analysis.probes import fit_probe
from sentigeo.attention.attention import run_with_attention
from sentigeo.attention.explanations import (
    MEASURES,
    decide,
    explain,
    make_decision,
    rank_agreement,
    same_first,
)
from sentigeo.encoder.encoder import load_encoder

TEXT = "It isn't unwatchable, but good!"


@pytest.fixture(scope="module")
def encoder(tiny_bert):
    return load_encoder(str(tiny_bert))


def make_probe(classes, seed=0):
    rng = np.random.default_rng(seed)
    vectors, labels = rng.normal(size=(120, 32)), rng.integers(classes, size=120)
    vectors[np.arange(120), labels] += 2
    return fit_probe(vectors[:80], labels[:80], vectors[80:], labels[80:])


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
