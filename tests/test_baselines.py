import numpy as np
import pandas as pd

from sentigeo.baselines import fit_majority, fit_tfidf, pair_consistency, score_over_draws
from sentigeo.profile import load_profile
from sentigeo.reviews import load_reviews, sample_test_pool

TRAIN = pd.DataFrame(
    {
        "text": ["don't watch it", "don't watch this", "do watch it", "do watch this", "do see it"],
        "label": [0, 0, 1, 1, 1],
    }
)


def test_majority_answers_with_the_largest_class():
    assert fit_majority(TRAIN).predict(["anything"]) == [1]


def test_tfidf_learns_words_and_keeps_contractions_whole():
    model = fit_tfidf(TRAIN, TRAIN)
    assert "don't" in model[0].vocabulary_
    assert model.predict(["don't go", "do go"]).tolist() == [0, 1]


def test_tfidf_takes_the_first_of_equally_good_strengths():
    assert fit_tfidf(TRAIN, TRAIN, strengths=(5.0, 50.0))[-1].C == 5.0


def test_pair_consistency_by_hand():
    challenge = pd.DataFrame({"pair": ["p2", "p2", "p1", "p1", "p3", "p3"], "label": [0, 1] * 3})
    found = pair_consistency(challenge, np.array([0, 1, 0, 0, 1, 0]))
    assert found.to_dict() == {"p2": True, "p1": False, "p3": False}
    assert found.index.tolist() == ["p2", "p1", "p3"]


def test_other_draws_never_see_the_scored_reviews(monkeypatch):
    profile = load_profile("quick", draw_per_label=50, seeds=2)
    reviews = load_reviews(profile)
    test = sample_test_pool(reviews, profile)
    seen = []

    def spy(train, validation, strengths):
        seen.append(set(train["id"]) | set(validation["id"]))
        return fit_majority(train)

    monkeypatch.setattr("sentigeo.baselines.fit_tfidf", spy)
    assert score_over_draws(reviews, test, profile, 1.0).shape == (2,)
    assert [len(ids) for ids in seen] == [100, 100]
    assert seen[0] != seen[1]
    assert not (seen[0] | seen[1]) & set(test["id"])
    assert not any(name.startswith("t0") for name in seen[0] | seen[1])
