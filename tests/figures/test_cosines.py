import numpy as np

from sentigeo.analysis.cosines import count_pairs, threshold_curve
from sentigeo.figures.cosines import (
    plot_cosines,
    plot_lengths_and_cosines,
    plot_pair_kinds,
    plot_sentences,
    plot_shots,
    plot_thresholds,
)
from sentigeo.stats import Estimate, exactly, list_estimates

LABELS = np.repeat([0, 1, 2], 5)
VECTORS = np.random.default_rng(0).normal(size=(15, 4)) + np.eye(4)[LABELS]


def test_heat_maps_name_their_classes():
    cosines = VECTORS @ VECTORS.T
    figure = plot_cosines({"before": cosines, "after": cosines}, LABELS, ["a", "b", "c"])
    names = [text.get_text() for text in figure.axes[0].get_xticklabels()]
    assert names == ["a", "b", "c"]
    assert len(figure.axes) == 4  # two maps with their colour bars


def test_pairs_and_thresholds():
    counts = count_pairs(VECTORS, LABELS, 3)
    figure = plot_pair_kinds({"before": counts})
    assert [line.get_label() for line in figure.axes[0].lines] == [
        "within a class",
        "between classes",
    ]
    assert figure.axes[0].lines[0].get_ydata().sum() == 1
    figure = plot_thresholds({"before": threshold_curve(counts)})
    assert len(figure.axes[0].lines) == 2


def test_few_shot_curves_have_bands():
    found = {("raw", "x", 1): 0.5, ("raw", "x", 8): 0.7, ("raw", "y", 1): 0.4, ("raw", "y", 8): 0.6}
    curve = list_estimates(
        {key: exactly(value) for key, value in found.items()}, "group", "method", "shots"
    )
    (axis,) = plot_shots(curve.assign(bottom=0.3, top=0.9), 0.5).axes
    assert len(axis.collections) == 2
    assert axis.lines[1].get_ydata().tolist() == [0.4, 0.6]


def test_a_method_that_a_panel_lacks_leaves_the_colours_of_others():
    found = {("raw", "x", 1): 0.5, ("raw", "y", 1): 0.4, ("centred", "y", 1): 0.6}
    estimates = {key: exactly(value) for key, value in found.items()}
    curve = list_estimates(estimates, "group", "method", "shots").assign(bottom=0.3, top=0.9)
    first, second = plot_shots(curve, 0.5).axes
    assert [len(line.get_xdata()) for line in second.lines[:2]] == [0, 1]
    assert second.lines[1].get_color() == first.lines[1].get_color() != first.lines[0].get_color()


def test_lengths_have_intervals():
    parts = {("cls", 10): Estimate(0.1, 0.0, 0.3, 9), ("cls", 20): Estimate(0.2, 0.0, 0.3, 9)}
    (axis,) = plot_lengths_and_cosines(list_estimates(parts, "name", "words")).axes
    assert axis.get_xscale() == "log"
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["10", "20"]
    assert len(axis.collections[0].get_segments()) == 2


def test_sentences_stand_in_the_order_of_their_place():
    figure = plot_sentences(np.array([0.5, -1.0]), ["later", "first"], np.array(["a", "b"]), "bat")
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["first", "later"]
