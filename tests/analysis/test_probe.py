import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from sentigeo.analysis.probes import (
    STRENGTHS,
    fit_probe,
    fit_svm,
    probe_hits,
    probe_kinds,
    svm_hits,
)
from sentigeo.cache import Store
from sentigeo.encoder.vectors import Vectors
from sentigeo.errors import UserError
from sentigeo.files import save_arrays


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(0)
    labels = np.arange(300) % 2
    return rng.normal(size=(300, 40)) * 3 + labels[:, None] * 0.8, labels


def test_validation_chooses_the_strength(noisy):
    vectors, labels = noisy
    probe = fit_probe(vectors[:100], labels[:100], vectors[100:200], labels[100:200])
    scaler = StandardScaler().fit(vectors[:100])
    train, validation, test = (
        scaler.transform(vectors[part]) for part in (slice(100), slice(100, 200), slice(200, 300))
    )
    models = [LogisticRegression(C=c, max_iter=1000).fit(train, labels[:100]) for c in STRENGTHS]
    best = max(models, key=lambda model: model.score(validation, labels[100:200]))
    assert (probe.predict(vectors[200:]) == best.predict(test)).all()


def test_hits_are_those_of_the_test_rows(noisy):
    vectors, labels = noisy
    rows = np.random.default_rng(1).permutation(300)
    hits = probe_hits(vectors, labels, rows[:100], rows[100:200], rows[200:])
    assert hits.shape == (100,)
    assert 0.6 < hits.mean() < 1
    upside_down = labels.copy()
    upside_down[rows[200:]] = 1 - labels[rows[200:]]  # test labels take no part in the fit
    other = probe_hits(vectors, upside_down, rows[:100], rows[100:200], rows[200:])
    assert (other == ~hits).all()


def test_every_kind_has_its_probe(noisy, tmp_path):
    vectors, labels = noisy
    arrays = {"rows": np.arange(300), "vectors": np.stack([vectors, -vectors]).astype(np.float32)}
    shard = Store(tmp_path).put("vectors", {}, lambda part: save_arrays(part, arrays))
    stored = Vectors(300, 1, ((0, "cls"), (1, "mean")), (shard,))
    parts = [np.arange(100), np.arange(100, 200), np.arange(200, 300)]
    found = probe_kinds(stored, labels, parts)
    assert list(found) == [(0, "cls"), (1, "mean")]
    assert found[0, "cls"].mean() == probe_hits(vectors, labels, *parts).mean()


def test_svm_hits(noisy):
    vectors, labels = noisy
    expected = fit_svm(vectors[:200], labels[:200]).predict(vectors[200:]) == labels[200:]
    assert (svm_hits(vectors[:200], labels[:200], vectors[200:], labels[200:]) == expected).all()


def test_svm_finds_what_is_not_linear():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(400, 2))
    labels = (np.linalg.norm(points, axis=1) > 1).astype(int)
    assert (fit_svm(points[:300], labels[:300]).predict(points[300:]) == labels[300:]).mean() > 0.9


@pytest.mark.parametrize("fit", [fit_svm, lambda v, y: fit_probe(v, y, v, y)])
def test_bad_vectors(fit):
    with pytest.raises(UserError, match="at least two classes"):
        fit(np.eye(4), np.zeros(4))
    with pytest.raises(UserError, match="not numbers"):
        fit(np.full((4, 2), np.nan), np.array([0, 1, 0, 1]))
