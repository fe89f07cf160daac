import numpy as np
import pytest

from sentigeo.attention.attention import Attention
from sentigeo.attention.heads import (
    TARGETS,
    divergence,
    entropy,
    estimate_specialised,
    find_specialised,
    measure_divergence,
    rank_heads,
    study_heads,
    target_shares,
)
from sentigeo.encoder.encoder import load_encoder

WORDS = ["[CLS]", "not", "good", ",", "bad", "[SEP]"]


def make(rows):
    """Attention of one layer and one head."""
    special = np.array([word.startswith("[") for word in WORDS])
    return Attention(WORDS, special, np.array(rows, float)[None, None])


def shifted(step):
    """A head that attends one place to the side, and to the separator where there is none."""
    rows = np.zeros((6, 6))
    for row in range(6):
        rows[row, row + step if 0 <= row + step < 6 else 5] = 1
    return make(rows)


def pointing_at(column):
    rows = np.zeros((6, 6))
    rows[:, column] = 1
    return make(rows)


EVEN = make(np.full((6, 6), 1 / 6))


@pytest.mark.parametrize(
    ("attention", "kind", "expected"),
    [
        (shifted(0), "same word", 1),
        (shifted(-1), "previous", 3 / 4),  # before the first word stands the first token
        (shifted(-1), "first token", 1 / 4),
        (shifted(1), "next", 3 / 4),
        (shifted(1), "separator", 1 / 4),
        (pointing_at(0), "first token", 1),
        (pointing_at(5), "separator", 1),
        (pointing_at(3), "punctuation", 1 / 4),  # to "good" it is next, to "bad" previous
        (EVEN, "first token", 1 / 6),
        (EVEN, "other words", (1 + 1 + 1 + 2) / 24),  # word pairs two apart or more
        (EVEN, "punctuation", 1 / 24),
    ],
)
def test_shares_by_hand(attention, kind, expected):
    shares = target_shares(attention)
    assert shares.shape == (1, 1, len(TARGETS))
    assert shares.sum() == pytest.approx(1)
    assert shares[0, 0, TARGETS.index(kind)] == pytest.approx(expected)


def test_entropy_by_hand():
    assert entropy(EVEN)[0, 0] == pytest.approx(1)
    assert entropy(shifted(1))[0, 0] == 0


def test_specialised_heads_need_a_share_that_is_sure():
    rng = np.random.default_rng(0)
    shares = np.zeros((50, 1, 3, len(TARGETS)))
    shares[:, 0, 0, 3] = 0.7 + 0.05 * rng.normal(size=50)
    shares[:, 0, 1, 3] = 0.52 + 0.2 * rng.normal(size=50)
    shares[:, 0, 2, -1] = 0.9  # other words are no specialisation
    assert find_specialised(shares, 0.5).any(axis=-1).tolist() == [[True, False, False]]
    found = estimate_specialised(shares, 0.5, 50)
    assert found.value == pytest.approx(1 / 3)
    assert found.low <= found.value <= found.high


def test_heads_are_ranked_by_their_mean():
    values = np.zeros((20, 2, 3))
    values[:, 1, 0], values[:, 0, 2] = 0.5, np.linspace(0.2, 0.4, 20)
    found = rank_heads(values, 2, 50)
    assert found[["layer", "head"]].to_numpy().tolist() == [[2, 1], [1, 3]]
    assert [own.value for own in found["estimate"]] == pytest.approx([0.5, 0.3])
    assert found["estimate"][1].low < 0.3 < found["estimate"][1].high
    signed = rank_heads(values, 1, 50, signed=True)["estimate"][0]
    assert signed.brief().startswith("+0.500")


def test_divergence_by_hand():
    assert divergence(EVEN, EVEN)[0, 0] == pytest.approx(0)
    assert divergence(pointing_at(0), pointing_at(5))[0, 0] == pytest.approx(1)
    half = pointing_at(0).weights / 2 + pointing_at(5).weights / 2
    mixed = Attention(WORDS, EVEN.special, half)
    expected = 0.5 * np.log2(1 / 0.75) + 0.5 * (0.5 * np.log2(0.5 / 0.75) + 0.5 * np.log2(2))
    assert divergence(pointing_at(0), mixed)[0, 0] == pytest.approx(expected)


def test_a_study_of_real_sentences(tiny_bert, tiny_distilbert):
    texts = [
        "It is not good at all , they say .",
        "What a good film this is !",
        "Never bad or dull .",
    ]
    encoder = load_encoder(str(tiny_bert))
    found = study_heads(texts, encoder, {"good", "bad"})
    assert found.shares.shape == (3, 2, 4, len(TARGETS))
    assert found.entropy.shape == (3, 2, 4)
    assert found.negated == found.starts.marked.sum() == 2
    assert len(found.lookups["first token"].others) == 3
    assert list(found.compare(20)) == ["as far apart", "other starting words", "first token"]
    assert measure_divergence(texts, encoder, encoder).max() == pytest.approx(0, abs=1e-6)
    other = load_encoder(str(tiny_distilbert))
    assert measure_divergence(texts, encoder, other).min() > 0
    none = study_heads(texts, encoder, {"elephant"})
    assert none.negated == 0
    assert none.starts.weights.shape == (0, 2, 4)
    assert all((test.p_values == 1).all() for test in none.compare(20).values())


def test_a_negation_changes_nothing_for_the_texts_after_it(tiny_bert):
    encoder, last = load_encoder(str(tiny_bert)), "They say this long old film was really good ."
    studies = [study_heads([first, last], encoder, {"good"}) for first in ("Not good .", "So so .")]
    distances = [found.starts.distances[~found.starts.marked].tolist() for found in studies]
    assert distances[0] == distances[1] != []
