"""Every figure of the report: an analysis in, a Figure out."""

from collections.abc import Sequence
from itertools import cycle

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# Okabe and Ito's palette, which colour-blind readers can tell apart; the first two are the
# negative and the positive class in every figure.
PALETTE = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")
GREY = "#666666"
PAGE_WIDTH = 8.0

sns.set_theme(style="whitegrid", context="notebook", palette=list(PALETTE), font_scale=0.85)


def new_figure(height: float, columns: int = 1, share_y: bool = False) -> tuple[Figure, list[Axes]]:
    """Return a figure of page width with its axes side by side."""
    figure = Figure(figsize=(PAGE_WIDTH, height), layout="constrained")
    axes = figure.subplots(1, columns, squeeze=False, sharey=share_y)
    return figure, list(axes[0])


def plot_lengths(
    tokens: np.ndarray, labels: np.ndarray, classes: Sequence[str], cuts: Sequence[int]
) -> Figure:
    """Show how long reviews are, and what share of them each token budget cuts.

    Args:
        tokens: (n,) tokens of each review.
        labels: (n,) class of each review.
        classes: Names of the classes.
        cuts: Token budgets.
    """
    figure, (left, right) = new_figure(3.4, columns=2)
    bins = list(np.geomspace(max(tokens.min(), 1), tokens.max() + 1, 40))
    for number, (name, colour) in enumerate(zip(classes, cycle(PALETTE), strict=False)):
        sizes = np.sort(tokens[labels == number])
        left.hist(sizes, bins=bins, histtype="step", lw=1.8, color=colour, label=name)
        shares = 1 - np.arange(1, len(sizes) + 1) / len(sizes)
        right.plot(sizes, shares, lw=1.8, color=colour, label=name)
    for cut in cuts:
        cut_share = float((tokens > cut).mean())
        left.axvline(cut, color=GREY, ls=":", lw=1)
        right.axvline(cut, color=GREY, ls=":", lw=1)
        right.annotate(
            f"{cut}: {cut_share:.0%}", (cut, cut_share), (5, 6), textcoords="offset points"
        )
    for axis in (left, right):
        axis.set_xscale("log")
        axis.set_xticks([32, 128, 256, 512, 1024], ["32", "128", "256", "512", "1024"])
        axis.minorticks_off()
        axis.set_xlabel("tokens of a review")
    left.set_ylabel("reviews")
    right.set_ylabel("share of reviews that are longer")
    left.legend(title=f"n = {len(tokens):,}", loc="upper left")
    return figure


def plot_estimates(frame: pd.DataFrame, axis_label: str, chance: float | None = None) -> Figure:
    """Show estimates with their intervals, a row each, one panel a group.

    Args:
        frame: Columns `group`, `name`, `value`, `low`, `high`, `n`; rows from top to bottom.
        axis_label: What the numbers are.
        chance: What guessing would give.
    """
    groups = list(dict.fromkeys(frame["group"]))
    names = list(dict.fromkeys(frame["name"]))
    height = 1.3 + 0.28 * len(names)
    figure, axes = new_figure(height, columns=len(groups), share_y=True)
    for axis, group in zip(axes, groups, strict=True):
        rows = frame[frame["group"] == group]
        places = [names.index(name) for name in rows["name"]]
        errors = [rows["value"] - rows["low"], rows["high"] - rows["value"]]
        axis.errorbar(rows["value"], places, xerr=errors, fmt="o", color=PALETTE[1], capsize=3)
        if chance is not None:
            axis.axvline(chance, color=GREY, ls="--", lw=1)
        sizes = rows["n"].unique()
        counts = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes.min():,} to {sizes.max():,}"
        axis.set_title(f"{group} (n = {counts})")
        axis.set_xlim(-0.05, 1.05)
        axis.set_xticks([0, 0.25, 0.5, 0.75, 1])
        axis.set_xlabel(axis_label)
        axis.grid(axis="y", visible=False)
    axes[0].set_yticks(range(len(names)), names)
    axes[0].set_ylim(len(names) - 0.5, -0.5)
    return figure
