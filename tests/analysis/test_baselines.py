import numpy as np
import pandas as pd
from sklearn.pipeline import Pipeline

from sentigeo.analysis.baselines import (
    fit_majority,
    fit_tfidf,
    score_over_draws,
    topic_vectors,
)
from sentigeo.profile import load_profile

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


def test_texts_without_spaces_are_taken_letter_by_letter():
    train = pd.DataFrame(
        {"text": ["好看的电影", "真好看", "难看的片子", "很难看啊"], "label": [1, 1, 0, 0]}
    )
    assert fit_tfidf(train, train).predict(["好极了", "难受"]).tolist() == [1, 0]


def test_tfidf_takes_the_first_of_equally_good_strengths():
    assert fit_tfidf(TRAIN, TRAIN)[-1].C == 1.0


def make_reviews(count):
    rows = {"text": [f"film number {n}" for n in range(count)], "label": np.arange(count) % 2}
    return pd.DataFrame(rows | {"origin": "imdb"}).assign(id=lambda own: own["text"])


def test_other_draws_never_see_the_scored_reviews(monkeypatch):
    profile = load_profile("quick", draw_per_label=50, validation_share=0.2, seeds=2)
    reviews = make_reviews(300)
    test = reviews.tail(60)
    seen, original = [], Pipeline.fit

    def spy(pipeline, texts, labels):
        seen.append(set(texts))
        return original(pipeline, texts, labels)

    monkeypatch.setattr(Pipeline, "fit", spy)
    assert score_over_draws(reviews, test, profile, 1.0).shape == (2,)
    assert [len(texts) for texts in seen] == [80, 80]
    assert seen[0] != seen[1]
    assert not (seen[0] | seen[1]) & set(test["text"])


def test_topic_vectors_know_which_words_texts_share():
    train = ["cats purr", "cats purr loudly", "trains run", "trains run late"] * 2
    known, new = topic_vectors(train, ["cats purr", "trains run"], size=2)
    assert known.shape == (8, 2)
    assert np.allclose(np.linalg.norm(new, axis=1), 1)
    cosines = new @ known[[0, 2]].T
    assert np.allclose(cosines, np.eye(2), atol=1e-6)
