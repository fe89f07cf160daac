import tracemalloc

import numpy as np
import pytest
from helpers import labelled_cloud
from sklearn.metrics import precision_recall_fscore_support, roc_auc_score
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.preprocessing import StandardScaler

from sentigeo.analysis.cosines import (
    best_threshold,
    cosine_by_length,
    count_pairs,
    describe_dimensions,
    describe_pairs,
    estimate_auc,
    estimate_auc_change,
    estimate_mean_gap,
    judge_threshold,
    learn_transforms,
    length_effect,
    mean_cosine,
    share_of_dimensions,
    threshold_curve,
    top_cosines,
    unit_rows,
)
from sentigeo.errors import UserError
from sentigeo.stats import unfold


@pytest.fixture(scope="module")
def texts():
    return labelled_cloud(150, 8, apart=1)


def all_pairs(vectors, labels):
    """Cosine, and whether both are of one class, of every pair; by scikit-learn."""
    rows, columns = np.triu_indices(len(labels), k=1)
    return cosine_similarity(vectors)[rows, columns], labels[rows] == labels[columns], labels[rows]


def test_means_deviations_and_auc_are_those_of_scikit_learn(texts):
    cosines, same, first = all_pairs(*texts)
    found = count_pairs(*texts, 3)
    means, deviations = found.moments()
    for number in range(3):
        own = cosines[same & (first == number)]
        assert means[number] == pytest.approx(own.mean(), abs=1e-6)
        assert deviations[number] == pytest.approx(own.std(), abs=1e-6)
        assert found.sizes[number] == len(own)
    assert means[3] == pytest.approx(cosines[~same].mean(), abs=1e-6)
    assert found.auc() == pytest.approx(roc_auc_score(same, cosines), abs=1e-4)
    assert mean_cosine(texts[0]) == pytest.approx(cosines.mean(), abs=1e-6)


def test_blocks_change_nothing(texts, monkeypatch):
    whole = count_pairs(*texts, 3)
    monkeypatch.setattr("sentigeo.analysis.cosines.BLOCK", 7)
    parts = count_pairs(*texts, 3)
    assert np.abs(whole.within - parts.within).sum() <= 4  # a product may round across a border
    assert whole.moments()[0] == pytest.approx(parts.moments()[0], abs=1e-6)
    assert (whole.sizes == parts.sizes).all()


def test_row_order_changes_nothing(texts):
    vectors, labels = texts
    order = np.random.default_rng(1).permutation(len(labels))
    first, second = count_pairs(vectors, labels, 3), count_pairs(vectors[order], labels[order], 3)
    assert first.auc() == pytest.approx(second.auc(), abs=1e-5)


def test_normalising_leaves_cosines_alone(texts):
    vectors = texts[0] * np.geomspace(0.01, 100, 150)[:, None]
    assert np.allclose(
        cosine_similarity(unit_rows(vectors)), cosine_similarity(texts[0]), atol=1e-6
    )
    assert np.linalg.norm(unit_rows(vectors), axis=1) == pytest.approx(1, abs=1e-6)


def test_parts_of_dimensions_sum_to_the_mean(texts):
    parts = share_of_dimensions(texts[0])
    assert parts.shape == (8,)
    assert parts.sum() == pytest.approx(mean_cosine(texts[0]))
    pushed = texts[0] + np.array([50.0] + [0.0] * 7)
    assert share_of_dimensions(pushed).argmax() == 0


def test_a_zero_vector_has_cosine_zero_and_nan_is_refused():
    vectors = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
    assert unit_rows(vectors).tolist() == [[0, 0], [1, 0], [0, 1]]
    with pytest.raises(UserError, match="not numbers"):
        count_pairs(np.array([[np.nan, 1.0]]), np.array([0]), 1)


def test_one_class_and_one_text_have_no_auc():
    vectors = np.eye(3)
    assert np.isnan(count_pairs(vectors, np.zeros(3, int), 1).auc())
    alone = count_pairs(vectors[:1], np.array([0]), 2)
    assert np.isnan(alone.auc())
    assert np.isnan(alone.moments()).all()
    assert np.isnan(mean_cosine(vectors[:1]))


def test_estimates_hold_their_value(texts):
    vectors, labels = texts
    auc = estimate_auc(vectors, labels, 3)
    assert auc.low < auc.value < auc.high
    assert auc.value == count_pairs(vectors, labels, 3).auc()
    assert estimate_auc_change(vectors, vectors, labels, 3).high == 0
    better = estimate_auc_change(vectors + 3 * np.eye(8)[labels], vectors, labels, 3)
    assert better.low > 0
    means, deviations = count_pairs(vectors, labels, 3).moments()
    found = describe_pairs(vectors, labels, [*"abc", "-"])
    assert [mean.value for mean in found["mean"]] == pytest.approx(means)
    assert [one.value for one in found["standard deviation"]] == pytest.approx(deviations)
    assert all(
        one.low < one.value < one.high for one in [*found["mean"], *found["standard deviation"]]
    )
    gap = estimate_mean_gap(vectors, labels, (2, 0))
    assert gap.value == pytest.approx(means[2] - means[0], abs=1e-6)


def test_memory_stays_far_below_that_of_all_pairs():
    rng = np.random.default_rng(0)
    vectors, labels = rng.normal(size=(6000, 16)).astype(np.float32), rng.integers(2, size=6000)
    tracemalloc.start()
    counts = count_pairs(vectors, labels, 2)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert counts.sizes.sum() == 6000 * 5999 // 2
    assert peak < 6000**2 * 8 / 3


def test_few_dimensions_make_up_the_mean_cosine(texts):
    found = describe_dimensions(texts[0] + np.array([50.0] + [0.0] * 7))
    assert found["mean cosine"] == pytest.approx(mean_cosine(texts[0] + 50 * np.eye(8)[0]))
    assert found["largest three"] >= found["largest dimension"] > 0.9
    assert found["dimensions for half of it"] == 1


def test_cosines_that_are_all_alike_are_still_told_apart(texts):
    vectors, labels = 1 + 1e-3 * texts[0].astype(np.float64), texts[1]
    cosines, same, _ = all_pairs(vectors, labels)
    assert cosines.min() > 0.9999
    found = count_pairs(vectors, labels, 3)
    assert found.auc() == pytest.approx(roc_auc_score(same, cosines), abs=1e-3)
    assert found.moments()[1][3] == pytest.approx(cosines[~same].std(), rel=1e-3)


def test_a_class_of_two_texts_has_no_interval(texts):
    vectors, labels = texts[0][:40], np.array([1, 1] + [0] * 38)
    own = describe_pairs(vectors, labels, ["many", "two", "between"])["mean"][1]
    assert np.isfinite(own.value)
    assert np.isnan(own.low)


def test_equal_vectors_are_ties(texts):
    vectors = np.ones((150, 8)) + 1e-12 * texts[0]
    assert count_pairs(vectors, texts[1], 3).auc() == 0.5


@pytest.fixture(scope="module")
def train():
    rng = np.random.default_rng(0)
    return (rng.normal(size=(300, 6)) @ rng.normal(size=(6, 6)) + 5).astype(np.float32)


def test_whitening_gives_identity_covariance(train):
    found = learn_transforms(train)["whitened"](train)
    assert np.cov(found, rowvar=False) == pytest.approx(np.eye(6), abs=1e-3)
    assert found.mean(axis=0) == pytest.approx(0, abs=1e-3)


def test_fewer_texts_than_dimensions_are_whitened_within_their_span():
    vectors = np.random.default_rng(0).normal(size=(5, 20))
    found = learn_transforms(vectors)["whitened"](vectors)
    assert found.shape == (5, 4)
    assert np.cov(found, rowvar=False) == pytest.approx(np.eye(4), abs=1e-6)


def test_each_treatment_is_what_it_is_called(train):
    found = {name: transform(train) for name, transform in learn_transforms(train).items()}
    assert np.array_equal(found["raw"], train)
    assert np.linalg.norm(found["normalised"], axis=1) == pytest.approx(1, abs=1e-6)
    assert found["centred"] == pytest.approx(train - train.mean(axis=0), abs=1e-4)
    assert found["standardised"] == pytest.approx(StandardScaler().fit_transform(train), abs=1e-3)
    removed = np.linalg.svd(found["top 3 removed"], compute_uv=False)
    assert removed[3:] == pytest.approx(0, abs=1e-2)
    assert mean_cosine(train) > 0.5 > abs(mean_cosine(found["centred"])) * 10


def test_only_training_texts_are_learned_from(train):
    found = learn_transforms(train)["centred"]
    assert found(train[:1] + 100) == pytest.approx(train[:1] + 100 - train.mean(axis=0), abs=1e-3)


def test_a_constant_dimension_stays_finite(train):
    flat = np.concatenate([train, np.ones((300, 1), np.float32)], axis=1)
    for name, transform in learn_transforms(flat).items():
        assert np.isfinite(transform(flat)).all(), name


@pytest.mark.parametrize("vectors", [np.ones((1, 3)), np.full((4, 3), np.nan)])
def test_too_little_to_learn_from(vectors):
    with pytest.raises(UserError, match="two vectors of numbers"):
        learn_transforms(vectors)


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


def test_thresholds_are_those_of_scikit_learn(texts):
    vectors, labels = texts
    cosines, same, _ = all_pairs(vectors, labels)
    threshold = float(np.quantile(cosines, 0.7))
    judged = judge_threshold(vectors, labels, 3, threshold)
    right = precision_recall_fscore_support(same, cosines > threshold, average="binary")
    for name, value in zip(("precision", "recall", "f1"), right[:3], strict=True):
        assert judged[name].value == pytest.approx(value, abs=1e-3)
        assert judged[name].low < judged[name].value < judged[name].high
    assert np.isnan(judge_threshold(np.eye(4), np.array([0, 0, 1, 1]), 2, 1.0)["f1"].low)


def test_top_cosines(texts):
    found = top_cosines(count_pairs(*texts, 3), 0.1)
    assert found == pytest.approx(np.quantile(all_pairs(*texts)[0], 0.9), abs=1e-3)


def test_cosines_that_follow_length_are_found_and_others_not():
    rng = np.random.default_rng(0)
    lengths = rng.integers(20, 500, 400)
    noise = rng.normal(size=(400, 20))
    none = length_effect(noise, lengths)
    assert none.low < 0 < none.high
    shared = noise + lengths[:, None] / 60  # long texts have more in common
    grows = length_effect(shared, lengths)
    assert grows.low > 0.5
    parts = cosine_by_length(shared, lengths)
    assert parts["words"].is_monotonic_increasing
    assert unfold(parts)["value"].is_monotonic_increasing
    assert unfold(parts)["n"].sum() == 400


def test_equally_long_texts_and_very_few_have_no_effect_to_measure():
    vectors = np.random.default_rng(0).normal(size=(30, 4))
    assert np.isnan(length_effect(vectors, np.full(30, 7)).value)
    assert np.isnan(length_effect(vectors[:3], np.arange(3)).low)
    assert len(cosine_by_length(vectors[:3], np.arange(3))) == 3
