import numpy as np
import pytest
from helpers import labelled_cloud
from sklearn.metrics import precision_recall_fscore_support
from sklearn.metrics.pairwise import cosine_similarity

from sentigeo.analysis.cosine_remedies import (
    best_threshold,
    judge_threshold,
    threshold_curve,
    top_cosines,
)
from sentigeo.analysis.cosines import count_pairs


@pytest.fixture(scope="module")
def pairs():
    """Texts, their classes, and by scikit-learn every pair's cosine and whether of one class."""
    vectors, labels = labelled_cloud(150, 8, apart=1)
    rows, columns = np.triu_indices(150, k=1)
    same = labels[rows] == labels[columns]
    return vectors, labels, cosine_similarity(vectors)[rows, columns], same


def test_threshold_by_hand():
    # Pairs of one class have cosine 1, the others 0.
    vectors, labels = np.repeat(np.eye(2), 20, axis=0), np.repeat([0, 1], 20)
    counts = count_pairs(vectors, labels, 2)
    assert counts.auc() == 1
    assert threshold_curve(counts)["precision"].iloc[0] == pytest.approx(380 / 780)
    assert 0 < best_threshold(counts) <= 1
    judged = judge_threshold(vectors, labels, 2, best_threshold(counts))
    assert [judged[name].value for name in ("precision", "recall", "f1")] == [1, 1, 1]
    assert judged["gain"].value == pytest.approx(400 / 780)
    every = judge_threshold(vectors, labels, 2, -1.0)
    assert every["recall"].value == 1
    assert every["gain"].value == 0


def test_thresholds_are_those_of_scikit_learn(pairs):
    vectors, labels, cosines, same = pairs
    threshold = float(np.quantile(cosines, 0.7))
    judged = judge_threshold(vectors, labels, 3, threshold)
    right = precision_recall_fscore_support(same, cosines > threshold, average="binary")
    for name, value in zip(("precision", "recall", "f1"), right[:3], strict=True):
        assert judged[name].value == pytest.approx(value, abs=1e-3)
        assert judged[name].low < judged[name].value < judged[name].high
    assert np.isnan(judge_threshold(np.eye(4), np.array([0, 0, 1, 1]), 2, 1.0)["f1"].low)


def test_top_cosines(pairs):
    vectors, labels, cosines, _ = pairs
    found = top_cosines(count_pairs(vectors, labels, 3), 0.1)
    assert found == pytest.approx(np.quantile(cosines, 0.9), abs=1e-3)
