import numpy as np
import pytest
from scipy.special import softmax

from sentigeo.analysis.predictions import calibration_error, probabilities, reliability

CHANCES = np.array([[0.95, 0.05], [0.1, 0.9], [0.45, 0.55], [0.6, 0.4]])
LABELS = np.array([0, 0, 1, 0])  # the second is wrong at confidence 0.9


def test_probabilities_are_softmax():
    logits = np.random.default_rng(0).normal(size=(5, 3)) * 50
    assert np.allclose(probabilities(logits), softmax(logits, axis=1))


def test_reliability_by_hand():
    # two bins: 0.5-0.75 holds 0.55 and 0.60, both right; 0.75-1 holds 0.95 right and 0.90 wrong
    found = reliability(CHANCES, LABELS, bins=2)
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
