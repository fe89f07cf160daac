import numpy as np
import pandas as pd

from sentigeo.evaluate import (
    consistency_by_phenomenon,
    pair_consistency,
    score_challenge,
    score_reviews,
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
