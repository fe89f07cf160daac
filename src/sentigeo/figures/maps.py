"""Figures of maps and of the sentiment direction."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from sentigeo.figures import style
from sentigeo.figures.style import GREY, LINES, PALETTE, Arrays, Colouring, finish, stage
from sentigeo.text import excerpt

MOST_NAMED = 20  # groups that a legend can hold
LEGEND_WIDTH = 36  # characters of a name in it
DOTS = 6_000  # area of all points of a large map together: few are large and very many small
Points = Mapping[tuple[str, str], np.ndarray]  # (n, 2) by row and column of a grid of maps


def plot_maps(maps: Points, labels: np.ndarray, classes: Sequence[str]) -> Figure:
    """Show points by stage (row) and method (column), coloured by (n,) label."""
    groups = style.colour_labels(labels, classes)
    columns = len(classes) if len(classes) <= style.FEW else 6
    margin = 0.6 + 0.25 * (math.ceil(len(classes) / columns) - 1)
    figure, axes = _draw_maps(maps, dict.fromkeys(maps, groups), 2.6, margin)
    for (_, method), axis in axes.items():
        beside = f"{axis.get_ylabel()}\n{method} 2".strip()
        axis.set(title="", xlabel=f"{method} 1", ylabel=beside)
    _name_above(figure, [groups], columns)
    return figure


def plot_labels_and_clusters(
    maps: Points, labels: np.ndarray, classes: Sequence[str], clusters: Arrays
) -> Figure:
    """Show points by stage and method twice: by (n,) label, and by (n,) cluster at each stage."""
    k = 1 + max(int(members.max()) for members in clusters.values())
    numbers, colours = [f"cluster {n + 1}" for n in range(k)], style.cluster_colours(k)
    both = {"label": style.colour_labels(labels, classes)}
    points, groups = {}, {}
    for (time, method), places in maps.items():
        both["cluster"] = Colouring(clusters[time], numbers, colours)
        for name, group in both.items():
            points[time, f"{method}, {name}"], groups[time, f"{method}, {name}"] = places, group
    margin = 1.2 + 0.25 * max(0, math.ceil((len(classes) + k) / 6) - 3)
    figure, _ = _draw_maps(points, groups, 2.1, margin)
    _name_above(figure, both.values(), min(6, len(classes) + k))
    return figure


def plot_stages(points: Points, labels: Arrays, classes: Mapping[str, Sequence[str]]) -> Figure:
    """Show points by set (row) and stage (column), coloured by the (n,) labels of a set."""
    groups = {key: style.colour_labels(labels[key[0]], classes[key[0]]) for key in points}
    figure, axes = _draw_maps(points, groups, 2.2, 0.7)
    last = list(points)[-1][1]
    for (name, at), axis in axes.items():
        if axis.get_ylabel():
            axis.set_ylabel(f"{name}\n(n = {len(labels[name]):,})")
        if at == last:
            options: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
            if len(classes[name]) > style.FEW:
                options |= {"ncols": 2, "fontsize": 7}
            axis.legend(_dots(groups[name, at].colours, 30), classes[name], **options)
    return figure


def plot_groups(
    points: np.ndarray, clusters: Colouring, labels: Colouring | None, method: str
) -> Figure:
    """Show (n, 2) points by cluster, whose numbers stand on them, and by label if there are any."""
    shown = {"cluster": clusters} | ({"label": labels} if labels else {})
    titled = {f"by {name} (n = {len(points):,})": groups for name, groups in shown.items()}
    figure, panels = style.new_panels(5.2 if labels is None else 4.6, titled)
    for axis, groups in panels:
        _draw_named(axis, points, groups, method)
    options: dict[str, Any] = {"ha": "center", "va": "center", "weight": "bold"}
    options["path_effects"] = [withStroke(linewidth=3, foreground="white")]
    for group in np.unique(clusters.groups):
        left, bottom = np.median(points[clusters.groups == group], axis=0)
        figure.axes[0].text(left, bottom, str(group + 1), **options)
    return figure


def plot_place(points: np.ndarray, known: Colouring, place: np.ndarray) -> Figure:
    """Show the (2,) place of a new text among (n, 2) points of known ones."""
    figure = Figure(figsize=(style.PAGE_WIDTH * 0.7, 3.8), layout="constrained")
    axis = figure.subplots()
    _draw_named(axis, points, known, "PCA")
    axis.plot(*place, "*", ms=17, color="black", mec="white", mew=1.2)
    axis.set_title(f"the sentence (star) among n = {len(points):,} texts")
    return figure


def _draw_maps(
    points: Points, groups: Mapping[tuple[str, str], Colouring], height: float, margin: float
) -> tuple[Figure, dict[tuple[str, str], Axes]]:
    """Draw a grid of maps; height is that of a row, margin that around them, in inches."""
    rows, columns = (list(dict.fromkeys(part)) for part in zip(*points, strict=True))
    figure, grid = style.new_grid(margin + height * len(rows), len(rows), len(columns))
    axes = {(r, c): grid[rows.index(r), columns.index(c)] for r, c in points}
    for (row, column), axis in axes.items():
        _draw_points(axis, points[row, column], groups[row, column])
        above, beside = row == rows[0], column == columns[0]
        axis.set(title=stage(column) * above, ylabel=stage(row) * beside)
    return figure, axes


def _draw_points(axis: Axes, points: np.ndarray, groups: Colouring, size: float = 5.0) -> None:
    """Draw the points of a map in random order, so that no group lies on top of another."""
    order = np.random.default_rng(0).permutation(len(points))
    colours = np.array(groups.colours)[groups.groups[order]]
    axis.scatter(points[order, 0], points[order, 1], s=size, lw=0, alpha=0.6, c=colours)
    axis.set(xticks=[], yticks=[])
    axis.set_aspect("equal", adjustable="datalim")


def _dots(colours: Sequence[str], area: float) -> list[Line2D]:
    return [Line2D([], [], color=colour, ls="", marker="o", ms=area**0.5) for colour in colours]


def _name_above(figure: Figure, groups: Collection[Colouring], columns: int) -> None:
    names = [name for part in groups for name in part.names]
    dots = [dot for part in groups for dot in _dots(part.colours, 40)]
    title = f"n = {len(next(iter(groups)).groups):,} in each map"
    figure.legend(dots, names, loc="outside upper center", ncols=columns, title=title)


def _draw_named(axis: Axes, points: np.ndarray, groups: Colouring, method: str) -> None:
    """Draw a large map; below it name its groups, unless they are too many, with their sizes."""
    _draw_points(axis, points, groups, np.clip(DOTS / len(points), 2, 30))
    axis.set(xlabel=f"{method} 1", ylabel=f"{method} 2")
    if len(groups.names) > MOST_NAMED:
        return
    named = zip(groups.names, np.bincount(groups.groups, minlength=len(groups.names)), strict=True)
    names = [f"{excerpt(name, LEGEND_WIDTH)} ({size:,})" for name, size in named]
    columns = 1 if max(map(len, names)) > LEGEND_WIDTH // 2 or len(names) < 3 else 3
    options: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.1)}
    axis.legend(_dots(groups.colours, 30), names, ncols=columns, fontsize="small", **options)


def plot_variance(shares: Arrays) -> Figure:
    """Show the share of the variance that principal components explain together, by stage."""
    _, (axis,) = style.new_figure(3.0)
    for colour, (name, parts) in zip(LINES, shares.items(), strict=False):
        total = np.cumsum(parts)
        axis.plot(np.arange(1, len(total) + 1), total, color=colour, lw=2, label=stage(name))
        axis.plot(2, total[1], "o", color=colour)
        axis.annotate(f"{total[1]:.0%}", (2, total[1]), (6, -12), textcoords="offset points")
    axis.axvline(2, color=GREY, ls=":", lw=1)
    ticks = [1, 2, 5, 10, 50, 100]
    axis.set(xscale="log", xticks=ticks, xticklabels=ticks, ylim=(0, 1.02))
    components = "principal components (a map shows two)"
    return finish(axis, xlabel=components, ylabel="share of the variance")


def plot_axis(positions: Arrays, labels: np.ndarray, classes: Sequence[str]) -> Figure:
    """Show (n,) positions of two classes by stage, whose training means are at -1 and +1."""
    figure, panels = style.new_panels(2.9, positions, sharey=True)
    low, high = np.quantile(np.concatenate(list(positions.values())), [0.001, 0.999])
    bins = list(np.linspace(low, high, 41))
    for axis, places in panels:
        for number, (name, colour) in enumerate(zip(classes, PALETTE, strict=False)):
            members = places[labels == number]
            axis.hist(members, bins=bins, color=colour, alpha=0.55, lw=0, label=name)
        for mean in (-1, 1):
            axis.axvline(mean, color=GREY, ls=":", lw=1)
        axis.set_xlabel("position (class means of training at -1, +1)")
    return finish(figure.axes[0], ylabel=f"reviews (n = {len(labels):,})")


def plot_pairs(positions: Arrays, names: Sequence[str]) -> Figure:
    """Show (pairs, 2) positions of negative and positive sides; above the diagonal is right."""
    titled = {f"{stage(name)} (n = {len(pairs)} pairs)": pairs for name, pairs in positions.items()}
    figure, panels = style.new_panels(3.9, titled)
    below, beside = (f"position of the {side} side" for side in names)
    for axis, pairs in panels:
        x, y = pairs.T
        span, right = (pairs.min() - 0.1, pairs.max() + 0.1), y > x
        axis.plot(span, span, color=GREY, ls="--", lw=1)
        axis.scatter(x[right], y[right], s=12, color=PALETTE[2], label="right order")
        axis.scatter(x[~right], y[~right], s=14, color=PALETTE[3], marker="x", label="wrong order")
        axis.set(xlim=span, ylim=span, aspect="equal", xlabel=below, ylabel=beside)
    return finish(figure.axes[0], {"loc": "lower right"})
