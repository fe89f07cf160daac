"""Figures of a person's own texts: an analysis in, a Figure out."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from sentigeo.cluster_plots import CLUSTER_COLOURS
from sentigeo.colours import spread_colours
from sentigeo.map_plots import plot_points
from sentigeo.page import excerpt
from sentigeo.plots import GREY, PAGE_WIDTH, PALETTE, new_figure

MOST_NAMED = 20  # groups that a legend can hold


def plot_groups(
    points: np.ndarray, groups: dict[str, tuple[np.ndarray, Sequence[str]]], method: str
) -> Figure:
    """Show a map, once for each way of grouping its points; clusters have their number on it.

    Args:
        points: (n, 2).
        groups: (n,) group of each point and the groups' names, such as clusters and labels.
        method: What kind of map it is.
    """
    figure, axes = new_figure(5.2 if len(groups) == 1 else 4.6, columns=len(groups))
    for axis, (title, (own, names)) in zip(axes, groups.items(), strict=True):
        colours = group_colours(title, len(names))
        plot_points(axis, points, own, colours, _point_size(len(points)))
        axis.set_title(f"by {title} (n = {len(points):,})")
        axis.set_xlabel(f"{method} 1")
        axis.set_ylabel(f"{method} 2")
        if title == "cluster":
            _number_groups(axis, points, own, len(names))
        if len(names) <= MOST_NAMED:
            _name_groups(axis, own, names, colours)
    return figure


def plot_place(
    points: np.ndarray,
    groups: np.ndarray,
    names: Sequence[str],
    colours: Sequence[str],
    place: np.ndarray,
) -> Figure:
    """Show where a new text lies among known ones.

    Args:
        points: (n, 2) known texts on a map.
        groups: (n,) their groups.
        names: Names of the groups.
        colours: Colours of the groups.
        place: (2,) the new text.
    """
    figure = Figure(figsize=(PAGE_WIDTH * 0.7, 3.8), layout="constrained")
    axis = figure.subplots()
    plot_points(axis, points, groups, colours, _point_size(len(points)))
    axis.plot(*place, "*", ms=17, color="black", mec="white", mew=1.2)
    axis.set_xlabel("PCA 1")
    axis.set_ylabel("PCA 2")
    axis.set_title(f"the sentence (star) among n = {len(points):,} texts")
    if len(names) <= MOST_NAMED:
        _name_groups(axis, groups, names, colours)
    return figure


def plot_choice(study: pd.DataFrame, k: int) -> Figure:
    """Show how stable each number of clusters is, and which was taken.

    Args:
        study: Columns `k`, `stability`, `error`, `silhouette`.
        k: The number that was taken.
    """
    figure, (left, right) = new_figure(3.0, columns=2)
    left.errorbar(study["k"], study["stability"], yerr=study["error"], fmt="o-", ms=4, capsize=2.5,
                  color=PALETTE[2])  # fmt: skip
    left.set_ylabel("stability (0 = chance)")
    right.plot(study["k"], study["silhouette"], "o-", ms=4, color=PALETTE[3])
    right.set_ylabel("silhouette")
    for axis in (left, right):
        axis.axvline(k, color=GREY, ls="--", lw=1)
        axis.annotate(f"k = {k}", (k, 1), (4, -12), xycoords=("data", "axes fraction"),
                      textcoords="offset points", color=GREY)  # fmt: skip
        axis.set_xticks(study["k"])
        axis.set_xlabel("k")
    return figure


def group_colours(title: str, count: int) -> list[str]:
    """Return a colour for each group: clusters never have the colours of labels."""
    return spread_colours(count, CLUSTER_COLOURS if title == "cluster" else PALETTE)


def _point_size(count: int) -> float:
    """Return the area of a point: a few are drawn large, very many small."""
    return float(np.clip(6_000 / count, 2, 30))


def _number_groups(axis: Axes, points: np.ndarray, groups: np.ndarray, count: int) -> None:
    """Write the number of each group where the middle of its points is."""
    for group in range(count):
        own = points[groups == group]
        if len(own):
            left, bottom = np.median(own, axis=0)
            halo = [withStroke(linewidth=3, foreground="white")]
            axis.text(left, bottom, str(group + 1), ha="center", va="center", weight="bold",
                      path_effects=halo)  # fmt: skip


def _name_groups(
    axis: Axes, groups: np.ndarray, names: Sequence[str], colours: Sequence[str]
) -> None:
    """List groups and their sizes below a map."""
    sizes = np.bincount(groups, minlength=len(names))
    for name, colour, size in zip(names, colours, sizes, strict=True):
        axis.scatter([], [], s=30, color=colour, label=f"{excerpt(name, 24)} ({size:,})")
    columns = 1 if len(names) == 1 else 2 if len(names) < 5 else 3
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=columns, fontsize="small")
