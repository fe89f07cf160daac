"""Figures of a person's own texts: an analysis in, a Figure out."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from sentigeo.cluster_plots import CLUSTER_COLOURS
from sentigeo.colours import spread_colours
from sentigeo.map_page import Colouring
from sentigeo.map_plots import plot_points
from sentigeo.page import excerpt
from sentigeo.plots import GREY, PAGE_WIDTH, PALETTE, new_figure

NAMING = 3  # keywords that name a cluster
MOST_NAMED = 20  # groups that a legend can hold
LEGEND_WIDTH = 36  # characters of a name in it


def colour_clusters(members: np.ndarray, overview: pd.DataFrame) -> Colouring:
    """Colour texts by cluster, which is named by its number and first keywords.

    Args:
        members: (n,) cluster of each text, from 0.
        overview: Columns `cluster` (from 1), `keywords`.
    """
    words = [", ".join(own.split(", ")[:NAMING]) for own in overview["keywords"]]
    numbered = zip(overview["cluster"], words, strict=True)
    names = [f"cluster {number}: {own}" if own else f"cluster {number}" for number, own in numbered]
    return Colouring(members, names, spread_colours(len(names), CLUSTER_COLOURS))


def colour_labels(labels: np.ndarray, classes: Sequence[str]) -> Colouring:
    """Colour texts by label; labels and clusters never have the same colours."""
    return Colouring(labels, classes, spread_colours(len(classes), PALETTE))


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
