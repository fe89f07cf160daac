"""Figures of clusters, confusion matrices and keywords: an analysis in, a Figure out."""

import math
from collections.abc import Sequence
from itertools import cycle

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sentigeo.figures.maps import plot_points
from sentigeo.figures.style import (
    CLUSTER_COLOURS,
    FEW,
    GREY,
    PAGE_WIDTH,
    PALETTE,
    new_figure,
    spread_colours,
)
from sentigeo.text import excerpt

LONGEST = 32  # characters of a name beside a matrix


def plot_labels_and_clusters(
    maps: dict[tuple[str, str], np.ndarray],
    labels: np.ndarray,
    classes: Sequence[str],
    clusters: dict[str, np.ndarray],
) -> Figure:
    """Show every map twice, side by side: coloured by label and coloured by cluster.

    Args:
        maps: (n, 2) points by time and method.
        labels: (n,) class of each point.
        classes: Names of the classes.
        clusters: (n,) cluster of each point, by time.
    """
    times, methods = (list(dict.fromkeys(part)) for part in zip(*maps, strict=True))
    k = 1 + max(int(own.max()) for own in clusters.values())
    colours = spread_colours(len(classes), PALETTE)
    cluster_colours = spread_colours(k, CLUSTER_COLOURS)
    rows_of_names = math.ceil((len(classes) + k) / 6)
    height = 1.2 + 2.1 * len(times) + 0.25 * max(0, rows_of_names - 3)
    figure = Figure(figsize=(PAGE_WIDTH, height), layout="constrained")
    axes = figure.subplots(len(times), 2 * len(methods), squeeze=False)
    for (time, method), points in maps.items():
        row, column = times.index(time), 2 * methods.index(method)
        plot_points(axes[row, column], points, labels, colours)
        plot_points(axes[row, column + 1], points, clusters[time], cluster_colours)
        axes[row, column].set_title(f"{method}, label" if row == 0 else "")
        axes[row, column + 1].set_title(f"{method}, cluster" if row == 0 else "")
    for row, time in enumerate(times):
        axes[row, 0].set_ylabel(f"{time} fine-tuning")
    named = list(zip(classes, colours, strict=True))
    named += [(f"cluster {n + 1}", colour) for n, colour in enumerate(cluster_colours)]
    handles = [axes[0, 0].scatter([], [], s=40, color=c, label=name) for name, c in named]
    figure.legend(
        handles=handles, loc="outside upper center", ncols=min(6, len(handles)),
        title=f"n = {len(labels):,} in each map",
    )  # fmt: skip
    return figure


def plot_k_study(studies: dict[str, pd.DataFrame]) -> Figure:
    """Show how inertia, silhouette, gap and agreement with the labels depend on k.

    Args:
        studies: Columns `k`, `inertia`, `silhouette`, `gap`, `gap_error`, `ari`, by name.
    """
    panels = {"inertia": "inertia (k = 1 is 1)", "silhouette": "silhouette",
              "gap": "gap statistic", "ari": "agreement with labels (ARI)"}  # fmt: skip
    figure = Figure(figsize=(PAGE_WIDTH, 5.0), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True)
    for axis, (column, label) in zip(axes.ravel(), panels.items(), strict=True):
        for number, (name, study) in enumerate(studies.items()):
            values = study[column] / (study["inertia"].iloc[0] if column == "inertia" else 1)
            errors = study["gap_error"] if column == "gap" else None
            axis.errorbar(
                study["k"], values, yerr=errors, fmt="o-", ms=4, capsize=2.5,
                color=PALETTE[2 + number], label=name,
            )  # fmt: skip
        axis.set_ylabel(label)
        axis.set_xticks(study["k"][:: 1 + len(study) // 12])
    for axis in axes[1]:
        axis.set_xlabel("k")
    axes[0, 0].legend()
    return figure


def plot_confusions(tables: dict[str, pd.DataFrame]) -> Figure:
    """Show confusion matrices side by side: counts, and shares of their row.

    Where there is no room for both, shares are colours only.

    Args:
        tables: Counts, a row a class, a column a group, by title; one below the other if large.
    """
    most = max(max(table.shape) for table in tables.values())
    side_by_side, many = most <= 4, most > FEW
    rows, columns = (1, len(tables)) if side_by_side else (len(tables), 1)
    height = rows * (1.6 + (0.75 if side_by_side else 0.25 if many else 0.5) * most)
    figure = Figure(figsize=(PAGE_WIDTH, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for axis, (title, table) in zip(axes, tables.items(), strict=True):
        sizes = table.sum(axis=1).to_numpy()[:, None]
        shares = table.to_numpy() / np.maximum(sizes, 1)
        above, beside = (
            [excerpt(name, LONGEST) for name in names] for names in (table.columns, table.index)
        )
        sns.heatmap(
            shares, ax=axis, annot=_notes(table.to_numpy(), shares, many), fmt="", cmap="Blues",
            vmin=0, vmax=1, cbar=False, yticklabels=beside, linewidths=1,
            xticklabels=[name.replace(" (", " (" if many else "\n(") for name in above],
        )  # fmt: skip
        axis.set_title(f"{title}\n(n = {int(sizes.sum()):,})")
        axis.tick_params(axis="x", rotation=90 if many else 0)
        axis.tick_params(axis="y", rotation=0)
        axis.set_ylabel("label" if axis is axes[0] or not side_by_side else "")
    return figure


def plot_keywords(lists: dict[str, pd.DataFrame], sides: Sequence[str]) -> Figure:
    """Show the keywords of clusters as horizontal bars, two clusters facing each other.

    Args:
        lists: Columns `cluster`, `term`, `score`, best first, by title.
        sides: Names of the clusters; the first two face each other, others follow in pairs.
    """
    colours = spread_colours(len(sides), CLUSTER_COLOURS)
    pairs = [range(first, min(first + 2, len(sides))) for first in range(0, len(sides), 2)]
    longest = max(own.groupby("cluster").size().max() for own in lists.values())
    figure = Figure(
        figsize=(PAGE_WIDTH, len(lists) * len(pairs) * (1.0 + 0.21 * longest)), layout="constrained"
    )
    axes = figure.subplots(len(lists) * len(pairs), 2, squeeze=False)
    panels = [(title, own, pair) for title, own in lists.items() for pair in pairs]
    for row, (title, own, pair) in enumerate(panels):
        top = 1.04 * own["score"].max()
        for side in range(2):
            axis = axes[row, side]
            if side >= len(pair):
                axis.set_axis_off()
                continue
            cluster = pair[side]
            _bars(axis, own[own["cluster"] == cluster], colours[cluster], side == 0)
            axis.set_xlim((top, 0) if side == 0 else (0, top))
            axis.set_title(sides[cluster], color=colours[cluster])
            axis.set_xlabel(title)
    return figure


def plot_leans(frame: pd.DataFrame, dealt: dict[str, np.ndarray]) -> Figure:
    """Show how strongly keywords lean to their class, against words dealt at random.

    Args:
        frame: Columns `name` (which list), `lean` (of one keyword).
        dealt: Mean leans of the same words dealt to the clusters at random, by list.
    """
    names = list(dict.fromkeys(frame["name"]))
    figure, (axis,) = new_figure(1.2 + 0.45 * len(names))
    for place, name in enumerate(names):
        leans = frame.loc[frame["name"] == name, "lean"].to_numpy()
        shift = np.linspace(-0.2, 0.2, len(leans)) if len(leans) > 1 else 0.0
        axis.scatter(leans, place + shift, s=14, alpha=0.7, lw=0, color=PALETTE[1])
        axis.plot([leans.mean()] * 2, [place - 0.34, place + 0.34], color=PALETTE[7], lw=2)
        low, high = np.quantile(dealt[name], [0.025, 0.975])
        axis.fill_betweenx([place - 0.4, place + 0.4], low, high, color=GREY, alpha=0.35, lw=0)
    axis.scatter([], [], s=14, color=PALETTE[1], label="a keyword")
    axis.plot([], [], color=PALETTE[7], lw=2, label="their mean")
    axis.fill_betweenx([], [], [], color=GREY, alpha=0.35, label="mean, words dealt at random")
    axis.axvline(0, color=GREY, ls="--", lw=1)
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.set_xlabel("lean of a keyword to the class of its cluster (log-odds)")
    axis.grid(axis="y", visible=False)
    axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _notes(counts: np.ndarray, shares: np.ndarray, many: bool) -> np.ndarray:
    """Write counts and shares into the cells of a matrix; of many cells, counts above 0 only."""
    cells = zip(counts.flat, shares.flat, strict=True)
    notes = [(f"{n:,}" if n else "") if many else f"{n:,}\n{own:.1%}" for n, own in cells]
    return np.array(notes).reshape(counts.shape)


def _bars(axis: Axes, terms: pd.DataFrame, colour: str, leftward: bool) -> None:
    """Draw one side of a pair of bar charts, its labels on the outside."""
    places = range(len(terms))
    axis.barh(places, terms["score"], color=colour, height=0.75)
    axis.set_yticks(places, terms["term"])
    axis.set_ylim(len(terms) - 0.4, -0.6)
    axis.grid(axis="y", visible=False)
    axis.locator_params(axis="x", nbins=4)
    if not leftward:
        axis.yaxis.tick_right()


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
