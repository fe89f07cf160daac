import numpy as np
import pytest
from scipy.stats import ortho_group
from sklearn.metrics.pairwise import cosine_similarity

from sentigeo.analysis.probes import compare_layers, linear_cka, row_cosines, shuffled_cka
from sentigeo.cache import Store
from sentigeo.encoder.vectors import Vectors
from sentigeo.files import save_arrays


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
    arrays = {"rows": np.arange(50), "vectors": np.stack([vectors, vectors + 1])}
    shard = Store(tmp_path).put("vectors", {}, lambda part: save_arrays(part, arrays))
    before = Vectors(50, 1, ((0, "cls"), (1, "cls")), (shard,))
    found = compare_layers(before, before, np.arange(40), 100)
    assert found["layer"].tolist() == [0, 0, 1, 1]
    assert found["value"].to_numpy() == pytest.approx(1)
    assert (found["n"] == 40).all()
