import numpy as np
import pytest
from helpers import labelled_cloud
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import normalize

from sentigeo.analysis.few_shot import (
    METHODS,
    balance_hits,
    classify_by_cosine,
    draw_shots,
    few_shot_hits,
    learning_curve,
    nearest_rows,
)
from sentigeo.errors import UserError
from sentigeo.stats import unfold


@pytest.fixture(scope="module")
def groups():
    return labelled_cloud(240, 6, apart=2.5)


def test_nearest_text_and_class_mean_are_those_of_scikit_learn(groups):
    vectors, labels = groups
    shots, new = vectors[:30], vectors[30:]
    units = normalize(shots)
    one = KNeighborsClassifier(1, metric="cosine").fit(shots, labels[:30])
    assert np.array_equal(
        classify_by_cosine(shots, labels[:30], new, "nearest text"), one.predict(new)
    )
    means = normalize([units[labels[:30] == number].mean(axis=0) for number in range(3)])
    nearest = KNeighborsClassifier(1, metric="cosine").fit(means, np.arange(3))
    found = classify_by_cosine(shots, labels[:30], new, "nearest class mean")
    assert np.array_equal(found, nearest.predict(new))


def test_length_of_a_vector_does_not_matter(groups):
    vectors, labels = groups
    for method in METHODS:
        first = classify_by_cosine(vectors[:30], labels[:30], vectors[30:], method)
        second = classify_by_cosine(vectors[:30] * 7, labels[:30], vectors[30:] * 0.1, method)
        assert np.array_equal(first, second)


def test_shots_are_balanced_and_nested(groups):
    labels = groups[1]
    small, large = draw_shots(labels, 2, 5), draw_shots(labels, 8, 5)
    assert np.bincount(labels[large]).tolist() == [8, 8, 8]
    assert set(small) <= set(large)
    assert set(draw_shots(labels, 8, 6)) != set(large)
    with pytest.raises(UserError, match="200 shots are not possible"):
        draw_shots(labels, 200, 0)


def test_more_shots_classify_better(groups):
    vectors, labels = groups
    hits = few_shot_hits(
        vectors[:120], labels[:120], vectors[120:], labels[120:], counts=[1, 16], draws=6
    )
    assert hits["nearest text", 1].shape == (6, 120)
    curve = unfold(learning_curve(hits, 100)).set_index(["method", "shots"])
    for method in METHODS:
        assert curve.loc[(method, 16), "value"] > curve.loc[(method, 1), "value"]
        row = curve.loc[(method, 1)]
        assert row["bottom"] <= row["value"] <= row["top"]


def test_nearest_rows_come_in_order():
    rows, cosines = nearest_rows(np.array([1.0, 0]), np.array([[0.0, 1], [2, 0], [1, 1]]), 2)
    assert rows.tolist() == [1, 2]
    assert cosines == pytest.approx([1, 0.5**0.5])


def test_every_class_counts_as_much():
    truth = np.array([0, 0, 0, 2])
    balanced = balance_hits(np.array([[True, True, True, False]]), truth)
    assert balanced.mean() == pytest.approx(0.5)
    assert balance_hits(np.ones((1, 4), bool), truth).mean() == pytest.approx(1)
