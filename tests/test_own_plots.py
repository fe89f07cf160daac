import numpy as np
import pandas as pd
import pytest

from sentigeo.own_plots import group_colours, plot_choice, plot_groups, plot_place


@pytest.mark.parametrize("k", [2, 30])
def test_maps_have_a_panel_a_grouping(k):
    rng = np.random.default_rng(0)
    groups = {
        "cluster": (np.arange(60) % k, [f"cluster {n + 1}" for n in range(k)]),
        "label": (np.arange(60) % 3, ["one", "a very long name of a class indeed", "three"]),
    }
    figure = plot_groups(rng.normal(size=(60, 2)), groups, "PCA")
    left, right = figure.axes
    assert left.get_title() == "by cluster (n = 60)"
    assert [text.get_text() for text in left.texts] == [str(n + 1) for n in range(k)]
    assert (left.get_legend() is None) == (k > 20)
    named = [text.get_text() for text in right.get_legend().get_texts()]
    assert named[0] == "one (20)"
    assert len(named[1]) <= 30


def test_a_star_stands_where_the_sentence_is():
    points = np.random.default_rng(0).normal(size=(9, 2))
    figure = plot_place(points, np.zeros(9, int), ["all"], ["#000000"], np.array([0.5, -0.5]))
    (star,) = figure.axes[0].get_lines()
    assert star.get_xydata().tolist() == [[0.5, -0.5]]


def test_the_choice_is_marked():
    study = pd.DataFrame(
        {"k": [2, 3], "stability": [0.5, 0.9], "error": 0.1, "silhouette": [0.2, 0.3]}
    )
    for axis in plot_choice(study, 3).axes:
        assert axis.texts[0].get_text() == "k = 3"


def test_clusters_have_other_colours_than_labels():
    assert not set(group_colours("cluster", 8)) & set(group_colours("label", 8))
    assert len(set(group_colours("label", 20))) == 20
