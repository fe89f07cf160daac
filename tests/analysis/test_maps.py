import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.manifold import trustworthiness
from sklearn.metrics import pairwise_distances

from sentigeo.analysis.maps import (
    Map,
    compare_maps,
    compare_seeds,
    draw_map,
    draw_maps,
    estimate_fisher_ratio,
    estimate_variance,
    explained_variance,
    faithfulness,
    largest_perplexity,
    load_maps,
    neighbour_overlap,
    place_between_classes,
    some_rows,
)
from sentigeo.cache import Store
from sentigeo.errors import UserError
from sentigeo.stats import unfold


@pytest.fixture(scope="module")
def groups():
    """Two groups far apart in ten dimensions, and held-out points of both."""
    rng = np.random.default_rng(0)
    labels = np.arange(120) % 2
    vectors = rng.normal(size=(120, 10)).astype(np.float32) + 8 * labels[:, None]
    return vectors[:80], labels[:80], vectors[80:], labels[80:]


def test_pca_is_exact(groups):
    fitted, _, placed, _ = groups
    found = draw_map(fitted, placed, "pca", 0, 10)
    expected = PCA(2, svd_solver="full").fit(fitted)
    for own, other in ((found.fitted, fitted), (found.placed, placed)):
        assert np.allclose(np.abs(own), np.abs(expected.transform(other)), atol=1e-3)


@pytest.mark.parametrize("method", ["pca", "tsne"])
def test_held_out_points_land_beside_their_own_group(groups, method):
    fitted, known, placed, truth = groups
    drawn = draw_map(fitted, placed, method, 0, 10)
    nearest = np.linalg.norm(drawn.placed[:, None] - drawn.fitted[None], axis=2).argmin(axis=1)
    assert (known[nearest] == truth).all()
    other = draw_map(fitted, placed[:3] * 2, method, 0, 10)
    assert np.array_equal(drawn.fitted, other.fitted)  # what is placed does not shape the map


@pytest.mark.filterwarnings("ignore:.*precomputed metric")
def test_umap_is_that_of_umap_learn(groups, monkeypatch):
    monkeypatch.setattr("numba.config.DISABLE_JIT", True)  # compiling takes longer than few points
    from umap import UMAP

    fitted, placed = groups[0][:18], groups[2][:4]
    umap = UMAP(n_neighbors=15, metric="precomputed", random_state=1, n_jobs=1)
    expected = umap.fit_transform(pairwise_distances(fitted))
    drawn = draw_map(fitted, placed, "umap", 1, 5)
    assert np.array_equal(drawn.fitted, expected)
    assert np.array_equal(drawn.placed, umap.transform(pairwise_distances(placed, fitted)))


def test_maps_come_in_the_order_asked_for_and_from_the_store(groups, tmp_path, monkeypatch):
    monkeypatch.setattr("sentigeo.cores.count_processes", lambda: 1)
    fitted, _, placed, _ = groups
    wanted = [("tsne", 1), ("pca", 0), ("tsne", 0)]
    first = load_maps(Store(tmp_path), fitted, placed, wanted, 10)
    assert [(m.method, m.seed) for m in first] == wanted
    assert np.array_equal(first[2].fitted, draw_map(fitted, placed, "tsne", 0, 10).fitted)
    monkeypatch.setattr("sentigeo.analysis.maps.draw_maps", lambda *_: 1 / 0)
    again = load_maps(Store(tmp_path), fitted, placed, wanted, 10)
    assert np.array_equal(first[0].placed, again[0].placed)
    with pytest.raises(ZeroDivisionError):
        load_maps(Store(tmp_path), fitted, placed, wanted, 11)


@pytest.mark.parametrize("method", ["pca", "tsne"])
def test_fewer_points_than_dimensions(method):
    vectors = np.random.default_rng(0).normal(size=(30, 100))
    drawn = draw_map(vectors, vectors[:2], method, 0, 5)
    assert drawn.fitted.shape == (30, 2)
    assert np.isfinite(drawn.fitted).all()
    assert np.isfinite(drawn.placed).all()


@pytest.mark.parametrize(
    ("change", "perplexity", "message"),
    [
        (lambda v: v, 50, "A perplexity of 50 is not possible with 80 points: .* from 1 to 26"),
        (lambda v: v, 0.5, "A perplexity of 0.5 is not possible"),
        (lambda v: v * np.nan, 10, "hold values that are not numbers"),
        (lambda v: v * 0 + 1, 10, "nothing to map: at least two different vectors"),
        (lambda v: v[:1], 10, "nothing to map: at least two different vectors"),
        (lambda v: v[:12], 3, "more than 15 points, not 12"),
    ],
)
def test_what_cannot_be_mapped(groups, change, perplexity, message):
    with pytest.raises(UserError, match=message):
        draw_maps(change(groups[0]), groups[2], [("umap", 0)], perplexity)


@pytest.mark.parametrize("method", ["pca", "tsne"])
def test_few_points_and_nothing_to_place(method):
    vectors = np.random.default_rng(0).normal(size=(5, 8)).astype(np.float32)
    drawn = draw_map(vectors, vectors[:0], method, 0, 1)
    assert np.isfinite(drawn.fitted).all()
    assert drawn.placed.shape == (0, 2)


def test_held_out_points_that_are_no_numbers(groups):
    with pytest.raises(UserError, match="to be placed hold values that are not numbers"):
        draw_maps(groups[0], groups[2] * np.nan, [("pca", 0)], 10)


def test_explained_variance():
    # variances 9, 4 and 1 along three axes at right angles
    signs = np.array([[a, b, c] for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)])
    assert explained_variance(signs * [3.0, 2.0, 1.0]).tolist() == pytest.approx(
        [9 / 14, 4 / 14, 1 / 14]
    )


def test_overlap_of_neighbours():
    line = np.array([[0.0], [1.0], [3.0], [7.0]])
    assert neighbour_overlap(line, 5 * line, 1) == 1
    # nearest: 0-1, 1-0, 2-1, 3-2; with the last two exchanged: 0-1, 1-0, 2-3, 3-1
    assert neighbour_overlap(line, line[[0, 1, 3, 2]], 1) == 0.5


def test_faithfulness(groups):
    vectors = groups[0]
    found = faithfulness(vectors, vectors[:, :2])
    assert found["trustworthiness"] == trustworthiness(vectors, vectors[:, :2], n_neighbors=15)
    assert faithfulness(vectors, vectors * 2) == {"trustworthiness": 1.0, "overlap": 1.0}


def test_maps_are_compared_over_their_seeds(groups):
    vectors = groups[0]
    good, bad = vectors * 2, np.random.default_rng(0).normal(size=(80, 2))
    maps = {"before": [Map("tsne", seed, own, own[:1]) for seed, own in enumerate((good, bad))]}
    found = unfold(compare_maps(maps, {"before": vectors})).set_index("measure").loc["overlap"]
    low = faithfulness(vectors, bad)["overlap"]
    assert (found["low"], found["high"], found["n"]) == (low, 1.0, 2)
    assert found["value"] == pytest.approx((low + 1) / 2)


def test_some_rows_of_many():
    assert some_rows(5, 9).tolist() == [0, 1, 2, 3, 4]
    drawn = some_rows(100, 40)
    assert len(set(drawn)) == 40
    assert sorted(drawn) == drawn.tolist()
    assert 10 < (drawn < 50).sum() < 30  # from everywhere


def test_largest_perplexity_is_possible(groups):
    most = largest_perplexity(30)
    draw_map(groups[0][:30], groups[2][:1], "tsne", 0, most)
    with pytest.raises(UserError, match="not possible with 30 points"):
        draw_maps(groups[0][:30], groups[2][:1], [("tsne", 0)], most + 1)


def test_seeds_are_compared_with_the_first(groups):
    points = groups[0][:, :2]
    maps = {
        "before": [Map("tsne", seed, own, own) for seed, own in enumerate((points, points * 3))]
    }
    found = compare_seeds(maps | {"after": maps["before"][:1]}, "tsne").set_index("vectors")
    assert found.loc["before"].tolist() == [2, 1.0, 1.0]
    assert found.loc["after", "seeds"] == 1
    assert np.isnan(found.loc["after", "least shared"])


def test_seeds_of_maps_of_few_points_are_compared(groups):
    points = groups[0][:12, :2]
    maps = {"before": [Map("tsne", seed, points * (1 + seed), points) for seed in range(2)]}
    found = compare_seeds(maps, "tsne").set_index("vectors")
    assert found.loc["before"].tolist() == [2, 1.0, 1.0]


def test_estimates_of_variance_and_fisher_ratio(groups):
    vectors, labels = groups[:2]
    variance = estimate_variance(vectors, halves=5)
    assert variance.value == pytest.approx(explained_variance(vectors)[:2].sum())
    ratio = estimate_fisher_ratio(vectors[:, 0], labels, resamples=50)
    assert ratio.low < ratio.value < ratio.high


VECTORS = np.array([[0.0, 1.0], [0.0, 3.0], [4.0, 1.0], [4.0, 3.0]])
LABELS = np.array([0, 0, 1, 1])


def test_class_means_lie_at_one_and_minus_one():
    assert place_between_classes(VECTORS, VECTORS, LABELS).tolist() == [-1, -1, 1, 1]
    others = np.array([[2.0, 99.0], [5.0, 0.0]])
    assert place_between_classes(others, VECTORS, LABELS).tolist() == [0, 1.5]
    order = [2, 0, 3, 1]
    assert place_between_classes(others, VECTORS[order], LABELS[order]).tolist() == [0, 1.5]


@pytest.mark.parametrize("labels", [[0, 0, 0, 0], [0, 1, 2, 2]])
def test_direction_needs_two_classes(labels):
    with pytest.raises(UserError, match="exactly two classes"):
        place_between_classes(VECTORS, VECTORS, np.array(labels))


def test_equal_means_have_no_direction():
    with pytest.raises(UserError, match="means are the same"):
        place_between_classes(VECTORS, VECTORS[[0, 1, 0, 1]], LABELS)


def test_fisher_ratio_by_hand():
    # means 1 and 6, sums of squares 10 and 40 of ten each
    positions = np.array([0.0, 2.0] * 5 + [4.0, 8.0] * 5)
    found = estimate_fisher_ratio(positions, np.repeat([0, 1], 10), resamples=20)
    assert found.value == pytest.approx((6 - 1) ** 2 / (10 / 9 + 40 / 9))
