import numpy as np

from sentigeo.figures.maps import plot_axis, plot_maps, plot_pairs, plot_variance
from sentigeo.figures.style import PALETTE


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


def test_variance_names_the_share_of_two_components():
    figure = plot_variance({"before": np.array([0.5, 0.25, 0.25]), "after": np.array([0.9, 0.1])})
    assert [text.get_text() for text in figure.axes[0].texts] == ["75%", "100%"]
    assert labels_of(figure)


def test_axis_counts_every_review():
    positions = np.array([-1.0, -0.9, 1.0, 1.1, 0.0])
    figure = plot_axis({"before": positions}, np.array([0, 0, 1, 1, 1]), ["negative", "positive"])
    assert "n = 5" in figure.axes[0].get_ylabel()
    assert labels_of(figure)


def test_pairs_are_right_or_wrong_way_round():
    figure = plot_pairs({"before": np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 3.0]])}, ["bad", "good"])
    right, wrong = figure.axes[0].collections
    assert right.get_offsets().tolist() == [[0, 1], [2, 3]]
    assert wrong.get_offsets().tolist() == [[1, 0]]
    assert figure.axes[0].get_xlabel() == "position of the bad side"
