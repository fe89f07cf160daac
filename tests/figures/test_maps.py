import numpy as np
import pandas as pd
import pytest

from sentigeo.figures.maps import (
    plot_axis,
    plot_groups,
    plot_labels_and_clusters,
    plot_maps,
    plot_pairs,
    plot_place,
    plot_stages,
    plot_variance,
)
from sentigeo.figures.style import PALETTE, colour_clusters, colour_labels
from sentigeo.report.page import draw_png


def labels_of(figure):
    return all(axis.get_xlabel() and axis.get_ylabel() for axis in figure.axes)


def test_maps_keep_the_colour_of_their_points():
    points, labels = np.arange(12.0).reshape(6, 2), np.array([0, 1, 0, 1, 1, 0])
    maps = {(time, method): points for time in ("before", "after") for method in ("PCA", "t-SNE")}
    figure = plot_maps(maps, labels, ["negative", "positive"])
    assert len(figure.axes) == 4
    assert labels_of(figure)
    drawn = figure.axes[0].collections[0]
    points_drawn = zip(drawn.get_offsets(), drawn.get_facecolor(), strict=True)
    found = {tuple(xy): tuple(colour[:3]) for xy, colour in points_drawn}
    for point, label in zip(points, labels, strict=True):
        colour = tuple(int(PALETTE[label][i : i + 2], 16) / 255 for i in (1, 3, 5))
        assert np.allclose(found[tuple(point)], colour)
    assert figure.legends[0].get_title().get_text() == "n = 6 in each map"
    assert [figure.axes[place].get_ylabel() for place in (0, 1, 2)] == [
        "pretrained\nPCA 2", "t-SNE 2", "fine-tuned\nPCA 2"
    ]  # fmt: skip


def test_variance_names_the_share_of_two_components():
    figure = plot_variance({"before": np.array([0.5, 0.25, 0.25]), "after": np.array([0.9, 0.1])})
    assert [text.get_text() for text in figure.axes[0].texts] == ["75%", "100%"]
    assert labels_of(figure)


def test_axis_counts_every_review():
    positions = np.array([-1.0, -0.9, 1.0, 1.1, 0.0])
    figure = plot_axis({"before": positions}, np.array([0, 0, 1, 1, 1]), ["negative", "positive"])
    assert "n = 5" in figure.axes[0].get_ylabel()
    assert labels_of(figure)


def test_pairs_are_in_the_right_or_wrong_order():
    figure = plot_pairs({"before": np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 3.0]])}, ["bad", "good"])
    right, wrong = figure.axes[0].collections
    assert right.get_offsets().tolist() == [[0, 1], [2, 3]]
    assert wrong.get_offsets().tolist() == [[1, 0]]
    assert figure.axes[0].get_xlabel() == "position of the bad side"


def test_maps_stand_side_by_side():
    points = np.random.default_rng(0).normal(size=(12, 2))
    maps = {(t, m): points for t in ("before", "after") for m in ("PCA", "t-SNE")}
    members = {"before": np.arange(12) % 3, "after": np.arange(12) % 2}
    figure = plot_labels_and_clusters(maps, np.arange(12) % 2, ["bad", "good"], members)
    assert len(figure.axes) == 8
    titles = [axis.get_title() for axis in figure.axes[:4]]
    assert titles == ["PCA, label", "PCA, cluster", "t-SNE, label", "t-SNE, cluster"]
    assert figure.axes[4].get_ylabel() == "fine-tuned"
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["bad", "good", "cluster 1", "cluster 2", "cluster 3"]
    shown = [axis.collections[0] for axis in figure.axes[:2]]
    first, second = ({tuple(c) for c in own.get_facecolors()} for own in shown)
    assert not first & second  # a cluster never has the colour of a class


def test_stages_stand_side_by_side():
    points = np.random.default_rng(0).normal(size=(6, 2))
    maps = {("news", "before"): points, ("news", "after"): points}
    figure = plot_stages(maps, {"news": np.arange(6) % 3}, {"news": ["a", "b", "c"]})
    figure.draw_without_rendering()
    assert [axis.get_title() for axis in figure.axes] == ["pretrained", "fine-tuned"]
    assert "(n = 6)" in figure.axes[0].get_ylabel()
    legend = [text.get_text() for text in figure.axes[1].get_legend().get_texts()]
    assert legend == ["a", "b", "c"]


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
