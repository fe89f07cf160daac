import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from sentigeo.analysis.cosine_remedies import learn_transforms
from sentigeo.analysis.cosines import mean_cosine
from sentigeo.errors import UserError


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
