"""Figures of maps and of the sentiment direction."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke

from sentigeo.figures import style
from sentigeo.figures.style import GREY, LINES, PALETTE, Colouring, new_figure, new_grid, stage
from sentigeo.text import excerpt

MOST_NAMED = 20  # groups that a legend can hold
LEGEND_WIDTH = 36  # characters of a name in it
Panels = Mapping[tuple[str, str], tuple[np.ndarray, Colouring]]  # points by row and column


def plot_maps(
    maps: dict[tuple[str, str], np.ndarray], labels: np.ndarray, classes: Sequence[str]
) -> Figure:
    """Show (n, 2) points by stage (row) and method (column), coloured by (n,) label."""
    groups = style.colour_labels(labels, classes)
    columns = len(classes) if len(classes) <= style.FEW else 6
    margin = 0.6 + 0.25 * (math.ceil(len(classes) / columns) - 1)
    figure, axes = _draw_maps({key: (own, groups) for key, own in maps.items()}, 2.6, margin)
    for (_, method), axis in axes.items():
        beside = f"{axis.get_ylabel()}\n{method} 2".strip()
        axis.set(title="", xlabel=f"{method} 1", ylabel=beside)
    _name_above(figure, groups.names, groups.colours, columns, len(labels))
    return figure


def plot_labels_and_clusters(
    maps: dict[tuple[str, str], np.ndarray],
    labels: np.ndarray,
    classes: Sequence[str],
    clusters: dict[str, np.ndarray],
) -> Figure:
    """Show (n, 2) points by stage and method twice: by (n,) label, and by cluster at each stage."""
    k = 1 + max(int(own.max()) for own in clusters.values())
    named, numbers = style.colour_labels(labels, classes), [f"cluster {n + 1}" for n in range(k)]
    panels = {}
    for (time, method), points in maps.items():
        groups = Colouring(clusters[time], numbers, style.cluster_colours(k))
        panels[time, f"{method}, label"] = points, named
        panels[time, f"{method}, cluster"] = points, groups
    margin = 1.2 + 0.25 * max(0, math.ceil((len(classes) + k) / 6) - 3)
    figure, _ = _draw_maps(panels, 2.1, margin)
    names, colours = [*classes, *numbers], [*named.colours, *style.cluster_colours(k)]
    _name_above(figure, names, colours, min(6, len(names)), len(labels))
    return figure


def plot_stages(
    points: dict[tuple[str, str], np.ndarray],
    labels: dict[str, np.ndarray],
    classes: dict[str, Sequence[str]],
) -> Figure:
    """Show (n, 2) points by set (row) and stage (column), coloured by the (n,) labels of a set."""
    groups = {name: style.colour_labels(labels[name], classes[name]) for name in labels}
    panels = {(name, at): (own, groups[name]) for (name, at), own in points.items()}
    figure, axes = _draw_maps(panels, 2.2, 0.7)
    last = list(points)[-1][1]
    for (name, at), axis in axes.items():
        if axis.get_ylabel():
            axis.set_ylabel(f"{name}\n(n = {len(labels[name]):,})")
        if at == last:
            many, own = len(classes[name]) > style.FEW, groups[name]
            axis.legend(
                _dots(own.colours, 30), own.names, loc="center left", bbox_to_anchor=(1.0, 0.5),
                ncols=2 if many else 1, fontsize=7 if many else None,
            )  # fmt: skip
    return figure


def plot_groups(
    points: np.ndarray, clusters: Colouring, labels: Colouring | None, method: str
) -> Figure:
    """Show (n, 2) points by cluster, whose numbers stand on them, and by label if there are any."""
    shown = {"cluster": clusters} | ({"label": labels} if labels else {})
    panels = {
        ("", f"by {name} (n = {len(points):,})"): (points, own) for name, own in shown.items()
    }
    figure, axes = _draw_maps(panels, 5.2 if labels is None else 4.6, 0.0, _dot_size(points))
    for axis, own in zip(axes.values(), shown.values(), strict=True):
        _name_below(axis, own, method)
    first = next(iter(axes.values()))
    for group in np.unique(clusters.groups):
        left, bottom = np.median(points[clusters.groups == group], axis=0)
        halo = [withStroke(linewidth=3, foreground="white")]
        first.text(left, bottom, str(group + 1), ha="center", va="center", weight="bold",
                   path_effects=halo)  # fmt: skip
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
    panels: Panels, height: float, margin: float, size: float = 5.0
) -> tuple[Figure, dict[tuple[str, str], Axes]]:
    """Draw a grid of maps with the names of columns above and of rows beside it.

    Height is that of a row, margin that of what stands above and below, both in inches.
    """
    rows, columns = (list(dict.fromkeys(part)) for part in zip(*panels, strict=True))
    figure, grid = new_grid(margin + height * len(rows), len(rows), len(columns))
    axes = {(r, c): grid[rows.index(r), columns.index(c)] for r, c in panels}
    for (row, column), (points, groups) in panels.items():
        _draw_points(axes[row, column], points, groups, size)
        above, beside = row == rows[0], column == columns[0]
        axes[row, column].set(title=stage(column) * above, ylabel=stage(row) * beside)
    return figure, axes


def _draw_points(axis: Axes, points: np.ndarray, groups: Colouring, size: float) -> None:
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


def _name_above(
    figure: Figure, names: Sequence[str], colours: Sequence[str], columns: int, count: int
) -> None:
    figure.legend(
        _dots(colours, 40), names, loc="outside upper center", ncols=columns,
        title=f"n = {count:,} in each map",
    )  # fmt: skip


def _name_below(axis: Axes, own: Colouring, method: str) -> None:
    """Name the axes of a map and, unless they are too many, its groups with their sizes."""
    axis.set(xlabel=f"{method} 1", ylabel=f"{method} 2")
    if len(own.names) > MOST_NAMED:
        return
    sizes = np.bincount(own.groups, minlength=len(own.names))
    named = zip(own.names, sizes, strict=True)
    names = [f"{excerpt(name, LEGEND_WIDTH)} ({size:,})" for name, size in named]
    columns = 1 if max(map(len, names)) > LEGEND_WIDTH // 2 or len(names) < 3 else 3
    axis.legend(_dots(own.colours, 30), names, loc="upper center", bbox_to_anchor=(0.5, -0.1),
                ncols=columns, fontsize="small")  # fmt: skip


def plot_variance(shares: dict[str, np.ndarray]) -> Figure:
    """Show the share of the variance that principal components explain together, by stage."""
    figure, (axis,) = new_figure(3.0)
    for colour, (name, own) in zip(LINES, shares.items(), strict=False):
        total = np.cumsum(own)
        axis.plot(np.arange(1, len(total) + 1), total, color=colour, lw=2, label=stage(name))
        axis.plot(2, total[1], "o", color=colour)
        axis.annotate(f"{total[1]:.0%}", (2, total[1]), (6, -12), textcoords="offset points")
    axis.axvline(2, color=GREY, ls=":", lw=1)
    axis.set_xscale("log")
    axis.set_xticks([1, 2, 5, 10, 50, 100], ["1", "2", "5", "10", "50", "100"])
    axis.set(xlabel="principal components (a map shows two)", ylabel="share of the variance")
    axis.set_ylim(0, 1.02)
    axis.legend()
    return figure


def plot_axis(
    positions: dict[str, np.ndarray], labels: np.ndarray, classes: Sequence[str]
) -> Figure:
    """Show (n,) positions of two classes by stage, whose training means are at -1 and +1."""
    figure, axes = new_figure(2.9, columns=len(positions), share_y=True)
    everything = np.concatenate(list(positions.values()))
    low, high = np.quantile(everything, [0.001, 0.999])
    bins = list(np.linspace(low, high, 41))
    for axis, (name, own) in zip(axes, positions.items(), strict=True):
        for number, (title, colour) in enumerate(zip(classes, PALETTE, strict=False)):
            axis.hist(own[labels == number], bins=bins, color=colour, alpha=0.55, lw=0, label=title)
        for mean in (-1, 1):
            axis.axvline(mean, color=GREY, ls=":", lw=1)
        axis.set(title=stage(name), xlabel="position (class means of training at -1, +1)")
    axes[0].set_ylabel(f"reviews (n = {len(labels):,})")
    axes[0].legend()
    return figure


def plot_pairs(positions: dict[str, np.ndarray], names: Sequence[str]) -> Figure:
    """Show (pairs, 2) positions of negative and positive sides; above the diagonal is right."""
    figure, axes = new_figure(3.9, columns=len(positions))
    for axis, (name, own) in zip(axes, positions.items(), strict=True):
        low, high = float(own.min()) - 0.1, float(own.max()) + 0.1
        right = own[:, 1] > own[:, 0]
        axis.plot([low, high], [low, high], color=GREY, ls="--", lw=1)
        (x, y), (p, q) = own[right].T, own[~right].T
        axis.scatter(x, y, s=12, color=PALETTE[2], label="right order")
        axis.scatter(p, q, s=14, color=PALETTE[3], marker="x", label="wrong order")
        axis.set(xlim=(low, high), ylim=(low, high), aspect="equal")
        sides = [f"position of the {side} side" for side in names]
        axis.set(title=f"{stage(name)} (n = {len(own)} pairs)", xlabel=sides[0], ylabel=sides[1])
    axes[0].legend(loc="lower right")
    return figure
