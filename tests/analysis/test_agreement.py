import numpy as np
import pytest
from sklearn.metrics import (
    adjusted_mutual_info_score,
    adjusted_rand_score,
    confusion_matrix,
    v_measure_score,
)

from sentigeo.analysis.agreement import (
    chance_agreement,
    compare_answers,
    confusion_table,
    estimate_agreement,
    matched_by_chance,
)
from sentigeo.analysis.clusters import align_clusters


def test_table_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    labels, groups = rng.integers(3, size=60), rng.integers(3, size=60)
    table = confusion_table(labels, groups, ["a", "b", "c"], ["x", "y", "z"])
    assert np.array_equal(table.to_numpy(), confusion_matrix(labels, groups))


def test_table_may_be_rectangular_and_have_empty_groups():
    table = confusion_table(np.array([0, 1, 1]), np.array([3, 0, 0]), ["a", "b"], list("wxyz"))
    assert table.loc["a"].tolist() == [0, 0, 0, 1]
    assert table.loc["b"].tolist() == [2, 0, 0, 0]


def test_a_group_without_a_name_is_refused():
    with pytest.raises(ValueError, match="no name"):
        confusion_table(np.array([0, 1]), np.array([0, -1]), ["a", "b"], ["x"])


def test_chance_by_hand():
    labels = np.array([0, 0, 0, 1])
    assert chance_agreement(labels, np.array([0, 0, 0, 0])) == 0.75
    assert chance_agreement(labels, np.array([0, 0, 1, 1])) == pytest.approx(0.75 / 2 + 0.25 / 2)
    assert chance_agreement(labels, np.array([-1, -1, -1, -1])) == 0


def test_agreement_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=200)
    groups = np.where(rng.random(200) < 0.8, 1 - labels, labels)
    found = estimate_agreement(labels, groups, 1 - groups, resamples=50)
    assert found["accuracy"].value == (groups != labels).mean()
    expected = {"ari": adjusted_rand_score, "ami": adjusted_mutual_info_score,
                "v_measure": v_measure_score}  # fmt: skip
    for name, index in expected.items():
        assert found[name].value == pytest.approx(index(labels, groups))
        assert found[name].low < found[name].value < found[name].high
        assert found[name].n == 200


def test_who_is_right_where_answers_differ():
    labels = np.array([0, 0, 1, 1])
    found = compare_answers(labels, np.array([0, 1, 1, 1]), np.array([0, 0, 1, 0]), ("a", "b"))
    assert found["texts"].tolist() == [2, 2]
    assert found.loc[0, "a right"].startswith("1.000")
    assert found.loc[1, "a right"].startswith("0.500")
    same = compare_answers(labels, labels, labels, ("a", "b"))
    assert same["texts"].tolist() == [4, 0]
    assert np.isnan(same.loc[1, "a right"])


def test_matching_makes_the_best_of_chance():
    rng = np.random.default_rng(0)
    labels, groups = rng.integers(4, size=40), rng.integers(4, size=40)
    shuffled = [rng.permutation(labels) for _ in range(400)]
    found = [(align_clusters(own, groups) == own).mean() for own in shuffled]
    assert matched_by_chance(labels, groups) == pytest.approx(np.mean(found), abs=0.02)
    assert matched_by_chance(labels, groups) > 0.3


def test_the_interval_of_an_index_holds_its_value():
    rng = np.random.default_rng(0)
    labels, groups = rng.integers(4, size=150), rng.integers(10, size=150)
    for name, own in estimate_agreement(labels, groups, groups % 4, resamples=40).items():
        assert own.low < own.value < own.high, name
    same = estimate_agreement(labels, labels, labels, resamples=20)["ari"]
    assert (same.value, same.low, same.high) == (1, 1, 1)
