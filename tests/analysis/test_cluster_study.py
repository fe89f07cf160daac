import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import (
    adjusted_mutual_info_score,
    adjusted_rand_score,
    confusion_matrix,
    silhouette_score,
    v_measure_score,
)

from sentigeo.analysis.cluster_study import (
    chance_agreement,
    choose_k,
    compare_algorithms,
    compare_answers,
    confusion_table,
    describe_study,
    dip_depth,
    estimate_agreement,
    estimate_dip,
    find_other_clusters,
    matched_by_chance,
    pick_stable,
    possible_numbers,
    study_k,
    study_stability,
)
from sentigeo.analysis.clusters import align_clusters, find_clusters
from sentigeo.errors import UserError


def test_other_algorithms_find_plain_groups(three_groups):
    vectors, labels = three_groups
    found = find_other_clusters(vectors, 3)
    assert set(found) == {"Ward", "Gaussian mixture", "HDBSCAN"}
    for name, own in found.items():
        clear = own >= 0
        assert clear.mean() > 0.7, name
        assert adjusted_rand_score(labels[clear], own[clear]) == 1, name


def test_other_algorithms_do_not_depend_on_row_order():
    vectors = np.random.default_rng(1).normal(size=(80, 6)).astype(np.float32)
    order = np.random.default_rng(2).permutation(80)
    first, second = find_other_clusters(vectors, 3), find_other_clusters(vectors[order], 3)
    for name, own in first.items():
        assert np.array_equal(own[order], second[name]), name


def test_algorithms_are_compared_with_labels(three_groups):
    vectors, labels = three_groups
    found = compare_algorithms(vectors, labels, 3).set_index("name")
    assert found.index.tolist() == ["K-Means", "Ward", "Gaussian mixture", "HDBSCAN"]
    assert found.loc["K-Means", ["clusters", "noise"]].tolist() == [3, 0.0]
    assert found.loc["Ward", "estimate"].value == 1
    noise = find_other_clusters(vectors, 3)["HDBSCAN"] < 0
    assert found.loc["HDBSCAN", "noise"] == noise.mean()
    assert found.loc["HDBSCAN", "estimate"].value == 1 - noise.mean()


def test_impossible_clusters_are_refused():
    with pytest.raises(UserError, match="choose k from 1 to 3"):
        find_other_clusters(np.eye(3), 4)


def test_the_study_of_k_finds_three_groups(three_groups):
    vectors, labels = three_groups
    study = study_k(vectors, labels, range(1, 6)).set_index("k")
    assert study["inertia"].is_monotonic_decreasing
    assert np.isnan(study.loc[1, "silhouette"])
    assert study["silhouette"].idxmax() == 3
    assert study.loc[3, "ari"] == 1
    members = find_clusters(vectors, 3).members
    assert study.loc[3, "silhouette"] == pytest.approx(silhouette_score(vectors, members))
    assert choose_k(study.reset_index()) == 3


def test_choice_of_k_by_hand():
    study = pd.DataFrame({"k": [1, 2, 3], "gap": [0.1, 0.5, 0.55], "gap_error": [0.0, 0.0, 0.1]})
    assert choose_k(study) == 2  # 0.5 >= 0.55 - 0.1
    assert choose_k(study.assign(gap_error=0.0)) is None
    measured = study.assign(silhouette=[np.nan, 0.3, 0.2], ari=[0.0, 0.4, 0.5])
    assert describe_study(measured) == (
        "the silhouette is largest at k = 2 (0.300); the gap statistic chooses k = 2; agreement "
        "with the labels is largest at k = 3 (ARI 0.500)"
    )
    assert "none up to k = 3" in describe_study(measured.assign(gap_error=0.0))


def test_evenly_spread_points_have_no_gap_at_k_1():
    vectors = np.random.default_rng(0).uniform(0, [3, 1], (2000, 2)).astype(np.float32)
    study = study_k(vectors, np.zeros(2000, int), [1])
    assert abs(study.loc[0, "gap"]) < 0.05
    doubled = study_k(
        np.concatenate([vectors, vectors + np.float32([30, 0])]), np.zeros(4000, int), [1, 2]
    )
    # One box around two groups 30 apart: its evenly spread points vary by 33**2 / 12 and a little,
    # the groups by 15**2 and a little, so the groups fill the box worse with one centroid.
    assert doubled.loc[0, "gap"] == pytest.approx(
        np.log((33**2 + 1) / 12 / (15**2 + 10 / 12)), abs=0.05
    )
    assert doubled.loc[1, "gap"] > 1


def test_dip_of_one_and_of_two_modes():
    rng = np.random.default_rng(0)
    assert dip_depth(rng.normal(size=3000)) < 0.05
    assert dip_depth(rng.uniform(-1.5, 1.5, 3000)) < 0.1
    apart = np.concatenate([rng.normal(-1, 0.3, 3000), rng.normal(1, 0.3, 3000)])
    exact = 1 - 2 * np.exp(-(1 / 0.3**2) / 2)  # without smoothing; smoothing makes it shallower
    assert 0.8 < dip_depth(apart) < exact
    assert dip_depth(-apart) == pytest.approx(dip_depth(apart))


def test_a_cut_cloud_has_no_dip_and_groups_have():
    rng = np.random.default_rng(0)
    cloud = rng.normal(size=(600, 8)).astype(np.float32)
    assert estimate_dip(find_clusters(cloud[:300], 2), cloud[300:], 50).value < 0.1
    groups = cloud + 8 * (np.arange(600) % 2)[:, None]
    found = estimate_dip(find_clusters(groups[:300], 2), groups[300:], 50)
    assert found.low > 0.8
    assert found.n == 300


def test_the_shallowest_dip_counts():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 200)
    far = np.array([[0.0, 0], [20, 0], [0, 0.5]])[labels] + rng.normal(size=(600, 2))
    assert estimate_dip(find_clusters(far, 3), far, 20).value < 0.2
    assert estimate_dip(find_clusters(far, 2), far, 20).value > 0.9


def test_a_cluster_that_no_text_falls_into_has_no_dip():
    found = find_clusters(np.array([[0.0], [0.1], [9.0]]), 2)
    assert np.isnan(estimate_dip(found, np.array([[0.0], [0.1], [0.2]]), 20).value)


def test_groups_that_are_there_are_found_again(three_groups):
    vectors, _ = three_groups
    study = study_stability(vectors, range(2, 5)).set_index("k")
    assert study.loc[3, "stability"] == 1
    assert study.loc[3, "spread"] == 0
    assert study.loc[3, "lead"] > 0.4
    assert study["silhouette"].idxmax() == 3
    assert pick_stable(study.reset_index()) == 3


def test_a_long_cloud_is_cut_at_the_same_place_again_but_has_no_groups():
    scales = 1 / np.arange(1, 65)
    cloud = (np.random.default_rng(0).normal(size=(200, 64)) * scales).astype(np.float32)
    study = study_stability(cloud, [2, 3])
    assert study["stability"].iloc[0] > 0.5
    assert study["cloud"].iloc[0] > 0.5
    assert (study["lead"] < 0.3).all()
    np.testing.assert_allclose(study["lead"], study["stability"] - study["cloud"])


def test_the_number_that_leads_most_is_picked():
    study = pd.DataFrame({"k": [2, 3, 4], "lead": [0.1, 0.5, 0.45]})
    assert pick_stable(study) == 3
    assert pick_stable(study.assign(lead=[-0.1, 0.1, 0.19])) == 2


@pytest.mark.parametrize(
    ("different", "asked", "numbers"),
    [
        (5, None, [2]),
        (12, None, [2, 3]),
        (120, None, list(range(2, 11))),
        (12, 6, [2, 3, 6]),
        (12, 7, [2, 3]),
        (120, 14, [*range(2, 11), 14]),
    ],
)
def test_possible_numbers(different, asked, numbers):
    assert possible_numbers(different, asked) == numbers


@pytest.mark.parametrize(("different", "asked"), [(5, None), (12, 6)])
def test_possible_numbers_are_possible(different, asked):
    vectors = np.random.default_rng(0).normal(size=(different, 2))
    numbers = possible_numbers(different, asked)
    assert study_stability(vectors, numbers[-1:])["k"].tolist() == numbers[-1:]


def test_table_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    labels, groups = rng.integers(3, size=60), rng.integers(3, size=60)
    table = confusion_table(labels, groups, ["a", "b", "c"], ["x", "y", "z"])
    assert np.array_equal(table.to_numpy(), confusion_matrix(labels, groups))


def test_table_may_be_rectangular_and_have_empty_groups():
    table = confusion_table(np.array([0, 1, 1]), np.array([3, 0, 0]), ["a", "b"], list("wxyz"))
    assert table.loc["a"].tolist() == [0, 0, 0, 1]
    assert table.loc["b"].tolist() == [2, 0, 0, 0]


def test_a_group_without_a_name_is_refused():
    with pytest.raises(ValueError, match="no name"):
        confusion_table(np.array([0, 1]), np.array([0, -1]), ["a", "b"], ["x"])


def test_chance_by_hand():
    labels = np.array([0, 0, 0, 1])
    assert chance_agreement(labels, np.array([0, 0, 0, 0])) == 0.75
    assert chance_agreement(labels, np.array([0, 0, 1, 1])) == pytest.approx(0.75 / 2 + 0.25 / 2)
    assert chance_agreement(labels, np.array([-1, -1, -1, -1])) == 0


def test_agreement_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=200)
    groups = np.where(rng.random(200) < 0.8, 1 - labels, labels)
    found = estimate_agreement(labels, groups, 1 - groups, resamples=50)
    assert found["accuracy"].value == (groups != labels).mean()
    expected = {"ari": adjusted_rand_score, "ami": adjusted_mutual_info_score,
                "v_measure": v_measure_score}  # fmt: skip
    for name, index in expected.items():
        assert found[name].value == pytest.approx(index(labels, groups))
        assert found[name].low < found[name].value < found[name].high
        assert found[name].n == 200


def test_who_is_right_where_answers_differ():
    labels = np.array([0, 0, 1, 1])
    found = compare_answers(labels, np.array([0, 1, 1, 1]), np.array([0, 0, 1, 0]), ("a", "b"))
    assert found["texts"].tolist() == [2, 2]
    assert found.loc[0, "a right"].startswith("1.000")
    assert found.loc[1, "a right"].startswith("0.500")
    same = compare_answers(labels, labels, labels, ("a", "b"))
    assert same["texts"].tolist() == [4, 0]
    assert np.isnan(same.loc[1, "a right"])


def test_matching_makes_the_best_of_chance():
    rng = np.random.default_rng(0)
    labels, groups = rng.integers(4, size=40), rng.integers(4, size=40)
    shuffled = [rng.permutation(labels) for _ in range(400)]
    found = [(align_clusters(own, groups) == own).mean() for own in shuffled]
    assert matched_by_chance(labels, groups) == pytest.approx(np.mean(found), abs=0.02)
    assert matched_by_chance(labels, groups) > 0.3


def test_the_interval_of_an_index_holds_its_value():
    rng = np.random.default_rng(0)
    labels, groups = rng.integers(4, size=150), rng.integers(10, size=150)
    for name, own in estimate_agreement(labels, groups, groups % 4, resamples=40).items():
        assert own.low < own.value < own.high, name
    same = estimate_agreement(labels, labels, labels, resamples=20)["ari"]
    assert (same.value, same.low, same.high) == (1, 1, 1)
