import numpy as np
import pandas as pd
import pytest
from helpers import store_corpus
from scipy.sparse import csr_matrix
from sklearn.pipeline import Pipeline

from sentigeo.analysis.baselines import (
    Lexicon,
    decide,
    fit_lexicon,
    fit_nbsvm,
    fit_tfidf,
    load_margins,
    log_count_ratio,
    save_margins,
    score_lexicon,
    score_over_draws,
    topic_vectors,
)
from sentigeo.cache import Store
from sentigeo.errors import UserError
from sentigeo.profile import load_profile

TRAIN = pd.DataFrame(
    {
        "text": ["don't watch it", "don't watch this", "do watch it", "do watch this", "do see it"],
        "label": [0, 0, 1, 1, 1],
    }
)
FITS = {"nbsvm": fit_nbsvm, "tfidf": fit_tfidf, "lexicon": lambda train, _: fit_lexicon(train)}


@pytest.mark.parametrize("name", FITS)
def test_baselines_give_classes_and_the_margins_behind_them(name):
    train = pd.DataFrame({"text": ["a good film", "a bad film"] * 3, "label": [1, 0] * 3})
    model, new = FITS[name](train, train), ["good", "bad", "bad, so bad"]
    margins = model.decision_function(new)
    assert margins.shape == (3,)
    assert model.predict(new).tolist() == decide(margins).tolist() == [1, 0, 0]


@pytest.mark.parametrize("fit", [fit_nbsvm, fit_tfidf])
def test_words_are_learned_and_contractions_kept_whole(fit):
    model = fit(TRAIN, TRAIN)
    assert "don't" in model[0].vocabulary_
    assert model.predict(["don't go", "do go"]).tolist() == [0, 1]


@pytest.mark.parametrize("fit", [fit_nbsvm, fit_tfidf])
def test_texts_without_spaces_are_taken_letter_by_letter(fit):
    train = pd.DataFrame(
        {"text": ["好看的电影", "真好看", "难看的片子", "很难看啊"], "label": [1, 1, 0, 0]}
    )
    assert fit(train, train).predict(["好极了", "难受"]).tolist() == [1, 0]


def test_tfidf_takes_the_first_of_equally_good_strengths():
    known = pd.DataFrame({"text": ["a good film", "a bad film"] * 5, "label": [1, 0] * 5})
    model = fit_tfidf(known, known)
    assert (model[0].min_df, model[-1].C) == (2, 0.1)


@pytest.mark.parametrize(("label", "least"), [(1, 2), (0, 5)])
def test_validation_chooses_how_rare_a_term_may_be(label, least):
    texts = ["good plot"] * 4 + ["good"] * 4 + ["bad"] * 9  # a plot is good, if four texts count
    train = pd.DataFrame({"text": texts, "label": [1] * 8 + [0] * 9})
    validation = pd.DataFrame({"text": ["good", "bad", "plot"], "label": [1, 0, label]})
    model = fit_tfidf(train, validation)
    assert model[0].min_df == least
    assert model.predict(["plot"]) == [label]


def test_log_count_ratio_by_hand():
    # columns: good, bad, film; texts 0 and 1 are positive. One is added to every count.
    counts = csr_matrix([[1, 0, 1], [1, 0, 0], [0, 1, 1], [0, 1, 1]])
    found = log_count_ratio(counts, np.array([1, 1, 0, 0]))
    positive, negative = np.array([3, 1, 2]) / 6, np.array([1, 3, 3]) / 7
    assert found == pytest.approx(np.log(positive / negative))


def test_nbsvm_counts_a_term_once_however_often_it_is_used():
    model = fit_nbsvm(TRAIN, TRAIN)
    weight = model[1].coef_[0, model[0].vocabulary_["do"]]
    once, often = model.decision_function(["do", "do, not, do"])
    assert once == often == pytest.approx(weight + model[1].intercept_[0])


def test_nbsvm_is_for_two_classes():
    with pytest.raises(UserError, match="two classes"):
        fit_nbsvm(TRAIN.assign(label=[0, 1, 2, 0, 1]), TRAIN)


def test_the_lexicon_knows_negation():
    good, not_good, bad, nothing = score_lexicon(["It is good.", "It is not good.", "Bad!", ""])
    assert bad < 0
    assert not_good < nothing == 0 < good


def test_the_lexicon_takes_the_mean_over_sentences():
    first, second, both = score_lexicon(["It is great.", "It is sad.", "It is great. It is sad."])
    assert both == pytest.approx((first + second) / 2)


def test_the_threshold_is_chosen_on_what_is_given():
    texts = ["It is okay.", "It is good.", "It is great.", "It is the best film ever, brilliant!"]
    scores = score_lexicon(texts)
    assert (np.diff(scores) > 0).all()
    for positive in (1, 2, 3):  # as many of them, the best ones
        labels = (np.arange(4) >= 4 - positive).astype(int)
        found = fit_lexicon(pd.DataFrame({"text": texts, "label": labels}))
        assert scores[3 - positive] <= found.threshold < scores[4 - positive]
        assert found.decision_function(texts) == pytest.approx(scores - found.threshold)
        assert found.predict(texts).tolist() == labels.tolist()


def test_classes_of_margins():
    assert decide(np.array([-0.1, 0.0, 0.2])).tolist() == [0, 0, 1]
    assert decide(np.array([[0.1, 0.3, 0.2], [2.0, 1.0, 0.0]])).tolist() == [1, 0]


def test_margins_are_kept_in_the_order_of_the_corpus(tmp_path):
    store = Store(tmp_path)
    corpus = store_corpus(store, ["Good.", "Bad.", "Film."], [1, 0, 1], ["train", "test", "test"])
    margins = {"lexicon": Lexicon(0.0).decision_function(corpus.texts["text"])}
    found = load_margins(save_margins(margins, corpus, store))
    assert list(found) == ["lexicon"]
    assert np.sign(found["lexicon"]).tolist() == [1, -1, 0]


def make_reviews(count):
    rows = {"text": [f"film number {n}" for n in range(count)], "label": np.arange(count) % 2}
    return pd.DataFrame(rows | {"origin": "imdb"}).assign(id=lambda own: own["text"])


def test_other_draws_never_see_the_scored_reviews(monkeypatch):
    profile = load_profile("quick", draw_per_label=50, validation_share=0.2, seeds=2)
    reviews = make_reviews(300)
    test, model = reviews.tail(60), fit_tfidf(TRAIN, TRAIN)
    seen, original = [], Pipeline.fit

    def spy(pipeline, texts, labels):
        seen.append(set(texts))
        return original(pipeline, texts, labels)

    monkeypatch.setattr(Pipeline, "fit", spy)
    assert score_over_draws(reviews, test, profile, model).shape == (2,)
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
