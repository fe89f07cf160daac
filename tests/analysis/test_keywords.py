import numpy as np
import pandas as pd
import pytest

from sentigeo.analysis.keywords import (
    class_tfidf,
    count_terms,
    is_stop_word,
    judge_keywords,
    keep_best,
    lead_over_others,
    least_texts,
    log_odds,
    measure_polarity,
    rank_terms,
    shared_terms,
    split_terms,
    split_words,
    strip_text,
    top_terms,
)
from sentigeo.errors import UserError

# Two clusters, three terms: "good" 6 and 2 uses, "bad" 1 and 7, "film" 3 and 1.
TABLE = np.array([[6, 1, 3], [2, 7, 1]])
TEXTS, LABELS = ["good", "good", "bad", "good bad"], np.array([1, 1, 0, 0])


def test_contractions_stay_whole():
    assert split_words("Don't, didn\u2019t & CAN'T!") == ["don't", "didn't", "can't"]
    assert split_words("rock 'n' roll's 80s x") == ["rock", "n", "roll's", "s", "x"]
    assert split_words("e\u0301te\u0301 Ünter") == ["été", "ünter"]
    assert split_words("हिन्दी में") == ["हिन्दी", "में"]


def test_stop_words_and_their_contractions_go_but_negations_stay():
    assert all(is_stop_word(word) for word in ("the", "x", "it's", "they're", "i've", "he'd"))
    words = ("not", "never", "nobody", "don't", "film", "film's", "empty", "well")
    assert not any(is_stop_word(word) for word in words)


def test_pairs_are_neighbours_without_a_stop_word_between():
    terms = split_terms("It's not a good film, don't bother")
    assert terms == ["not", "good", "film", "good film", "don't", "bother", "don't bother"]


def test_terms_are_counted_by_text_and_by_cluster():
    terms = count_terms(["good good film", "bad film", "good bad", "the of"], least=2)
    assert terms.names == ["bad", "film", "good"]
    assert terms.counts.toarray().tolist() == [[0, 1, 2], [1, 1, 0], [1, 0, 1], [0, 0, 0]]
    members = np.array([0, 1, 0, 1])
    assert terms.uses_by_cluster(members, 3).tolist() == [[1, 1, 3], [1, 1, 0], [0, 0, 0]]
    assert terms.texts_by_cluster(members, 3).tolist() == [[1, 1, 2], [1, 1, 0], [0, 0, 0]]


def test_given_terms_are_counted_in_alphabetical_order():
    terms = count_terms(["good film", "bad"], 1, ["good", "bad", "plot", "good film"])
    assert terms.names == ["bad", "good", "good film", "plot"]
    assert terms.counts.toarray().tolist() == [[0, 1, 1, 0], [1, 0, 0, 0]]


@pytest.mark.parametrize(
    ("texts", "least"), [(["the of", "a"], 1), (["...", "12"], 1), ([], 1), (["good", "bad"], 2)]
)
def test_an_empty_vocabulary_is_refused(texts, least):
    with pytest.raises(UserError, match=f"no keywords: no word .* by {least} texts"):
        count_terms(texts, least)


def test_small_data_need_fewer_texts():
    assert [least_texts(n) for n in (0, 40, 100, 10_000)] == [2, 2, 5, 10]


def test_class_tfidf_by_hand():
    found = class_tfidf(TABLE)  # clusters of 10 words each
    assert found[0, 0] == pytest.approx(6 / 10 * np.log(1 + 10 / 8))
    assert found[1, 1] == pytest.approx(7 / 10 * np.log(1 + 10 / 8))
    assert found[1, 2] == pytest.approx(1 / 10 * np.log(1 + 10 / 4))


def test_log_odds_by_hand():
    # A prior worth 5 uses, spread as all 20 uses are: good 2, bad 2, film 1.
    found = log_odds(TABLE, prior=5)
    good = np.log((6 + 2) / (10 + 5 - 8)) - np.log((2 + 2) / (10 + 5 - 4))
    assert found[0, 0] == pytest.approx(good / np.sqrt(1 / 8 + 1 / 4))
    bad = np.log((1 + 2) / (15 - 3)) - np.log((7 + 2) / (15 - 9))
    assert found[0, 1] == pytest.approx(bad / np.sqrt(1 / 3 + 1 / 9))
    assert np.allclose(found[0], -found[1])  # of two clusters each is all the others


def test_a_stronger_prior_needs_more_evidence():
    assert (np.abs(log_odds(TABLE, 1000)) < np.abs(log_odds(TABLE, 1))).all()


def test_three_clusters_and_an_empty_one():
    table = np.vstack([TABLE, [0, 0, 0]])
    assert log_odds(table)[2] == pytest.approx(0)  # nothing was seen of it: the prior stands
    assert class_tfidf(table)[2].tolist() == [0, 0, 0]
    assert top_terms(log_odds(table), ["good", "bad", "film"], 3)["cluster"].max() == 1
    third = np.vstack([TABLE, [8, 8, 4]])  # uses words as both others do together
    assert np.abs(log_odds(third)[2]).max() < 1e-9


def test_no_term_is_a_keyword_of_two_clusters():
    names = ["good", "bad", "film"]
    shared = top_terms(TABLE, names, 2)
    assert shared["term"].tolist() == ["good", "film", "bad", "good"]
    assert shared_terms(shared) == pytest.approx(1 / 3)
    for scores in (keep_best(class_tfidf(TABLE)), lead_over_others(class_tfidf(TABLE))):
        single = top_terms(scores, names, 3)
        assert single.groupby("cluster")["term"].agg(list).tolist() == [["good", "film"], ["bad"]]
        assert shared_terms(single) == 0


def test_lead_by_hand():
    scores = np.array([[5.0, 1.0, 2.0], [3.0, 4.0, 2.0], [1.0, 3.5, 0.0]])
    assert lead_over_others(scores).tolist() == [[2, -3, 0], [-2, 0.5, 0], [-4, -0.5, -2]]
    assert lead_over_others(scores[:1]).tolist() == [[5, 1, 2]]


def test_only_positive_scores_make_keywords_and_ties_keep_their_order():
    top = top_terms(np.array([[1.0, 1.0, 0.0, -1.0]]), ["a", "b", "c", "d"], 4)
    assert top["term"].tolist() == ["a", "b"]
    assert top_terms(np.zeros((2, 1)), ["a"], 3).empty
    assert np.isnan(shared_terms(pd.DataFrame({"term": [], "cluster": []})))


def test_row_order_changes_no_score():
    texts, members = ["good film", "bad film", "good plot", "bad"], np.array([0, 1, 0, 1])
    order = [3, 1, 0, 2]
    first, second = count_terms(texts, 1), count_terms([texts[row] for row in order], 1)
    assert first.names == second.names
    for score in (class_tfidf, log_odds):
        one = score(first.texts_by_cluster(members, 2))
        other = score(second.texts_by_cluster(members[order], 2))
        assert np.array_equal(one, other)


def test_stripped_text_keeps_words_that_say_something():
    assert strip_text("It's NOT a good film, 10/10!") == "not good film"
    assert strip_text("the of") == ""


def test_terms_are_ranked_by_three_measures():
    terms, members = count_terms(TEXTS, 1), np.array([1, 1, 0, 0])
    found = rank_terms(terms, members, 2, 1)
    assert list(found) == ["uses", "class TF-IDF", "log-odds"]
    for top in found.values():
        assert top["term"].tolist() == ["bad", "good"]


def test_polarity_by_hand():
    polarity = measure_polarity(TEXTS, LABELS, 2, ["good", "bad"])
    # "good" is in 2 of 2 texts of class 1 and in 1 of 2 others; half a text is added everywhere.
    good = np.log(2.5 / 0.5) - np.log(1.5 / 1.5)
    bad = np.log(2.5 / 0.5) - np.log(0.5 / 2.5)
    listed = pd.DataFrame({"term": ["good", "bad", "good"], "label": [1, 0, 0]})
    assert judge_keywords(polarity, listed, permutations=1)[0] == pytest.approx([good, bad, -good])


def test_three_classes_and_one_without_texts():
    polarity = measure_polarity(TEXTS, LABELS, 3, ["good"])
    assert polarity.shape == (1, 3)
    # No text of class 2: nothing is known of it, against 3 of 4 texts of the others.
    assert polarity.loc["good", 2] == pytest.approx(0 - np.log(3.5 / 1.5))


def test_nothing_to_look_up_is_refused():
    with pytest.raises(UserError, match="no keywords"):
        measure_polarity(TEXTS, LABELS, 2, [])


def keywords(ratios, labels):
    """Terms with given log-odds ratios for class 1."""
    names = [f"t{place}" for place in range(len(ratios))]
    polarity = pd.DataFrame({0: -np.array(ratios), 1: ratios}, index=names)
    return polarity, pd.DataFrame({"term": names, "label": labels})


def test_sides_taken_are_told_from_shuffled_words():
    rng = np.random.default_rng(0)
    labels = np.arange(30) % 2
    telling = keywords(np.where(labels, 1.0, -1.0) + rng.normal(size=30) * 0.3, labels)
    _, shuffled, p = judge_keywords(*telling, permutations=199)
    assert p == 1 / 200
    assert abs(shuffled.mean()) < 0.1
    assert judge_keywords(*keywords(rng.normal(size=30), labels), permutations=199)[-1] > 0.05
    # One strong word among many of no class makes no list polarised.
    one = keywords(np.where(np.arange(30) == 1, 2.4, 0.0), labels)
    assert judge_keywords(*one, permutations=199)[-1] > 0.05


def test_the_wrong_side_is_as_clear_as_the_right_one():
    labels = np.arange(30) % 2
    _, shuffled, p = judge_keywords(
        *keywords(np.where(labels, -1.0, 1.0), labels), permutations=199
    )
    assert p == 1 / 200
    assert shuffled.min() > -1


def test_a_small_test_by_hand():
    # Ratios 1 and -1 of two classes: every shuffle has a mean of +1 or -1, equally far out.
    *_, p = judge_keywords(*keywords([1.0, -1.0], [1, 0]), permutations=50)
    assert p == pytest.approx(1.0, abs=0.1)
