import numpy as np
import pandas as pd
import pytest

from sentigeo.figures.maps import (
    colour_clusters,
    colour_labels,
    plot_choice,
    plot_groups,
    plot_place,
)
from sentigeo.report.notebook import draw_png


def overview(k, keywords="cat, dog, cow, hen"):
    return pd.DataFrame({"cluster": range(1, k + 1), "keywords": keywords})


@pytest.mark.parametrize("k", [2, 30])
def test_maps_have_a_panel_for_clusters_and_one_for_labels(k):
    points = np.random.default_rng(0).normal(size=(60, 2))
    clusters = colour_clusters(np.arange(60) % k, overview(k))
    labels = colour_labels(
        np.arange(60) % 4, ["_one", "a very long name of a class " * 9, "$a^{$", "四"]
    )
    left, right = plot_groups(points, clusters, labels, "PCA").axes
    assert left.get_title() == "by cluster (n = 60)"
    assert [text.get_text() for text in left.texts] == [str(n + 1) for n in range(k)]
    assert (left.get_legend() is None) == (k > 20)
    named = [text.get_text() for text in right.get_legend().get_texts()]
    assert named[0] == "_one (15)"
    assert named[2] == "$a^{$ (15)"
    assert len(named[1]) <= 42


def test_any_label_can_be_drawn():
    labels = colour_labels(np.arange(9) % 2, ["$a^{$", "US$5 to US$10"])
    draw_png(
        plot_groups(np.eye(9)[:, :2], colour_clusters(np.zeros(9, int), overview(1)), labels, "PCA")
    )


def test_a_star_stands_where_the_sentence_is():
    points = np.random.default_rng(0).normal(size=(9, 2))
    known = colour_labels(np.zeros(9, int), ["all"])
    (star,) = plot_place(points, known, np.array([0.5, -0.5])).axes[0].get_lines()
    assert star.get_xydata().tolist() == [[0.5, -0.5]]


def test_the_choice_is_marked():
    study = pd.DataFrame({"k": [2, 3], "stability": [0.5, 0.9], "spread": 0.1, "cloud": 0.3,
                          "lead": [0.2, 0.6], "silhouette": [0.2, 0.3]})  # fmt: skip
    for axis in plot_choice(study, 3).axes:
        assert axis.texts[0].get_text() == "k = 3"


def test_clusters_are_named_by_their_first_keywords():
    assert list(colour_clusters(np.zeros(3, int), overview(1)).names) == [
        "cluster 1: cat, dog, cow"
    ]
    assert list(colour_clusters(np.zeros(3, int), overview(1, "")).names) == ["cluster 1"]


def test_clusters_have_other_colours_than_labels():
    clusters, labels = (
        colour_clusters(np.arange(8), overview(8)),
        colour_labels(np.arange(8), "abcdefgh"),
    )
    assert not set(clusters.colours) & set(labels.colours)
