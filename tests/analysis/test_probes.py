import numpy as np
import pytest
from helpers import store_vectors
from scipy.stats import ortho_group
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import cosine_similarity
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from sentigeo.analysis.maps import draw_map
from sentigeo.analysis.probes import (
    STRENGTHS,
    WAYS,
    best_probe,
    compare_layers,
    fit_probe,
    linear_cka,
    pick_long_rows,
    probe_hits,
    probe_kinds,
    read_long_texts,
    row_cosines,
    score_readings,
    shuffled_cka,
    svm_hits,
)
from sentigeo.cache import Store
from sentigeo.encoder.encoder import load_encoder
from sentigeo.encoder.extract import embed_texts
from sentigeo.errors import UserError
from sentigeo.stats import unfold


@pytest.fixture(scope="module")
def noisy():
    rng = np.random.default_rng(0)
    labels = np.arange(300) % 2
    return rng.normal(size=(300, 40)) * 3 + labels[:, None] * 0.8, labels


def test_validation_chooses_the_strength(noisy):
    vectors, labels = noisy
    probe = fit_probe(vectors, labels, (np.arange(100), np.arange(100, 200)))
    scaler = StandardScaler().fit(vectors[:100])
    train, validation, test = (
        scaler.transform(vectors[part]) for part in (slice(100), slice(100, 200), slice(200, 300))
    )
    models = [LogisticRegression(C=c, max_iter=1000).fit(train, labels[:100]) for c in STRENGTHS]
    best = max(models, key=lambda model: model.score(validation, labels[100:200]))
    assert (probe.predict(vectors[200:]) == best.predict(test)).all()


def test_validation_chooses_the_layer(noisy, tmp_path):
    vectors, labels = noisy
    mirrored = vectors.copy()
    mirrored[100:200] *= -1  # a probe of this layer is right in training and wrong in validation
    layers = {(0, "mean"): np.zeros_like(vectors), (1, "mean"): vectors, (2, "mean"): mirrored}
    parts = np.arange(100), np.arange(100, 200), np.arange(200, 300)
    layer, probe = best_probe(store_vectors(Store(tmp_path), layers), "mean", labels, parts)
    assert layer == 1
    hits = probe.predict(vectors[200:].astype(np.float32)) == labels[200:]
    assert hits.tolist() == probe_hits(vectors.astype(np.float32), labels, parts).tolist()


def test_hits_are_those_of_the_test_rows(noisy):
    vectors, labels = noisy
    rows = np.random.default_rng(1).permutation(300)
    parts = rows[:100], rows[100:200], rows[200:]
    hits = probe_hits(vectors, labels, parts)
    assert hits.shape == (100,)
    assert 0.6 < hits.mean() < 1
    upside_down = labels.copy()
    upside_down[rows[200:]] = 1 - labels[rows[200:]]  # test labels take no part in the fit
    other = probe_hits(vectors, upside_down, parts)
    assert (other == ~hits).all()


def test_every_kind_has_its_probe(noisy, tmp_path):
    vectors, labels = noisy
    stored = store_vectors(Store(tmp_path), {(0, "cls"): vectors, (1, "mean"): -vectors})
    parts = [np.arange(100), np.arange(100, 200), np.arange(200, 300)]
    found = probe_kinds(stored, labels, parts)
    assert list(found) == [(0, "cls"), (1, "mean")]
    assert found[0, "cls"].mean() == probe_hits(vectors, labels, parts).mean()


def test_svm_finds_what_is_not_linear():
    rng = np.random.default_rng(0)
    points = rng.normal(size=(400, 2))
    labels = (np.linalg.norm(points, axis=1) > 1).astype(int)
    assert svm_hits(points[:300], labels[:300], points[300:], labels[300:]).mean() > 0.9


def test_accuracy_on_a_map_is_that_of_scikit_learns_svm(noisy):
    vectors, labels = noisy
    drawn = draw_map(vectors[:200], vectors[200:], "pca", 0, 10)
    hits = svm_hits(drawn.fitted, labels[:200], drawn.placed, labels[200:])
    scaler = StandardScaler().fit(drawn.fitted)
    machine = SVC(C=1, kernel="rbf").fit(scaler.transform(drawn.fitted), labels[:200])
    assert hits.mean() == machine.score(scaler.transform(drawn.placed), labels[200:])
    assert 0.6 < hits.mean() < 1


def fit_on_all(train, labels, *_):
    return fit_probe(train, labels, [np.arange(4)] * 2)


@pytest.mark.parametrize("fit", [svm_hits, fit_on_all])
def test_bad_vectors(fit):
    with pytest.raises(UserError, match="at least two classes"):
        fit(np.eye(4), np.zeros(4), np.eye(4), np.zeros(4))
    vectors, labels = np.full((4, 2), np.nan), np.array([0, 1, 0, 1])
    with pytest.raises(UserError, match="not numbers"):
        fit(vectors, labels, vectors, labels)


@pytest.fixture(scope="module")
def tiny(tiny_bert):
    return load_encoder(str(tiny_bert))  # reads 64 tokens


def test_three_ways_are_what_they_are_called(tiny, tmp_path):
    texts = ["good " * 40 + "bad " * 60, "fine " * 200]
    found = read_long_texts(texts, tiny, ("mean", "cls"), Store(tmp_path))
    for pooling in ("mean", "cls"):
        expected = {
            "beginning": embed_texts(texts, tiny, pooling=pooling),
            "first and last": embed_texts(texts, tiny, pooling=pooling, truncation="first+last"),
            "windows": embed_texts(texts, tiny, pooling=pooling, window=64),
        }
        for way in WAYS:
            assert np.allclose(found[pooling, way], expected[way], atol=1e-5)


def test_long_rows_are_drawn_from_those_beyond_the_limit():
    counts = np.array([5, 20, 30, 10, 40, 50])
    assert pick_long_rows(counts, np.arange(5), 10, 99).tolist() == [1, 2, 4]
    drawn = pick_long_rows(counts, np.arange(6), 10, 2)
    assert len(drawn) == 2
    assert set(drawn) < {1, 2, 4, 5}


def test_readings_are_scored_by_a_probe_of_short_texts(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 2
    known = (rng.normal(size=(60, 3)) + 6 * labels[:, None]).astype(np.float32)
    short = store_vectors(Store(tmp_path), {(0, "mean"): known})
    long = {
        ("mean", way): np.full((2, 3), level) for way, level in zip(WAYS, (0, 6, 0), strict=True)
    }
    hits = score_readings(long, np.array([0, 1]), short, labels, [np.arange(40), np.arange(40, 60)])
    assert hits["mean", "beginning"].tolist() == [True, False]
    assert hits["mean", "first and last"].tolist() == [False, True]
    assert hits["mean", "windows"].tolist() == [True, False]


@pytest.fixture
def vectors():
    return np.random.default_rng(0).normal(size=(50, 6))


def test_row_cosines_are_the_diagonal(vectors):
    other = vectors[::-1] + 1
    assert np.allclose(row_cosines(vectors, other), np.diag(cosine_similarity(vectors, other)))


def test_cka_by_hand():
    # centred: (-1, 0, 1) and (-1, 2, -1): no linear connection; with itself: 1
    first, second = np.array([[0.0], [1.0], [2.0]]), np.array([[0.0], [3.0], [0.0]])
    assert linear_cka(first, second) == pytest.approx(0)
    assert linear_cka(first, 3 * first + 5) == pytest.approx(1)


def test_cka_is_the_alignment_of_centred_kernels(vectors):
    other = vectors[:, :4] ** 2
    centre = np.eye(50) - 1 / 50
    kernels = [centre @ (v @ v.T) @ centre for v in (vectors, other)]
    expected = (kernels[0] * kernels[1]).sum() / np.prod([np.linalg.norm(k) for k in kernels])
    assert linear_cka(vectors, other) == pytest.approx(expected)


def test_cka_does_not_see_rotations(vectors):
    rotated = vectors @ ortho_group.rvs(6, random_state=0) * 7 - 3
    assert linear_cka(vectors, rotated) == pytest.approx(1)


def test_sets_without_variance_have_no_alignment(vectors):
    constant = np.full((50, 384), 0.1, np.float32)
    assert np.isnan(linear_cka(constant, constant * 2))
    assert np.isnan(linear_cka(vectors, constant))


def test_unrelated_sets_are_as_alike_as_the_docstring_says():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(900, 100))
    by_chance = pytest.approx(100 / (900 + 100), abs=0.01)
    assert linear_cka(vectors, rng.normal(size=(900, 100))) == by_chance
    assert shuffled_cka(vectors, vectors) == by_chance


def test_layers_that_did_not_move_are_alike(tmp_path, vectors):
    stored = store_vectors(Store(tmp_path), {(0, "cls"): vectors, (1, "cls"): vectors + 1})
    found = unfold(compare_layers(stored, stored, np.arange(40), 100))
    assert found["layer"].tolist() == [0, 0, 1, 1]
    assert found["value"].to_numpy() == pytest.approx(1)
    assert (found["n"] == 40).all()
