import numpy as np
import pytest
from helpers import labelled_cloud
from sklearn.metrics import precision_recall_fscore_support
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler, normalize

from sentigeo.analysis.cosines import count_pairs, mean_cosine
from sentigeo.analysis.similarity import (
    METHODS,
    balance_hits,
    best_threshold,
    classify_by_cosine,
    cosine_by_length,
    draw_shots,
    few_shot_hits,
    judge_threshold,
    learn_transforms,
    learning_curve,
    length_effect,
    nearest_rows,
    threshold_curve,
    top_cosines,
)
from sentigeo.errors import UserError
from sentigeo.stats import unfold


@pytest.fixture(scope="module")
def groups():
    return labelled_cloud(240, 6, apart=2.5)


def test_nearest_text_and_class_mean_are_those_of_scikit_learn(groups):
    vectors, labels = groups
    shots, new = vectors[:30], vectors[30:]
    units = normalize(shots)
    one = KNeighborsClassifier(1, metric="cosine").fit(shots, labels[:30])
    assert np.array_equal(
        classify_by_cosine(shots, labels[:30], new, "nearest text"), one.predict(new)
    )
    means = normalize([units[labels[:30] == number].mean(axis=0) for number in range(3)])
    nearest = KNeighborsClassifier(1, metric="cosine").fit(means, np.arange(3))
    found = classify_by_cosine(shots, labels[:30], new, "nearest class mean")
    assert np.array_equal(found, nearest.predict(new))


def test_length_of_a_vector_does_not_matter(groups):
    vectors, labels = groups
    for method in METHODS:
        first = classify_by_cosine(vectors[:30], labels[:30], vectors[30:], method)
        second = classify_by_cosine(vectors[:30] * 7, labels[:30], vectors[30:] * 0.1, method)
        assert np.array_equal(first, second)


def test_shots_are_balanced_and_nested(groups):
    labels = groups[1]
    small, large = draw_shots(labels, 2, 5), draw_shots(labels, 8, 5)
    assert np.bincount(labels[large]).tolist() == [8, 8, 8]
    assert set(small) <= set(large)
    assert set(draw_shots(labels, 8, 6)) != set(large)
    with pytest.raises(UserError, match="200 shots are not possible"):
        draw_shots(labels, 200, 0)


def test_more_shots_classify_better(groups):
    vectors, labels = groups
    hits = few_shot_hits(
        vectors[:120], labels[:120], vectors[120:], labels[120:], counts=[1, 16], draws=6
    )
    assert hits["nearest text", 1].shape == (6, 120)
    curve = unfold(learning_curve(hits, 100)).set_index(["method", "shots"])
    for method in METHODS:
        assert curve.loc[(method, 16), "value"] > curve.loc[(method, 1), "value"]
        row = curve.loc[(method, 1)]
        assert row["bottom"] <= row["value"] <= row["top"]


def test_nearest_rows_come_in_order():
    rows, cosines = nearest_rows(np.array([1.0, 0]), np.array([[0.0, 1], [2, 0], [1, 1]]), 2)
    assert rows.tolist() == [1, 2]
    assert cosines == pytest.approx([1, 0.5**0.5])


def test_every_class_counts_as_much():
    truth = np.array([0, 0, 0, 2])
    balanced = balance_hits(np.array([[True, True, True, False]]), truth)
    assert balanced.mean() == pytest.approx(0.5)
    assert balance_hits(np.ones((1, 4), bool), truth).mean() == pytest.approx(1)


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
