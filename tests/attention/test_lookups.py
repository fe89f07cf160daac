import numpy as np
import pytest

from sentigeo.attention.attention import Attention
from sentigeo.attention.lookups import (
    Lookups,
    StratifiedLookups,
    compare_starts,
    compare_targets,
    lookup_at_distance,
    lookup_from_first,
)

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
