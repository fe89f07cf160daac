from itertools import permutations

import numpy as np
import pytest
from helpers import store_corpus, store_vectors
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from sentigeo.analysis.clusters import (
    align_clusters,
    cluster_corpus,
    compare_starts,
    find_clusters,
    load_clusters,
    match_clusters,
    name_clusters,
    pick_border,
    pick_typical,
    rename_clusters,
)
from sentigeo.cache import Store
from sentigeo.encoder.corpus import CorpusVectors
from sentigeo.errors import UserError


def best_agreement(labels, clusters):
    """The most rows that any one-to-one naming of clusters can get right, by trying all."""
    classes, own = sorted(set(labels)), sorted(set(clusters))
    names = classes + [-1] * max(0, len(own) - len(classes))
    return max(
        sum(dict(zip(own, order, strict=False))[c] == label
            for label, c in zip(labels, clusters, strict=True))
        for order in permutations(names, len(own))
    )  # fmt: skip


@pytest.mark.parametrize(("classes", "k"), [(2, 2), (3, 3), (4, 2), (2, 4), (4, 4), (1, 3), (3, 1)])
def test_alignment_is_as_good_as_the_best_of_all_permutations(classes, k):
    rng = np.random.default_rng(classes * 10 + k)
    for _ in range(20):
        labels, clusters = rng.integers(classes, size=25), rng.integers(k, size=25)
        found = align_clusters(labels, clusters)
        assert (found == labels).sum() == best_agreement(labels.tolist(), clusters.tolist())


def test_alignment_by_hand():
    labels = [0, 0, 0, 1, 1, 1]
    assert align_clusters(labels, [7, 7, 3, 3, 3, 3]).tolist() == [0, 0, 1, 1, 1, 1]
    # Cluster 5 holds one row of each class; both classes are taken by larger clusters.
    assert align_clusters(labels, [7, 7, 5, 3, 3, 5]).tolist() == [0, 0, -1, 1, 1, -1]
    assert match_clusters(labels, [7, 7, 5, 3, 3, 5]) == {7: 0, 5: -1, 3: 1}


def test_alignment_does_not_depend_on_row_order_or_names():
    rng = np.random.default_rng(0)
    labels, clusters = rng.integers(3, size=50), rng.integers(4, size=50)
    order = rng.permutation(50)
    found = align_clusters(labels, clusters)
    assert np.array_equal(align_clusters(labels[order], clusters[order]), found[order])
    assert np.array_equal(align_clusters(labels, np.array([30, 10, 20, 5])[clusters]), found)


def test_noise_is_no_cluster():
    assert align_clusters([0, 0, 1, 1], [-1, 4, -1, 2]).tolist() == [-1, 0, -1, 1]
    assert align_clusters([0, 1], [-1, -1]).tolist() == [-1, -1]


@pytest.mark.parametrize(("labels", "clusters"), [([0, 1], [0]), ([], []), ([[0]], [[0]])])
def test_alignment_refuses_what_does_not_match(labels, clusters):
    with pytest.raises(UserError, match="of one length"):
        align_clusters(labels, clusters)


def test_names_from_other_rows():
    assert rename_clusters([1, 0, 2], {0: 1, 1: 0}).tolist() == [0, 1, -1]


def test_clusters_are_those_of_scikit_learn_numbered_by_size(three_groups):
    vectors, labels = three_groups
    found = find_clusters(vectors, 3)
    expected = KMeans(3, n_init=10, random_state=0).fit(vectors)
    assert adjusted_rand_score(found.members, expected.labels_) == 1
    assert np.bincount(found.members).tolist() == [30, 20, 10]
    assert found.inertia == pytest.approx(expected.inertia_, rel=1e-5)
    assert np.allclose(found.centroids[0], vectors[labels == 2].mean(axis=0), atol=1e-4)
    assert np.array_equal(found.assign(vectors), found.members)


def test_row_order_changes_nothing():
    vectors = np.random.default_rng(1).normal(size=(80, 6)).astype(np.float32)  # no groups at all
    order = np.random.default_rng(2).permutation(80)
    first, second = find_clusters(vectors, 4), find_clusters(vectors[order], 4)
    assert np.array_equal(first.members[order], second.members)
    assert np.array_equal(first.centroids, second.centroids)


def test_one_cluster_and_as_many_as_points():
    vectors = np.array([[0.0], [1.0], [5.0]])
    assert find_clusters(vectors, 1).members.tolist() == [0, 0, 0]
    assert sorted(find_clusters(vectors, 3).members.tolist()) == [0, 1, 2]
    assert find_clusters(vectors, 3).inertia == 0


@pytest.mark.parametrize(
    ("vectors", "k", "message"),
    [
        (np.eye(3), 4, "choose k from 1 to 3"),
        (np.eye(3), 0, "choose k from 1 to 3"),
        (np.ones((5, 2)), 2, "there are 1 different vectors"),
        (np.array([[np.nan, 1.0]]), 1, "not numbers"),
        (np.empty((0, 3)), 1, "no vectors"),
    ],
)
def test_impossible_clusters_are_refused(vectors, k, message):
    with pytest.raises(UserError, match=message):
        find_clusters(vectors, k)


def test_identical_points_are_one_cluster():
    assert find_clusters(np.ones((5, 2)), 1).members.tolist() == [0] * 5


def test_starts_agree_where_there_are_groups_and_not_where_there_are_none(three_groups):
    assert compare_starts(three_groups[0][:50], 2, range(4)).tolist() == [1.0] * 6
    noise = np.random.default_rng(0).normal(size=(200, 20))
    assert compare_starts(noise, 4, range(4)).mean() < 0.9


def test_typical_and_border_rows():
    distances = np.array([[1.0, 9.0], [0.5, 9.0], [4.0, 4.5], [9.0, 2.0]])
    members = np.array([0, 0, 0, 1])
    typical = pick_typical(distances, members, 2)
    assert {c: rows.tolist() for c, rows in typical.items()} == {0: [1, 0], 1: [3]}
    assert [found.tolist() for found in pick_border(distances, 2)] == [[2, 3], [0.5, 7]]
    assert pick_border(distances, 4)[1].tolist() == [0.5, 7, 8, 8.5]
    assert [found.tolist() for found in pick_border(distances[:, :1], 2)] == [[], []]
    assert pick_typical(distances, np.zeros(4, int), 2)[1].tolist() == []  # an empty cluster


def cluster(folder, vectors, labels, parts, k=0):
    store = Store(folder)
    corpus = store_corpus(store, ["x"] * len(labels), labels, parts, ["bad", "good"])
    own = store_vectors(store, {(0, "cls"): vectors})
    return cluster_corpus(CorpusVectors(corpus, own, own, {}), k, store)


def test_test_texts_go_to_clusters_of_training_texts(tmp_path):
    vectors = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [4.9], [0.0]])
    parts = ["train"] * 5 + ["test"] * 2
    found = cluster(tmp_path, vectors, [1, 1, 1, 0, 0, 1, 1], parts)["after"]
    assert found.names == ["cluster 1 (good)", "cluster 2 (bad)"]
    assert found.members.tolist() == [1, 0]
    assert found.answers.tolist() == [0, 1]  # the label of a test text changes nothing
    assert found.by_class == [1, 0]


def test_more_clusters_than_classes_leave_one_without_a_class(tmp_path):
    vectors = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [9.0], [9.0]])
    labels, parts = [1, 1, 1, 0, 0, 0, 1], ["train"] * 6 + ["test"]
    found = cluster(tmp_path, vectors, labels, parts, 3)["before"]
    assert found.names == ["cluster 1 (good)", "cluster 2 (bad)", "cluster 3 (no class)"]
    assert found.answers.tolist() == [-1]
    assert found.by_class == [1, 0, 2]


def test_clusters_come_from_the_store(tmp_path, three_groups):
    store, vectors = Store(tmp_path), three_groups[0]
    found, again = load_clusters(store, vectors, 3), load_clusters(store, vectors, 3)
    fresh = find_clusters(vectors, 3)
    for own in (found, again):
        assert np.array_equal(own.centroids, fresh.centroids)
        assert np.array_equal(own.members, fresh.members)
        assert own.inertia == fresh.inertia
    assert len(list((tmp_path / "clusters").iterdir())) == 1
    load_clusters(store, vectors, 2)
    assert len(list((tmp_path / "clusters").iterdir())) == 2


def test_new_vectors_join_the_clusters_of_known_ones():
    known = find_clusters(np.array([[0.0], [0.1], [0.2], [9.0], [9.1]]), 2)
    labels = np.array([1, 1, 0, 0, 0])
    found = name_clusters(known, np.array([[8.0], [1.0]]), labels, ["a", "b"])
    assert found.names == ["cluster 1 (b)", "cluster 2 (a)"]
    assert found.members.tolist() == [1, 0]
    assert found.answers.tolist() == [0, 1]
