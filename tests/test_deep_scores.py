from types import SimpleNamespace

import numpy as np
import pytest

from sentigeo.deep_cluster import Course
from sentigeo.deep_scores import (
    estimate_clusters,
    final_members,
    is_degenerate,
    largest_run,
    right_texts,
    score_course,
    score_members,
    score_runs,
    settling_epoch,
    size_shares,
)

LABELS = np.array([0, 0, 1, 1])


def make_course(*members):
    blank = [0.5] * len(members)
    return Course([list(own) for own in members], blank, blank, blank, blank)


def test_scores_by_hand():
    same = score_members(LABELS, np.array([1, 1, 0, 0]), 2)
    assert same["accuracy"] == same["nmi"] == same["ari"] == 1
    assert same["largest_share"] == 0.5
    assert same["entropy"] == pytest.approx(np.log(2))
    assert same["effective"] == pytest.approx(2)
    one = score_members(LABELS, np.zeros(4, int), 3)
    assert (one["accuracy"], one["nmi"], one["largest_share"], one["effective"]) == (0.5, 0, 1, 1)
    uneven = score_members(LABELS, np.array([0, 0, 0, 1]), 2)
    assert uneven["accuracy"] == 0.75
    assert uneven["entropy"] == pytest.approx(-0.75 * np.log(0.75) - 0.25 * np.log(0.25))


def test_a_course_has_a_row_an_epoch():
    frame = score_course(LABELS, make_course([0, 1, 0, 1], [0, 0, 1, 1]), 2)
    assert frame["epoch"].tolist() == [0, 1]
    assert frame["accuracy"].tolist() == [0.5, 1.0]
    assert frame["surety"].tolist() == [0.5, 0.5]


def test_estimates_over_seeds():
    members = [np.array([1, 1, 0, 0] * 10), np.array([0, 0, 0, 1] * 10)]
    labels = np.tile(LABELS, 10)
    assert right_texts(labels, members).mean(axis=1).tolist() == [1.0, 0.75]
    found = estimate_clusters(labels, members, 2, resamples=200)
    assert found["accuracy"].value == 0.875
    assert found["accuracy"].n == 40
    assert found["largest_share"].value == 0.625
    assert 0 < found["nmi"].low < found["nmi"].value < found["nmi"].high < 1


@pytest.mark.parametrize(
    ("effective", "degenerate"),
    [([2.0, 1.6, 2.0], False), ([2.0, 1.4, 2.0], True), ([1.2, 1.15], False), ([5, 2.9], True)],
)
def test_degenerate_is_half_way_to_one_cluster(effective, degenerate):
    assert is_degenerate(np.array(effective)) == degenerate


def test_when_a_course_settles():
    still, moving = [0, 0, 1, 1], [0, 1, 1, 1]
    assert settling_epoch(make_course(still, still, moving, moving, still), 0.01) == 3
    assert settling_epoch(make_course(still, moving, still), 0.01) is None
    assert settling_epoch(make_course(still, moving, still), 0.3) == 2
    assert settling_epoch(make_course(still), 0.01) is None


def make_run(condition, seed, *members, vectors=None):
    return SimpleNamespace(
        condition=condition, seed=seed, course=make_course(*members), vectors=vectors
    )


def test_runs_are_laid_end_to_end():
    study = SimpleNamespace(texts=SimpleNamespace(labels=LABELS), k=2)
    runs = [make_run("kl", 0, [0, 1, 0, 1], LABELS), make_run("mlm", 1, [0, 1, 0, 1])]
    frame = score_runs(study, runs)
    assert frame["condition"].tolist() == ["kl", "kl", "mlm"]
    assert frame["seed"].tolist() == [0, 0, 1]


def test_clusters_in_the_end():
    first = SimpleNamespace(members=np.array([0, 1, 1, 0]))
    study = SimpleNamespace(first_clusters=[first], k=2)
    apart = np.array([[0.0], [9.0], [9.1], [0.1]], np.float32)
    runs = [
        make_run("kl", 0, [0, 0, 0, 0], [0, 0, 1, 1]),
        make_run("mlm", 0, [0, 0, 0, 0], vectors=apart),
    ]
    found = final_members(study, runs)
    assert found["kmeans"][0].tolist() == [0, 1, 1, 0]
    assert found["kl"][0].tolist() == [0, 0, 1, 1]
    assert found["mlm"][0][0] == found["mlm"][0][3] != found["mlm"][0][1]


def test_sizes_of_the_run_with_the_largest_cluster():
    runs = [make_run("kl", 0, [0, 0, 1, 1]), make_run("kl", 1, [0, 0, 0, 1]),
            make_run("kl_mlm", 0, [0, 0, 0, 0])]  # fmt: skip
    worst = largest_run(runs, "kl")
    assert worst.seed == 1
    assert size_shares(worst.course, 3).tolist() == [[0.75, 0.25, 0.0]]
