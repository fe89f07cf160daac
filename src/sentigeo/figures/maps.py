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
from sentigeo.figures.style import GREY, LINES, PALETTE, Colouring, finish, new_panels, stage
from sentigeo.text import excerpt

MOST_NAMED = 20  # groups that a legend can hold
LEGEND_WIDTH = 36  # characters of a name in it
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
    maps: Points, labels: np.ndarray, classes: Sequence[str], clusters: dict[str, np.ndarray]
) -> Figure:
    """Show points by stage and method twice: by (n,) label, and by (n,) cluster at each stage."""
    k = 1 + max(int(own.max()) for own in clusters.values())
    numbers, colours = [f"cluster {n + 1}" for n in range(k)], style.cluster_colours(k)
    both = {"label": style.colour_labels(labels, classes)}
    points, groups = {}, {}
    for (time, method), own in maps.items():
        both["cluster"] = Colouring(clusters[time], numbers, colours)
        for name, group in both.items():
            points[time, f"{method}, {name}"], groups[time, f"{method}, {name}"] = own, group
    margin = 1.2 + 0.25 * max(0, math.ceil((len(classes) + k) / 6) - 3)
    figure, _ = _draw_maps(points, groups, 2.1, margin)
    _name_above(figure, both.values(), min(6, len(classes) + k))
    return figure


def plot_stages(
    points: Points, labels: dict[str, np.ndarray], classes: dict[str, Sequence[str]]
) -> Figure:
    """Show points by set (row) and stage (column), coloured by the (n,) labels of a set."""
    groups = {key: style.colour_labels(labels[key[0]], classes[key[0]]) for key in points}
    figure, axes = _draw_maps(points, groups, 2.2, 0.7)
    last = list(points)[-1][1]
    for (name, at), axis in axes.items():
        if axis.get_ylabel():
            axis.set_ylabel(f"{name}\n(n = {len(labels[name]):,})")
        if at == last:
            many = len(classes[name]) > style.FEW
            look: dict[str, Any] = {"ncols": 2, "fontsize": 7} if many else {}
            dots = _dots(groups[name, at].colours, 30)
            axis.legend(dots, classes[name], loc="center left", bbox_to_anchor=(1.0, 0.5), **look)
    return figure


def plot_groups(
    points: np.ndarray, clusters: Colouring, labels: Colouring | None, method: str
) -> Figure:
    """Show (n, 2) points by cluster, whose numbers stand on them, and by label if there are any."""
    shown = {"cluster": clusters} | ({"label": labels} if labels else {})
    titled = {f"by {name} (n = {len(points):,})": own for name, own in shown.items()}
    figure, panels = new_panels(5.2 if labels is None else 4.6, titled)
    for axis, own in panels:
        _draw_points(axis, points, own, _dot_size(points))
        _name_below(axis, own, method)
    look: dict[str, Any] = {"ha": "center", "va": "center", "weight": "bold"}
    halo = [withStroke(linewidth=3, foreground="white")]
    for group in np.unique(clusters.groups):
        left, bottom = np.median(points[clusters.groups == group], axis=0)
        figure.axes[0].text(left, bottom, str(group + 1), path_effects=halo, **look)
    return figure


def plot_place(points: np.ndarray, known: Colouring, place: np.ndarray) -> Figure:
    """Show the (2,) place of a new text among (n, 2) points of known ones."""
    figure = Figure(figsize=(style.PAGE_WIDTH * 0.7, 3.8), layout="constrained")
    axis = figure.subplots()
    _draw_points(axis, points, known, _dot_size(points))
    _name_below(axis, known, "PCA")
    axis.plot(*place, "*", ms=17, color="black", mec="white", mew=1.2)
    axis.set_title(f"the sentence (star) among n = {len(points):,} texts")
    return figure


def _draw_maps(
    points: Points, groups: Mapping[tuple[str, str], Colouring], height: float, margin: float
) -> tuple[Figure, dict[tuple[str, str], Axes]]:
    """Draw a grid of maps with the names of columns above and of rows beside it.

    Height is that of a row, margin that of what stands above and below, both in inches.
    """
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


def _dot_size(points: np.ndarray) -> float:
    """Return the area of a point: a few are large and very many small."""
    return float(np.clip(6_000 / len(points), 2, 30))


def _dots(colours: Sequence[str], area: float) -> list[Line2D]:
    size = math.sqrt(area)
    return [Line2D([], [], color=colour, ls="", marker="o", ms=size) for colour in colours]


def _name_above(figure: Figure, groups: Collection[Colouring], columns: int) -> None:
    names = [name for own in groups for name in own.names]
    dots = [dot for own in groups for dot in _dots(own.colours, 40)]
    title = f"n = {len(next(iter(groups)).groups):,} in each map"
    figure.legend(dots, names, loc="outside upper center", ncols=columns, title=title)


def _name_below(axis: Axes, own: Colouring, method: str) -> None:
    """Name the axes of a map and, unless they are too many, its groups with their sizes."""
    axis.set(xlabel=f"{method} 1", ylabel=f"{method} 2")
    if len(own.names) > MOST_NAMED:
        return
    named = zip(own.names, np.bincount(own.groups, minlength=len(own.names)), strict=True)
    names = [f"{excerpt(name, LEGEND_WIDTH)} ({size:,})" for name, size in named]
    columns = 1 if max(map(len, names)) > LEGEND_WIDTH // 2 or len(names) < 3 else 3
    look: dict[str, Any] = {"bbox_to_anchor": (0.5, -0.1), "ncols": columns, "fontsize": "small"}
    axis.legend(_dots(own.colours, 30), names, loc="upper center", **look)


def plot_variance(shares: dict[str, np.ndarray]) -> Figure:
    """Show the share of the variance that principal components explain together, by stage."""
    _, (axis,) = style.new_figure(3.0)
    for colour, (name, own) in zip(LINES, shares.items(), strict=False):
        total = np.cumsum(own)
        axis.plot(np.arange(1, len(total) + 1), total, color=colour, lw=2, label=stage(name))
        axis.plot(2, total[1], "o", color=colour)
        axis.annotate(f"{total[1]:.0%}", (2, total[1]), (6, -12), textcoords="offset points")
    axis.axvline(2, color=GREY, ls=":", lw=1)
    ticks = [1, 2, 5, 10, 50, 100]
    axis.set(xscale="log", xticks=ticks, xticklabels=ticks, ylim=(0, 1.02))
    told = "principal components (a map shows two)"
    return finish(axis, xlabel=told, ylabel="share of the variance")


def plot_axis(
    positions: dict[str, np.ndarray], labels: np.ndarray, classes: Sequence[str]
) -> Figure:
    """Show (n,) positions of two classes by stage, whose training means are at -1 and +1."""
    figure, panels = new_panels(2.9, positions, sharey=True)
    low, high = np.quantile(np.concatenate(list(positions.values())), [0.001, 0.999])
    bins = list(np.linspace(low, high, 41))
    for axis, own in panels:
        for number, (title, colour) in enumerate(zip(classes, PALETTE, strict=False)):
            axis.hist(own[labels == number], bins=bins, color=colour, alpha=0.55, lw=0, label=title)
        for mean in (-1, 1):
            axis.axvline(mean, color=GREY, ls=":", lw=1)
        axis.set_xlabel("position (class means of training at -1, +1)")
    return finish(figure.axes[0], ylabel=f"reviews (n = {len(labels):,})")


def plot_pairs(positions: dict[str, np.ndarray], names: Sequence[str]) -> Figure:
    """Show (pairs, 2) positions of negative and positive sides; above the diagonal is right."""
    titled = {f"{stage(name)} (n = {len(own)} pairs)": own for name, own in positions.items()}
    figure, panels = new_panels(3.9, titled)
    below, beside = (f"position of the {side} side" for side in names)
    for axis, own in panels:
        span, right = (float(own.min()) - 0.1, float(own.max()) + 0.1), own[:, 1] > own[:, 0]
        axis.plot(span, span, color=GREY, ls="--", lw=1)
        (x, y), (p, q) = own[right].T, own[~right].T
        axis.scatter(x, y, s=12, color=PALETTE[2], label="right order")
        axis.scatter(p, q, s=14, color=PALETTE[3], marker="x", label="wrong order")
        axis.set(xlim=span, ylim=span, aspect="equal", xlabel=below, ylabel=beside)
    return finish(figure.axes[0], {"loc": "lower right"})
