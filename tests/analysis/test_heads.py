from dataclasses import replace

import numpy as np
import pytest

from sentigeo.analysis.attention import Attention
from sentigeo.analysis.heads import (
    TARGETS,
    Lookups,
    StratifiedLookups,
    compare_starts,
    compare_targets,
    divergence,
    entropy,
    estimate_specialised,
    find_specialised,
    lookup_at_distance,
    lookup_from_first,
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
    taller = replace(mixed, weights=np.concatenate([half, EVEN.weights]))
    assert divergence(taller, pointing_at(0)) == pytest.approx(np.array([[expected]]))


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
    assert len(found.lookups["as far apart"].observed) == found.starts.marked.sum() == 2
    assert len(found.lookups["first token"].others) == 3
    assert list(found.compare(20)) == ["as far apart", "other starting words", "first token"]
    assert measure_divergence(texts, encoder, encoder).max() == pytest.approx(0, abs=1e-6)
    other = load_encoder(str(tiny_distilbert))
    assert measure_divergence(texts, encoder, other).min() > 0
    none = study_heads(texts, encoder, {"elephant"})
    assert len(none.lookups["as far apart"].observed) == 0
    assert none.starts.weights.shape == (0, 2, 4)
    assert all((test.p_values == 1).all() for test in none.compare(20).values())


def test_a_negation_changes_nothing_for_the_texts_after_it(tiny_bert):
    encoder, last = load_encoder(str(tiny_bert)), "They say this long old film was really good ."
    studies = [study_heads([first, last], encoder, {"good"}) for first in ("Not good .", "So so .")]
    distances = [found.starts.distances[~found.starts.marked].tolist() for found in studies]
    assert distances[0] == distances[1] != []


SPECIAL = np.array([True, False, False, False, False, True])


def test_lookups_and_what_could_stand_there():
    rows = np.arange(36).reshape(6, 6) / 100
    attention = Attention(list("^abcd$"), SPECIAL, rows[None, None])
    observed, others = lookup_at_distance(attention, 1, 2)
    assert observed[0, 0] == pytest.approx(rows[1, 2])
    assert others[0, 0].tolist() == [rows[2, 3], rows[3, 4]]
    observed, others = lookup_from_first(attention, 2)
    assert observed[0, 0] == rows[0, 2]
    assert others[0, 0].tolist() == [rows[0, 1], rows[0, 3], rows[0, 4]]


def test_signs_are_no_words_to_compare_with():
    rows = np.arange(36).reshape(6, 6) / 100
    attention = Attention(["^", "a", "b", ",", "d", "$"], SPECIAL, rows[None, None])
    assert lookup_at_distance(attention, 1, 2)[1].size == 0
    assert lookup_from_first(attention, 2)[1][0, 0].tolist() == [rows[0, 1], rows[0, 4]]


def test_a_head_that_looks_up_is_found_among_many_that_do_not():
    rng = np.random.default_rng(0)
    observed = rng.uniform(size=(60, 3, 4))
    observed[:, 1, 2] += 0.5
    others = [rng.uniform(size=(3, 4, 9)) for _ in range(60)]
    found = compare_targets(Lookups(observed, others), 500)
    assert found.gain[1, 2] == pytest.approx(0.5, abs=0.1)
    assert np.argwhere(found.p_values < 0.05).tolist() == [[1, 2]]


def make_starts(rng, effect):
    """Pairs whose weights depend on their distance; marked ones are nearer."""
    marked = rng.uniform(size=120) < 0.5
    distances = np.where(marked, rng.integers(1, 4, 120), rng.integers(1, 6, 120))
    weights = rng.uniform(size=(120, 2, 3)) / distances[:, None, None]
    weights[:, 1, 1] += effect * marked
    return StratifiedLookups(weights, distances, marked)


def test_distance_alone_is_no_lookup():
    rng = np.random.default_rng(0)
    found = compare_starts(make_starts(rng, effect=0.4), 300)
    assert found.gain[1, 1] == pytest.approx(0.4, abs=0.1)
    assert np.argwhere(found.p_values < 0.05).tolist() == [[1, 1]]


def test_the_difference_by_hand():
    weights = np.array([0.5, 0.1, 0.3, 0.8, 0.2, 0.9]).reshape(6, 1, 1)
    marked = np.array([True, False, False, True, False, True])
    starts = StratifiedLookups(weights, np.array([1, 1, 1, 2, 2, 3]), marked)
    found = compare_starts(starts, 50)  # three apart there is nothing to compare with
    assert found.gain[0, 0] == pytest.approx(((0.5 - 0.2) + (0.8 - 0.2)) / 2)


def test_nothing_to_compare():
    none = compare_targets(Lookups(np.empty((0, 2, 3)), []), 10)
    assert np.isnan(none.gain).all()
    assert (none.p_values == 1).all()
    alone = StratifiedLookups(np.ones((2, 2, 3)), np.array([1, 2]), np.array([True, False]))
    assert (compare_starts(alone, 10).p_values == 1).all()


@pytest.mark.parametrize("kind", ["words", "starts"])
def test_chance_rarely_makes_any_head_stand_out(kind):
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        if kind == "words":
            others = [rng.uniform(size=(4, 6, 8)) for _ in range(30)]
            test = compare_targets(Lookups(rng.uniform(size=(30, 4, 6)), others), 200)
        else:
            test = compare_starts(make_starts(rng, effect=0.0), 100)
        found += (test.p_values < 0.05).any()
    assert found <= 6  # two are expected
