"""The look of every figure: page width, palette, colours."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito's palette, which colour-blind readers can tell apart; the first two are the
# negative and the positive class in every figure.
PALETTE = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")
# Paul Tol's muted scheme, which colour-blind readers can tell apart: a cluster is no label, so it
# has none of the colours of the classes.
CLUSTER_COLOURS = (
    "#117733", "#AA4499", "#DDCC77", "#332288", "#88CCEE", "#CC6677", "#999933", "#882255",
)  # fmt: skip
NAMING = 3  # keywords that name a cluster
GREY = "#666666"
FEW = len(PALETTE)  # classes up to which a figure names each of them in full
PAGE_WIDTH = 8.0
# Texts are shown as they are: a dollar sign begins no formula.
sns.set_theme(
    style="whitegrid", context="notebook", palette=list(PALETTE), font_scale=0.85,
    rc={"text.parse_math": False},
)  # fmt: skip
GRID = 18  # levels of red, green and blue that further colours are taken from
LIGHTNESS = (0.45, 0.85)  # of further colours, so that white paper and black both set them off
STRENGTH = 0.17  # most colourful they may be: strong ones shout beside the muted schemes of figures
# From linear RGB to the cones, and from there to lightness and two opponent colours (OKLab,
# Ottosson, 2020), where equal distances look equally large.
TO_CONES = np.array(
    [[0.4122214708, 0.5363325363, 0.0514459929],
     [0.2119034982, 0.6806995451, 0.1073969566],
     [0.0883024619, 0.2817188376, 0.6299787005]]
)  # fmt: skip
TO_LAB = np.array(
    [[0.2104542553, 0.7936177850, -0.0040720468],
     [1.9779984951, -2.4285922050, 0.4505937099],
     [0.0259040371, 0.7827717662, -0.8086757660]]
)  # fmt: skip


def new_figure(height: float, columns: int = 1, share_y: bool = False) -> tuple[Figure, list[Axes]]:
    """Return a figure of page width with its axes side by side."""
    figure = Figure(figsize=(PAGE_WIDTH, height), layout="constrained")
    axes = figure.subplots(1, columns, squeeze=False, sharey=share_y)
    return figure, list(axes[0])


def error_bars(frame: pd.DataFrame) -> np.ndarray:
    """Return the (2, n) lengths of error bars from `value` down to `low` and up to `high`."""
    lengths = [frame["value"] - frame["low"], frame["high"] - frame["value"]]
    return np.maximum(lengths, 0.0)  # equal numbers may differ in their last digit


def spread_colours(count: int, base: Sequence[str]) -> list[str]:
    """Return colours for groups: first those given, then each as unlike all others as can be.

    Args:
        count: How many are wanted.
        base: Hex colours to begin with.

    Returns:
        Hex colours, none of the first 2,000 twice.
    """
    colours = list(base[:count])
    levels = np.linspace(0, 255, GRID).round().astype(int)
    grid = np.stack(np.meshgrid(levels, levels, levels), axis=-1).reshape(-1, 3)
    seen = see_colours(grid)
    light, strength = seen[:, 0], np.hypot(seen[:, 1], seen[:, 2])
    usable = (light > LIGHTNESS[0]) & (light < LIGHTNESS[1]) & (strength < STRENGTH)
    grid, seen = grid[usable], seen[usable]
    taken = see_colours(np.array([list(bytes.fromhex(own[1:])) for own in colours]).reshape(-1, 3))
    nearest = np.full(len(grid), np.inf)
    for own in taken:
        nearest = np.minimum(nearest, np.linalg.norm(seen - own, axis=1))
    while len(colours) < count:
        best = int(nearest.argmax())
        colours.append("#{:02X}{:02X}{:02X}".format(*grid[best]))
        nearest = np.minimum(nearest, np.linalg.norm(seen - seen[best], axis=1))
    return colours


def see_colours(colours: np.ndarray) -> np.ndarray:
    """Return the (n, 3) OKLab coordinates of (n, 3) colours from 0 to 255."""
    shares = colours / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    return np.asarray(np.cbrt(linear @ TO_CONES.T) @ TO_LAB.T)


@dataclass(frozen=True)
class Colouring:
    """How points are coloured.

    Attributes:
        groups: (n,) number of each point's group, from 0.
        names: Names of the groups.
        colours: Hex colour of each group.
    """

    groups: np.ndarray
    names: Sequence[str]
    colours: Sequence[str]


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
