import numpy as np
import pandas as pd
import pytest

from sentigeo.figures.intervals import (
    VERDICT_COLOURS,
    plot_conditions,
    plot_curves,
    plot_estimates,
    plot_layers,
    plot_ledger,
    plot_lengths,
    plot_reliability,
)
from sentigeo.figures.style import LINES, PALETTE
from sentigeo.ledger.rules import VERDICTS
from sentigeo.stats import Estimate, list_estimates


def legend_of(axis):
    return [text.get_text() for text in axis.get_legend().get_texts()]


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
    assert legend_of(figure.axes[1]) == names


def test_estimates_are_drawn_where_they_are():
    found = {
        ("texts", "a"): Estimate(0.5, 0.4, 0.6, 10), ("texts", "b"): Estimate(0.7, 0.6, 0.9, 20),
        ("pairs", "a"): Estimate(0.2, 0.1, 0.3, 5), ("pairs", "b"): Estimate(0.3, 0.1, 0.4, 5),
    }  # fmt: skip
    figure = plot_estimates(list_estimates(found, "group", "name"), "share right", reference=0.5)
    texts, pairs = figure.axes
    assert [axis.get_title() for axis in figure.axes] == ["texts (n = 10 to 20)", "pairs (n = 5)"]
    assert texts.lines[0].get_xydata().tolist() == [[0.5, 0.0], [0.7, 1.0]]
    segments = pairs.collections[0].get_segments()
    assert np.array(segments)[:, :, 0].ravel().tolist() == pytest.approx([0.1, 0.3, 0.1, 0.4])
    assert [label.get_text() for label in texts.get_yticklabels()] == ["a", "b"]
    assert texts.lines[-1].get_xdata()[0] == 0.5  # the reference


def test_conditions_stand_below_each_other_and_a_negative_bound_is_seen():
    found = {("a", "before"): Estimate(0.1, -0.4, 0.6, 9), ("a", "after"): Estimate(0.7, 0.6, 1, 9)}
    figure = plot_conditions(list_estimates(found, "name", "condition"), "rank correlation")
    (axis,) = figure.axes
    assert legend_of(axis) == ["pretrained", "fine-tuned"]
    first, second = (line.get_ydata()[0] for line in axis.lines[::3])
    assert first < 0 < second
    assert axis.get_xlim()[0] == pytest.approx(-0.42)


def test_layers_have_one_panel_per_group_and_one_line_per_name():
    found = {
        (group, name, layer): Estimate(0.5 + layer / 10, 0.4, 0.9, 9)
        for group in ("before", "after") for name in ("cls", "mean") for layer in range(3)
    }  # fmt: skip
    figure = plot_layers(list_estimates(found, "group", "name", "layer"), "accuracy")
    assert [axis.get_title() for axis in figure.axes] == ["pretrained", "fine-tuned"]
    line = figure.axes[1].lines[0]
    assert line.get_ydata().tolist() == pytest.approx([0.5, 0.6, 0.7])
    assert legend_of(figure.axes[1]) == ["cls", "mean"]
    assert figure.axes[0].get_ylabel() == "accuracy"


def test_a_line_that_a_panel_lacks_changes_no_other_and_is_named_all_the_same():
    names = {"before": ("cls", "mean", "max"), "after": ("max", "cls")}
    found = {(group, name, layer): Estimate(0.5, 0.4, 0.6, 9)
             for group in names for name in names[group] for layer in (0, 1)}  # fmt: skip
    left, right = plot_layers(list_estimates(found, "group", "name", "layer"), "accuracy").axes
    assert legend_of(right) == ["cls", "mean", "max"]
    shown = [[line.get_color() for line in axis.lines[::3]] for axis in (left, right)]
    assert shown[0] == shown[1] == list(LINES[:3])
    assert [len(line.get_xdata()) for line in right.lines[::3]] == [2, 0, 2]


def test_curves_have_one_line_per_seed():
    frame = pd.DataFrame(
        {"condition": name, "seed": seed, "epoch": epoch, "train_loss": 1.0, "val_loss": 1.0,
         "val_accuracy": 0.5 + seed}
        for name in ("without", "with") for seed in (0, 1) for epoch in (1, 2)
    )  # fmt: skip
    figure = plot_curves(frame)
    assert len(figure.axes[2].lines) == 4
    assert figure.axes[2].lines[1].get_ydata().tolist() == [1.5, 1.5]
    assert legend_of(figure.axes[0]) == ["without", "with"]


def test_reliability_counts_every_review():
    found = {0.6: Estimate(0.5, 0.4, 0.6, 1_000), 0.9: Estimate(0.95, 0.9, 1.0, 500)}
    left, right = plot_reliability(list_estimates(found, "confidence"), 0.5).axes
    assert left.lines[1].get_xydata().tolist() == [[0.6, 0.5], [0.9, 0.95]]
    assert right.get_ylabel() == "test reviews (n = 1,500)"


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
