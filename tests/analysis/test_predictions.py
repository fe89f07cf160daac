import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import classification_report

from sentigeo.analysis.predictions import (
    calibration_error,
    consistency_by_phenomenon,
    pair_consistency,
    reliability,
    report_classes,
    score_challenge,
)
from sentigeo.stats import unfold

CHALLENGE = pd.DataFrame(
    {
        "pair": ["p2", "p2", "p1", "p1", "p3", "p3"],
        "label": [0, 1] * 3,
        "phenomenon": ["quoted_opinion"] * 2 + ["negation"] * 4,
    }
)
PREDICTED = np.array([0, 1, 0, 0, 1, 0])  # p2 right, p1 half right, p3 wrong
CHANCES = np.array([[0.95, 0.05], [0.1, 0.9], [0.45, 0.55], [0.6, 0.4]])
LABELS = np.array([0, 0, 1, 0])  # the second is wrong at confidence 0.9


def test_pair_consistency_by_hand():
    found = pair_consistency(CHALLENGE, PREDICTED)
    assert found.to_dict() == {"p2": True, "p1": False, "p3": False}
    assert found.index.tolist() == ["p2", "p1", "p3"]


def test_scores_by_hand():
    found = score_challenge(CHALLENGE, PREDICTED, resamples=100)
    assert (found["challenge_accuracy"].value, found["challenge_accuracy"].n) == (0.5, 6)
    assert (found["challenge_consistency"].value, found["challenge_consistency"].n) == (1 / 3, 3)


def test_phenomena_by_hand():
    found = unfold(consistency_by_phenomenon(CHALLENGE, PREDICTED))
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


def test_reliability_by_hand():
    # two bins: 0.5-0.75 holds 0.55 and 0.60, both right; 0.75-1 holds 0.95 right and 0.90 wrong
    found = unfold(reliability(CHANCES, LABELS, bins=2))
    assert found["confidence"].tolist() == pytest.approx([0.575, 0.925])
    assert found["value"].tolist() == [1.0, 0.5]
    assert found["n"].tolist() == [2, 2]


def test_calibration_error_by_hand():
    found = calibration_error(CHANCES, LABELS, resamples=50, bins=2)
    assert found.value == pytest.approx((2 * abs(0.575 - 1) + 2 * abs(0.925 - 0.5)) / 4)
    assert found.low <= found.value <= found.high


def test_a_calibrated_classifier_has_a_small_error():
    rng = np.random.default_rng(0)
    positive = rng.uniform(size=20_000)
    labels = (rng.uniform(size=20_000) < positive).astype(int)
    found = calibration_error(np.stack([1 - positive, positive], axis=1), labels, resamples=50)
    assert found.value < 0.02
