"""Figures of maps and of the sentiment direction: an analysis in, a Figure out."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from sentigeo.figures.style import (
    FEW,
    GREY,
    PAGE_WIDTH,
    PALETTE,
    Colouring,
    new_figure,
    spread_colours,
)
from sentigeo.text import excerpt

MOST_NAMED = 20  # groups that a legend can hold
LEGEND_WIDTH = 36  # characters of a name in it


def plot_maps(
    maps: dict[tuple[str, str], np.ndarray], labels: np.ndarray, classes: Sequence[str]
) -> Figure:
    """Show maps of the same points, a row a time, a column a method.

    Args:
        maps: (n, 2) points by time and method.
        labels: (n,) class of each point.
        classes: Names of the classes.
    """
    times, methods = (list(dict.fromkeys(part)) for part in zip(*maps, strict=True))
    columns = len(classes) if len(classes) <= FEW else 6
    height = 0.6 + 2.6 * len(times) + 0.25 * (math.ceil(len(classes) / columns) - 1)
    figure = Figure(figsize=(PAGE_WIDTH, height), layout="constrained")
    axes = figure.subplots(len(times), len(methods), squeeze=False)
    colours = spread_colours(len(classes), PALETTE)
    for (time, method), points in maps.items():
        axis = axes[times.index(time), methods.index(method)]
        plot_points(axis, points, labels, colours)
        axis.set_xlabel(f"{method} 1")
        axis.set_ylabel(f"{time}\n{method} 2" if method == methods[0] else f"{method} 2")
    handles = [
        axes[0, 0].scatter([], [], s=40, color=colour, label=name)
        for name, colour in zip(classes, colours, strict=True)
    ]
    figure.legend(
        handles=handles, loc="outside upper center", ncols=columns,
        title=f"n = {len(labels):,} in each map",
    )  # fmt: skip
    return figure


def plot_points(
    axis: Axes, points: np.ndarray, groups: np.ndarray, colours: Sequence[str], size: float = 5.0
) -> None:
    """Draw the points of a map, coloured by group; no group lies on top of another.

    Args:
        axis: Where to draw.
        points: (n, 2).
        groups: (n,) group of each point.
        colours: Colour of each group.
        size: Area of a point.
    """
    order = np.random.default_rng(0).permutation(len(points))
    own = np.array(colours)[groups[order]]
    axis.scatter(points[order, 0], points[order, 1], s=size, lw=0, alpha=0.6, c=own)
    axis.set_xticks([])
    axis.set_yticks([])
    axis.set_aspect("equal", adjustable="datalim")


def plot_variance(shares: dict[str, np.ndarray]) -> Figure:
    """Show what share of the variance the first principal components explain together.

    Args:
        shares: Share of each component, by name.
    """
    figure, (axis,) = new_figure(3.0)
    for number, (name, own) in enumerate(shares.items()):
        total = np.cumsum(own)
        axis.plot(np.arange(1, len(total) + 1), total, color=PALETTE[2 + number], lw=2, label=name)
        axis.plot(2, total[1], "o", color=PALETTE[2 + number])
        axis.annotate(f"{total[1]:.0%}", (2, total[1]), (6, -12), textcoords="offset points")
    axis.axvline(2, color=GREY, ls=":", lw=1)
    axis.set_xscale("log")
    axis.set_xticks([1, 2, 5, 10, 50, 100], ["1", "2", "5", "10", "50", "100"])
    axis.set_ylim(0, 1.02)
    axis.set_xlabel("principal components (a map shows two)")
    axis.set_ylabel("share of the variance")
    axis.legend()
    return figure


def plot_axis(
    positions: dict[str, np.ndarray], labels: np.ndarray, classes: Sequence[str]
) -> Figure:
    """Show how two classes lie along an axis on which their training means are at -1 and +1.

    Args:
        positions: (n,) positions, a panel a name.
        labels: (n,) classes.
        classes: Names of the two classes.
    """
    figure, axes = new_figure(2.9, columns=len(positions), share_y=True)
    everything = np.concatenate(list(positions.values()))
    low, high = np.quantile(everything, [0.001, 0.999])
    bins = list(np.linspace(low, high, 41))
    for axis, (name, own) in zip(axes, positions.items(), strict=True):
        for number, colour in enumerate(PALETTE[: len(classes)]):
            axis.hist(own[labels == number], bins=bins, color=colour, alpha=0.55, lw=0,
                      label=classes[number])  # fmt: skip
        for mean in (-1, 1):
            axis.axvline(mean, color=GREY, ls=":", lw=1)
        axis.set_title(name)
        axis.set_xlabel("position (class means of training at -1, +1)")
    axes[0].set_ylabel(f"reviews (n = {len(labels):,})")
    axes[0].legend()
    return figure


def plot_pairs(positions: dict[str, np.ndarray], names: Sequence[str]) -> Figure:
    """Show where the two sides of pairs lie: above the diagonal they are the right way round.

    Args:
        positions: (pairs, 2) positions of the negative and of the positive side, by panel.
        names: Names of the two sides.
    """
    figure, axes = new_figure(3.9, columns=len(positions))
    for axis, (name, own) in zip(axes, positions.items(), strict=True):
        low, high = float(own.min()) - 0.1, float(own.max()) + 0.1
        right = own[:, 1] > own[:, 0]
        axis.plot([low, high], [low, high], color=GREY, ls="--", lw=1)
        axis.scatter(own[right, 0], own[right, 1], s=12, color=PALETTE[2], label="right way round")
        axis.scatter(
            own[~right, 0],
            own[~right, 1],
            s=14,
            color=PALETTE[3],
            marker="x",
            label="wrong way round",
        )
        axis.set_xlim(low, high)
        axis.set_ylim(low, high)
        axis.set_aspect("equal")
        axis.set_title(f"{name} (n = {len(own)} pairs)")
        axis.set_xlabel(f"position of the {names[0]} side")
        axis.set_ylabel(f"position of the {names[1]} side")
    axes[0].legend(loc="lower right")
    return figure


def plot_groups(
    points: np.ndarray, clusters: Colouring, labels: Colouring | None, method: str
) -> Figure:
    """Show a map coloured by cluster, whose numbers stand on it, and beside it by label.

    Args:
        points: (n, 2).
        clusters: Cluster of each point.
        labels: Label of each point, if there are any.
        method: What kind of map it is.
    """
    panels = {"cluster": clusters} | ({"label": labels} if labels else {})
    figure, axes = new_figure(5.2 if len(panels) == 1 else 4.6, columns=len(panels))
    for axis, (title, own) in zip(axes, panels.items(), strict=True):
        _plot_map(axis, points, own, method)
        axis.set_title(f"by {title} (n = {len(points):,})")
    _number_groups(axes[0], points, clusters.groups)
    return figure


def plot_place(points: np.ndarray, known: Colouring, place: np.ndarray) -> Figure:
    """Show where a new text lies among known ones.

    Args:
        points: (n, 2) known texts on a map.
        known: Their groups.
        place: (2,) the new text.
    """
    figure = Figure(figsize=(PAGE_WIDTH * 0.7, 3.8), layout="constrained")
    axis = figure.subplots()
    _plot_map(axis, points, known, "PCA")
    axis.plot(*place, "*", ms=17, color="black", mec="white", mew=1.2)
    axis.set_title(f"the sentence (star) among n = {len(points):,} texts")
    return figure


def plot_choice(study: pd.DataFrame, k: int) -> Figure:
    """Show how stable each number of clusters is, against clouds, and which was taken.

    Args:
        study: As `study_stability` returns it.
        k: The number that was taken.
    """
    figure, (left, right) = new_figure(3.0, columns=2)
    left.errorbar(study["k"], study["stability"], yerr=study["spread"], fmt="o-", ms=4, capsize=2.5,
                  color=PALETTE[2], label="the texts")  # fmt: skip
    left.plot(study["k"], study["cloud"], "o--", ms=4, color=GREY, label="clouds without groups")
    left.set_ylabel("stability (0 = chance)")
    left.legend()
    right.plot(study["k"], study["silhouette"], "o-", ms=4, color=PALETTE[3])
    right.set_ylabel("silhouette")
    for axis in (left, right):
        axis.axvline(k, color=GREY, ls=":", lw=1)
        axis.annotate(f"k = {k}", (k, 1), (4, -12), xycoords=("data", "axes fraction"),
                      textcoords="offset points", color=GREY)  # fmt: skip
        axis.set_xticks(study["k"])
        axis.set_xlabel("k")
    return figure


def _plot_map(axis: Axes, points: np.ndarray, own: Colouring, method: str) -> None:
    """Draw the points of a map, a few large and very many small, and name their groups."""
    size = float(np.clip(6_000 / len(points), 2, 30))
    plot_points(axis, points, own.groups, own.colours, size)
    axis.set_xlabel(f"{method} 1")
    axis.set_ylabel(f"{method} 2")
    if len(own.names) <= MOST_NAMED:
        _name_groups(axis, own)


def _number_groups(axis: Axes, points: np.ndarray, groups: np.ndarray) -> None:
    """Write the number of each group where the middle of its points is."""
    for group in np.unique(groups):
        left, bottom = np.median(points[groups == group], axis=0)
        halo = [withStroke(linewidth=3, foreground="white")]
        axis.text(left, bottom, str(group + 1), ha="center", va="center", weight="bold",
                  path_effects=halo)  # fmt: skip


def _name_groups(axis: Axes, own: Colouring) -> None:
    """List groups and their sizes below a map."""
    sizes = np.bincount(own.groups, minlength=len(own.names))
    named = zip(own.names, sizes, strict=True)
    names = [f"{excerpt(name, LEGEND_WIDTH)} ({size:,})" for name, size in named]
    dots = [axis.scatter([], [], s=30, color=colour) for colour in own.colours]
    columns = 1 if max(map(len, names)) > LEGEND_WIDTH // 2 or len(names) < 3 else 3
    axis.legend(dots, names, loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=columns,
                fontsize="small")  # fmt: skip
