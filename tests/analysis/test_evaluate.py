import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom
from sklearn.metrics import classification_report

from sentigeo.analysis.predictions import (
    consistency_by_phenomenon,
    pair_consistency,
    report_classes,
    score_challenge,
    score_reviews,
    small_sample_spread,
)

CHALLENGE = pd.DataFrame(
    {
        "pair": ["p2", "p2", "p1", "p1", "p3", "p3"],
        "label": [0, 1] * 3,
        "phenomenon": ["quoted_opinion"] * 2 + ["negation"] * 4,
    }
)
PREDICTED = np.array([0, 1, 0, 0, 1, 0])  # p2 right, p1 half right, p3 wrong


def test_pair_consistency_by_hand():
    found = pair_consistency(CHALLENGE, PREDICTED)
    assert found.to_dict() == {"p2": True, "p1": False, "p3": False}
    assert found.index.tolist() == ["p2", "p1", "p3"]


def test_scores_by_hand():
    found = score_challenge(CHALLENGE, PREDICTED, resamples=100)
    assert (found["challenge_accuracy"].value, found["challenge_accuracy"].n) == (0.5, 6)
    assert (found["challenge_consistency"].value, found["challenge_consistency"].n) == (1 / 3, 3)
    assert score_reviews([0, 1, 2, 2], [0, 1, 2, 0]).value == 0.75


def test_phenomena_by_hand():
    found = consistency_by_phenomenon(CHALLENGE, PREDICTED)
    assert found[["name", "value", "n"]].to_numpy().tolist() == [
        ["quoted opinion", 1.0, 1],
        ["negation", 0.0, 2],
    ]


def test_class_report_is_sklearns_mean_over_runs():
    labels = np.array([0, 0, 1, 1, 2])
    runs = np.array([[0, 1, 1, 1, 2], [0, 0, 1, 0, 0]])
    found = report_classes(labels, runs, ["a", "b", "c"]).set_index("class")
    expected = [
        classification_report(
            labels, run, target_names=list("abc"), output_dict=True, zero_division=0
        )
        for run in runs
    ]
    for name in "abc":
        for measure in ("precision", "recall"):
            mean = np.mean([report[name][measure] for report in expected])
            assert found.loc[name, measure] == pytest.approx(mean)
    assert found["n"].tolist() == [2, 2, 1]


def test_small_samples_spread_as_the_binomial_says():
    low, high = small_sample_spread(np.arange(1000) % 10 != 0, size=13, samples=20_000)
    assert (low, high) == (binom.ppf(0.025, 13, 0.9) / 13, binom.ppf(0.975, 13, 0.9) / 13)
