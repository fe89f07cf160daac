import numpy as np
import pandas as pd
import pytest

from sentigeo.figures.intervals import (
    VERDICT_COLOURS,
    plot_estimates,
    plot_layers,
    plot_ledger,
    plot_lengths,
)
from sentigeo.figures.style import PALETTE
from sentigeo.ledger.rules import VERDICTS


def test_lengths_name_the_share_each_budget_cuts():
    tokens = np.array([10, 100, 200, 300, 600, 700, 50, 90])
    figure = plot_lengths(tokens, np.arange(8) % 2, ["negative", "positive"], [128, 512])
    left, right = figure.axes
    assert {text.get_text() for text in right.texts} == {"128: 50%", "512: 25%"}
    assert left.get_legend().get_title().get_text() == "n = 8"
    assert [line.get_color() for line in right.lines[:2]] == list(PALETTE[:2])
    assert all(axis.get_xlabel() and axis.get_ylabel() for axis in figure.axes)


def test_no_two_of_twenty_classes_have_one_colour():
    labels = np.arange(200) % 20
    names = [f"class {number}" for number in range(20)]
    figure = plot_lengths(10 + labels, labels, names, [128])
    assert len({line.get_color() for line in figure.axes[1].lines}) == 20
    assert [text.get_text() for text in figure.axes[1].get_legend().get_texts()] == names


def test_estimates_are_drawn_where_they_are():
    frame = pd.DataFrame(
        [("texts", "a", 0.5, 0.4, 0.6, 10), ("texts", "b", 0.7, 0.6, 0.9, 20),
         ("pairs", "a", 0.2, 0.1, 0.3, 5), ("pairs", "b", 0.3, 0.1, 0.4, 5)],
        columns=["group", "name", "value", "low", "high", "n"],
    )  # fmt: skip
    figure = plot_estimates(frame, "share right", reference=0.5)
    texts, pairs = figure.axes
    assert [axis.get_title() for axis in figure.axes] == ["texts (n = 10 to 20)", "pairs (n = 5)"]
    assert texts.lines[0].get_xydata().tolist() == [[0.5, 0.0], [0.7, 1.0]]
    segments = pairs.collections[0].get_segments()
    assert np.array(segments)[:, :, 0].ravel().tolist() == pytest.approx([0.1, 0.3, 0.1, 0.4])
    assert [label.get_text() for label in texts.get_yticklabels()] == ["a", "b"]


def test_layers_have_a_panel_a_group_and_a_line_a_name():
    frame = pd.DataFrame(
        {"group": group, "name": name, "layer": layer, "value": 0.5 + layer / 10, "low": 0.4,
         "high": 0.9}
        for group in ("before", "after") for name in ("cls", "mean") for layer in range(3)
    )  # fmt: skip
    figure = plot_layers(frame, "accuracy")
    assert [axis.get_title() for axis in figure.axes] == ["before", "after"]
    lines = figure.axes[1].lines
    assert lines[0].get_ydata().tolist() == pytest.approx([0.5, 0.6, 0.7])
    assert [t.get_text() for t in figure.axes[1].get_legend().get_texts()] == ["cls", "mean"]
    assert figure.axes[0].get_ylabel() == "accuracy"


def test_every_claim_is_a_tile_in_the_row_of_its_source():
    claims = [{"id": "A1", "source": "000", "verdict": "supported"},
              {"id": "B1", "source": "001", "verdict": "refuted"},
              {"id": "B2", "source": "001", "verdict": "refuted"}]  # fmt: skip
    figure = plot_ledger(claims)
    (axis,) = figure.axes
    assert [text.get_text() for text in axis.texts] == ["A1", "B1", "B2"]
    assert [tick.get_text() for tick in axis.get_yticklabels()] == ["source 000", "source 001"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["supported", "refuted"]
    assert set(VERDICT_COLOURS) == set(VERDICTS)
