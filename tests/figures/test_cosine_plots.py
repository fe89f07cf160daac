import numpy as np
import pandas as pd

from sentigeo.analysis.cosine_remedies import threshold_curve
from sentigeo.analysis.cosines import count_pairs
from sentigeo.figures.cosines import (
    plot_cosines,
    plot_lengths_and_cosines,
    plot_pair_kinds,
    plot_sentences,
    plot_shots,
    plot_thresholds,
)

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


def test_curves_have_bands():
    curve = pd.DataFrame(
        {"group": "raw", "method": ["x", "x", "y", "y"], "shots": [1, 8, 1, 8],
         "value": [0.5, 0.7, 0.4, 0.6], "bottom": 0.3, "top": 0.9}
    )  # fmt: skip
    figure = plot_shots(curve, 0.5)
    assert len(figure.axes[0].collections) == 2
    parts = pd.DataFrame(
        {"name": "cls", "words": [10, 20], "value": [0.1, 0.2], "low": 0.0, "high": 0.3}
    )
    assert plot_lengths_and_cosines(parts).axes[0].get_xscale() == "log"


def test_sentences_stand_in_the_order_of_their_place():
    figure = plot_sentences(np.array([0.5, -1.0]), ["later", "first"], np.array(["a", "b"]), "bat")
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["first", "later"]
