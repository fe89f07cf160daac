from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from sentigeo.analysis.clusters import find_clusters
from sentigeo.training.deep_clustering import Course
from sentigeo.training.deep_scores import (
    compare,
    largest_sizes,
    lost_runs,
    score_courses,
    score_ends,
    score_members,
    stop_early,
)

LABELS = np.array([0, 0, 1, 1])
TEXTS = SimpleNamespace(title="toy", labels=LABELS, classes=["a", "b"])


def make_run(condition, draw, *members, vectors=None):
    blank = [0.5] * len(members)
    course = Course([list(own) for own in members], blank, blank, blank, blank)
    return SimpleNamespace(
        texts=TEXTS, condition=condition, draw=draw, course=course, vectors=vectors
    )


def test_scores_by_hand():
    same = score_members(LABELS, np.array([1, 1, 0, 0]), 2)
    assert same["accuracy"] == same["nmi"] == same["ari"] == 1
    assert same["largest_share"] == same["smallest_share"] == 0.5
    assert same["effective"] == pytest.approx(1)
    one = score_members(LABELS, np.zeros(4, int), 4)
    assert (one["accuracy"], one["nmi"], one["largest_share"]) == (0.5, 0, 1)
    assert (one["smallest_share"], one["effective"]) == (0, 0.25)
    uneven = score_members(LABELS, np.array([0, 0, 0, 1]), 2)
    assert uneven["accuracy"] == 0.75
    entropy = -0.75 * np.log(0.75) - 0.25 * np.log(0.25)
    assert uneven["effective"] == pytest.approx(np.exp(entropy) / 2)


def test_a_course_has_one_row_per_epoch():
    runs = [make_run("kl", 0, [0, 1, 0, 1], LABELS), make_run("mlm", 1, [0, 0, 0, 0])]
    frame = score_courses(runs)
    assert frame["condition"].tolist() == ["kl", "kl", "mlm"]
    assert frame["draw"].tolist() == [0, 0, 1]
    assert frame["epoch"].tolist() == [0, 1, 0]
    assert frame["accuracy"].tolist() == [0.5, 1.0, 0.5]
    assert frame["changed"].tolist()[1] == 0.5
    assert frame["changed"].isna().tolist() == [True, False, True]
    assert frame["lost"].tolist() == [False, False, True]
    assert set(frame["set"]) == {"toy"}


def test_a_cluster_is_lost_after_the_beginning():
    whole, gone = [0, 0, 1, 1], [0, 0, 0, 0]
    courses = score_courses(
        [
            make_run("kl", 0, whole, gone, whole),
            make_run("kl", 1, gone, whole, whole),
            make_run("other", 0, whole, gone),
        ]
    )
    assert lost_runs(courses, "kl").tolist() == [True, False]


def test_stopping_when_hardly_any_text_changes():
    still, moving = [0, 0, 1, 1], [0, 1, 1, 1]
    courses = score_courses(
        [
            make_run("kl", 0, still, still, moving, moving, still),
            make_run("kl", 1, still, moving, still, moving, still),
        ]
    )
    (row,) = stop_early(courses, 0.01).to_dict("records")
    assert row == {
        "set": "toy", "condition": "kl", "stops": "3, never",
        "accuracy there": 0.875, "in the end": 1.0,  # of 0.75 and, where it never stops, 1
    }  # fmt: skip
    assert stop_early(courses, 0.3)["stops"].tolist() == ["2, 2"]


def test_clusters_in_the_end():
    points = np.array([[0.0], [9.0], [9.1], [0.1]], np.float32)
    recipes = {"kl": SimpleNamespace(clustering=1.0), "mlm": SimpleNamespace(clustering=0.0)}
    result = SimpleNamespace(
        draw=SimpleNamespace(texts=TEXTS, seed=3, recipes=recipes),
        pretrained=SimpleNamespace(matrix=lambda layer, pooling: points),
        first=SimpleNamespace(members=np.array([0, 1, 1, 0])),
        runs=[
            make_run("kl", 3, [0, 0, 0, 0], LABELS),
            make_run("mlm", 3, [0, 0, 0, 0], vectors=points[[0, 3, 1, 2]]),
        ],
    )
    ends = score_ends(result).set_index("condition")
    assert ends["accuracy"].to_dict() | {"chance": 0} == {
        "kmeans": 0.5, "kmeans_mean": 0.5, "kl": 1.0, "mlm": 1.0, "chance": 0,
    }  # fmt: skip
    assert 0.5 <= ends.loc["chance", "accuracy"] < 1
    assert ends.loc["chance", "largest_share"] == 0.5
    assert set(ends["draw"]) == {3}
    assert find_clusters(points, 2, 3).members[0] == find_clusters(points, 2, 3).members[3]


def test_differences_by_set_and_draw():
    ends = pd.DataFrame(
        {"set": name, "draw": draw, "condition": condition, "accuracy": value + draw / 10}
        for name, values in {"x": (0.5, 0.9), "y": (0.4, 0.3)}.items()
        for draw in (0, 1)
        for condition, value in zip(("kmeans", "kl"), values, strict=True)
    )
    found = compare(ends, "accuracy", "kl", "kmeans")
    assert np.allclose(found.loc["x"], [0.4, 0.4])
    assert np.allclose(found.loc["y"], [-0.1, -0.1])


def test_the_difference_of_one_set_and_one_draw():
    rows = [("x", 0, "kmeans", 0.5), ("x", 0, "kl", 0.9)]
    ends = pd.DataFrame(rows, columns=["set", "draw", "condition", "accuracy"])
    found = compare(ends, "accuracy", "kl", "kmeans")
    assert found.shape == (1, 1)
    assert found.loc["x"].tolist() == pytest.approx([0.4])


def test_sizes_over_time():
    runs = [make_run("kl", 0, [0, 0, 1, 1], [0, 0, 1, 1]), make_run("mlm", 1, [0] * 4, [1] * 4)]
    runs.append(make_run("kl", 1, [0, 0, 0, 1], [0, 0, 0, 0]))  # ends with the largest cluster
    found = largest_sizes(runs, {"kl": "Clustering"})
    assert list(found) == [("toy", "Clustering")]
    assert found["toy", "Clustering"].tolist() == [[0.75, 0.25], [1.0, 0.0]]
