import numpy as np
import pytest
from sklearn.metrics import (
    adjusted_mutual_info_score,
    adjusted_rand_score,
    confusion_matrix,
    v_measure_score,
)

from sentigeo.confusion import (
    compare_answers,
    confusion_table,
    estimate_agreement,
    order_clusters,
)


def test_table_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    labels, groups = rng.integers(3, size=60), rng.integers(3, size=60)
    table = confusion_table(labels, groups, ["a", "b", "c"], ["x", "y", "z"])
    assert np.array_equal(table.to_numpy(), confusion_matrix(labels, groups))


def test_table_may_be_rectangular_and_have_empty_groups():
    table = confusion_table(np.array([0, 1, 1]), np.array([3, 0, 0]), ["a", "b"], list("wxyz"))
    assert table.loc["a"].tolist() == [0, 0, 0, 1]
    assert table.loc["b"].tolist() == [2, 0, 0, 0]


def test_clusters_stand_in_the_order_of_their_classes():
    order, names = order_clusters({0: 1, 1: -1, 2: 0}, ["bad", "good"])
    assert order == [2, 0, 1]
    assert names == ["cluster 3 (bad)", "cluster 1 (good)", "cluster 2 (no class)"]


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
