"""What all figures share: page width, colours, names, and the parts they are made of."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

Shown = TypeVar("Shown")
Arrays = Mapping[str, np.ndarray]  # by stage or set
# Okabe and Ito's palette, which colour-blind readers can tell apart; the first two are the
# negative and the positive class in every figure.
PALETTE = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")
# Paul Tol's muted scheme, which colour-blind readers can tell apart: a cluster is no label, so it
# has none of the colours of the classes.
CLUSTER_COLOURS = (
    "#117733", "#AA4499", "#DDCC77", "#332288", "#88CCEE", "#CC6677", "#999933", "#882255",
)  # fmt: skip
LINES = PALETTE[2:] * 3  # of lines and conditions, which are no classes
STAGES = {"before": "pretrained", "after": "fine-tuned"}
NAMING = 3  # keywords that name a cluster
GREY = "#666666"
BESIDE = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}  # where a legend has room
FEW = len(PALETTE)  # classes up to which a figure names each of them in full
PAGE_WIDTH = 8.0
# Texts are shown as they are: a dollar sign begins no formula.
sns.set_theme(
    style="whitegrid", context="notebook", palette=list(PALETTE), font_scale=0.85,
    rc={"text.parse_math": False},
)  # fmt: skip


def stage(name: str) -> str:
    """Return what readers call a stage of the encoder; any other name stays as it is."""
    return STAGES.get(name, name)


def class_colours(count: int) -> list[str]:
    """Return hex colours of classes; evenly spaced hues where the palette has too few."""
    many = sns.husl_palette(count, s=0.9, l=0.65).as_hex()
    return list(PALETTE[:count] if count <= FEW else many)


def cluster_colours(count: int) -> list[str]:
    """Return hex colours of clusters, which no class has."""
    many = sns.husl_palette(count, s=0.9, l=0.5).as_hex()
    return list(CLUSTER_COLOURS[:count] if count <= len(CLUSTER_COLOURS) else many)


def new_grid(height: float, rows: int, columns: int, **shared: Any) -> tuple[Figure, np.ndarray]:
    """Return a figure of page width with (rows, columns) axes."""
    figure = Figure(figsize=(PAGE_WIDTH, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **shared)


def new_figure(height: float, columns: int = 1) -> tuple[Figure, list[Axes]]:
    """Return a figure of page width with its axes side by side."""
    figure, axes = new_grid(height, 1, columns)
    return figure, list(axes[0])


def new_panels(
    height: float, shown: Mapping[str, Shown], **shared: Any
) -> tuple[Figure, list[tuple[Axes, Shown]]]:
    """Return a figure with a titled panel for each thing that is shown, and both in pairs."""
    figure, axes = new_grid(height, 1, len(shown), **shared)
    for axis, title in zip(axes[0], shown, strict=True):
        axis.set_title(stage(title))
    return figure, list(zip(axes[0], shown.values(), strict=True))


def finish(axis: Axes, legend: Mapping[str, Any] | None = None, **names: str) -> Figure:
    """Name the axes of a chart, put a legend into it, and return its figure."""
    axis.set(**names)
    axis.legend(**(legend or {}))
    return axis.figure  # type: ignore[return-value]


def split(frame: pd.DataFrame, column: str) -> dict[str, pd.DataFrame]:
    """Return the rows of each value of a column, in the order in which the values come."""
    return {str(name): rows for name, rows in frame.groupby(column, sort=False)}


def error_bars(frame: pd.DataFrame) -> np.ndarray:
    """Return the (2, n) lengths of error bars from `value` down to `low` and up to `high`."""
    lengths = [frame["value"] - frame["low"], frame["high"] - frame["value"]]
    return np.maximum(lengths, 0.0)  # equal numbers may differ in their last digit


def draw_line(axis: Axes, x: Any, y: Any, colour: str, bars: Any = None, **options: Any) -> None:
    """Draw a line through dots; bars are the (n,) or (2, n) lengths of their error bars."""
    options = {"fmt": "o-", "ms": 4, "capsize": 2.5, "zorder": 2, **options}
    axis.errorbar(x, y, yerr=bars, color=colour, **options)


def draw_dots(axis: Axes, rows: pd.DataFrame, y: Any, colour: str, **options: Any) -> None:
    """Draw estimates as dots at (n,) heights, with their intervals as error bars."""
    draw_line(axis, rows["value"], y, colour, xerr=error_bars(rows), fmt="o", ms=5, **options)


def draw_heat_map(
    axis: Axes, values: np.ndarray, across: Sequence[str], down: Sequence[str], **options: Any
) -> AxesImage:
    """Draw (rows, columns) values as coloured cells with the names of columns and rows."""
    image = axis.imshow(values, **{"cmap": "Blues", "vmin": 0.0, "vmax": 1.0, **options})
    axis.set_xticks(range(len(across)), across)
    axis.set_yticks(range(len(down)), down)
    axis.grid(visible=False)
    return image


def name_rows(axis: Axes, names: Collection[str]) -> None:
    """Name the rows of a chart, which lie at 0, 1, ... from the top."""
    axis.set_yticks(range(len(names)), list(names))
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.grid(axis="y", visible=False)


@dataclass(frozen=True)
class Colouring:
    """How points are coloured: their groups, with a name and a hex colour each."""

    groups: np.ndarray  # (n,) from 0
    names: Sequence[str]
    colours: Sequence[str]

    def at(self, rows: np.ndarray) -> "Colouring":
        """Return the colouring of some rows."""
        return replace(self, groups=self.groups[rows])


def colour_clusters(members: np.ndarray, overview: pd.DataFrame) -> Colouring:
    """Colour texts by (n,) cluster, named by the first `keywords` of each `cluster` (from 1)."""
    words = overview["keywords"].str.split(", ").str[:NAMING].str.join(", ")
    names = ("cluster " + overview["cluster"].astype(str) + ": " + words).str.removesuffix(": ")
    return Colouring(members, list(names), cluster_colours(len(names)))


def colour_labels(labels: np.ndarray, classes: Sequence[str]) -> Colouring:
    """Colour texts by label; labels and clusters never have the same colours."""
    return Colouring(labels, classes, class_colours(len(classes)))
