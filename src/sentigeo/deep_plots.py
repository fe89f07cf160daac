"""Figures of deep clustering: an analysis in, a Figure out."""

from collections.abc import Sequence
from itertools import cycle

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sentigeo.cluster_plots import CLUSTER_COLOURS
from sentigeo.colours import spread_colours
from sentigeo.map_plots import plot_points
from sentigeo.plots import FEW, PAGE_WIDTH, PALETTE


def plot_courses(
    frame: pd.DataFrame, measures: dict[str, str], conditions: dict[str, str]
) -> Figure:
    """Show measures over the epochs, a row a measure, a column a set, a line a condition.

    Args:
        frame: Columns `set`, `condition`, `draw`, `epoch`, and the measures. Lines are means over
            draws and end where one of them has no value; bands are their range.
        measures: What to call each measure.
        conditions: What to call each condition; all of them, so that each has its colour in every
            figure.
    """
    sets = list(dict.fromkeys(frame["set"]))
    shown = {c: colour for c, colour in zip(conditions, cycle(PALETTE[1:]), strict=False)
             if (frame["condition"] == c).any()}  # fmt: skip
    figure, axes = _grid(len(measures), len(sets), 1.9)
    for row, (measure, title) in enumerate(measures.items()):
        for axis, name in zip(axes[row], sets, strict=True):
            for condition, colour in shown.items():
                own = frame[(frame["set"] == name) & (frame["condition"] == condition)]
                _plot_course(axis, own.pivot_table(measure, "epoch", "draw", dropna=False), colour)
            axis.set_title(name if row == 0 else "")
            axis.set_xlabel("epoch" if row == len(measures) - 1 else "")
        axes[row, 0].set_ylabel(title)
    lines = [
        axes[0, 0].plot([], [], color=c, lw=1.8, label=conditions[name])[0]
        for name, c in shown.items()
    ]
    figure.legend(handles=lines, loc="outside upper center", ncols=min(3, len(lines)))
    return figure


def plot_sizes(frames: dict[tuple[str, str], np.ndarray]) -> Figure:
    """Show how large clusters are over the epochs, as stacked areas.

    Args:
        frames: (epochs, k) shares of the clusters, by set (a row) and condition (a column).
    """
    sets, conditions = (list(dict.fromkeys(part)) for part in zip(*frames, strict=True))
    figure, axes = _grid(len(sets), len(conditions), 1.7)
    for (name, condition), shares in frames.items():
        axis: Axes = axes[sets.index(name), conditions.index(condition)]
        colours = spread_colours(shares.shape[1], CLUSTER_COLOURS)
        axis.stackplot(range(len(shares)), shares.T, colors=colours, lw=0.4, ec="white")
        axis.set_xlim(0, max(1, len(shares) - 1))
        axis.set_ylim(0, 1)
        axis.set_title(condition if name == sets[0] else "")
        axis.set_xlabel("epoch" if name == sets[-1] else "")
        if condition == conditions[0]:
            axis.set_ylabel(f"{name}\nshare of texts")
    return figure


def plot_stages(
    points: dict[tuple[str, str], np.ndarray],
    labels: dict[str, np.ndarray],
    classes: dict[str, Sequence[str]],
) -> Figure:
    """Show maps of the same texts at several stages, a row a set, a column a stage.

    Args:
        points: (n, 2) by set and stage.
        labels: (n,) class of each text, by set.
        classes: Names of the classes, by set.
    """
    sets, stages = (list(dict.fromkeys(part)) for part in zip(*points, strict=True))
    figure = Figure(figsize=(PAGE_WIDTH, 0.7 + 2.2 * len(sets)), layout="constrained")
    axes = figure.subplots(len(sets), len(stages), squeeze=False)
    for (name, stage), own in points.items():
        axis = axes[sets.index(name), stages.index(stage)]
        plot_points(axis, own, labels[name], spread_colours(len(classes[name]), PALETTE))
        axis.set_title(stage if name == sets[0] else "")
    for row, name in enumerate(sets):
        axes[row, 0].set_ylabel(f"{name}\n(n = {len(labels[name]):,})")
        colours = spread_colours(len(classes[name]), PALETTE)
        dots = [
            axes[row, -1].scatter([], [], s=30, color=colour, label=title)
            for title, colour in zip(classes[name], colours, strict=True)
        ]
        many = len(classes[name]) > FEW
        axes[row, -1].legend(
            handles=dots, loc="center left", bbox_to_anchor=(1.0, 0.5),
            ncols=2 if many else 1, fontsize=7 if many else None,
        )  # fmt: skip
    return figure


def plot_warming(losses: dict[str, list[float]]) -> Figure:
    """Show how the loss of a new masked-language head falls, a line a set of texts."""
    figure, axes = _grid(1, 1, 2.6)
    axis: Axes = axes[0, 0]
    for colour, (name, values) in zip(cycle(PALETTE[1:]), losses.items()):
        axis.plot(range(1, len(values) + 1), values, "o-", color=colour, ms=4, label=name)
    axis.set_xlabel("epoch of the head alone")
    axis.set_ylabel("masked-language loss (nats)")
    axis.legend()
    return figure


def _plot_course(axis: Axes, draws: pd.DataFrame, colour: str) -> None:
    """Draw the mean and the range of some draws, a column each, over the epochs."""
    draws = draws.dropna()
    axis.plot(draws.index, draws.mean(axis=1), color=colour, lw=1.8)
    low, high = draws.min(axis=1), draws.max(axis=1)
    axis.fill_between(draws.index, low, high, color=colour, alpha=0.2, lw=0)


def _grid(rows: int, columns: int, height: float) -> tuple[Figure, np.ndarray]:
    """Return a figure of page width and its axes; those of a row share their scale."""
    figure = Figure(figsize=(PAGE_WIDTH, 0.7 + height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, sharey="row")
