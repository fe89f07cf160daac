"""Figures about the source's own experiment."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from sentigeo.analysis.source_logs import SourceLog, is_share
from sentigeo.figures import style
from sentigeo.figures.style import GREY, LINES, PALETTE, finish, split
from sentigeo.stats import share

PALE = 0.45  # opacity of bars short of what the source gained
INK = "#A8487F"  # the colour of these bars, dark enough for letters
CONTROL = "#333333"
LABEL = 0.97  # height of the label, of the panel
BIN = 8  # points: accuracies of 13 and of 15 texts lie about as far apart
EPOCHS = {"last": "last epoch, as in the source study", "best": "best epoch of each training"}


def plot_source_logs(logs: dict[str, SourceLog]) -> Figure:
    """Show training and validation accuracy over epochs, the latter with Wilson's intervals.

    A validation accuracy that no number of texts can give is marked, without an interval.
    """
    figure, axes = style.new_figure(3.2, columns=2)
    for axis, (name, log), colour in zip(axes, logs.items(), LINES, strict=False):
        epochs, n = range(1, len(log.accuracy) + 1), log.validated
        axis.plot(epochs, log.accuracy, "o:", color=GREY, label="training")
        axis.plot(epochs, log.val_accuracy, "-", color=colour, lw=1.5)
        for epoch, rate in zip(epochs, log.val_accuracy, strict=True):
            if not is_share(rate, n):
                axis.plot(epoch, rate, "x", color=PALETTE[7], ms=9, mew=2, label="impossible")
                continue
            hits = log.hits(epoch - 1)
            found = share([True] * hits + [False] * (n - hits))
            bars = [[found.value - found.low], [found.high - found.value]]
            label = "validation" if epoch == 1 else None
            axis.errorbar(epoch, rate, yerr=bars, fmt="o", color=colour, capsize=3, label=label)
        title = f"{name} contrastive samples (n = {n})"
        axis.set(title=title, xlabel="epoch", xticks=epochs, ylim=(0.2, 1.03))
    axes[0].set_ylabel("accuracy")
    for axis in axes:
        finish(axis)
    return figure


def plot_reruns(gains: pd.DataFrame, claimed: Mapping[str, float]) -> Figure:
    """Show how much runs gained `with` samples and in the `control`, by `epoch`, and the claim.

    A bin begins at what the source gained, so that full bars are the runs that gained as much.
    """
    shown = {EPOCHS[epoch]: (rows, claimed[epoch]) for epoch, rows in split(gains, "epoch").items()}
    figure, panels = style.new_panels(3.8, shown, sharex=True, sharey=True)
    for axis, (rows, claim) in panels:
        _draw_gains(axis, rows, claim)
        axis.set_xlabel("validation accuracy gained (points)")
    figure.axes[0].set_ylabel(f"runs (of {gains['run'].nunique():,})")
    limit = 1.05 * max(abs(edge) for axis, _ in panels for edge in axis.dataLim.intervalx)
    top = 1.55 * max(axis.dataLim.ymax for axis, _ in panels)
    figure.axes[0].set(xlim=(-limit, limit), ylim=(0, top))
    sns.despine(figure)
    bars = [Patch(fc=LINES[1], alpha=PALE), Patch(fc="none", ec=CONTROL, lw=1.8)]
    names = ["with contrastive samples", "with further ordinary reviews instead"]
    figure.legend(bars, names, loc="outside lower center", ncols=2, frameon=False)
    return figure


def _draw_gains(axis: Axes, gains: pd.DataFrame, claim: float) -> None:
    """Draw both histograms in percentage points, and mark what the source gained."""
    at, points = 100 * claim, 100 * gains[["with", "control"]].to_numpy()
    least, most = (points.min() - at) // BIN, (points.max() - at) // BIN
    edges = at + BIN * np.arange(min(least, -1), max(most, 0) + 2)
    counts, control = (np.histogram(arm, edges)[0] for arm in points.T)
    for left, count in zip(edges[:-1], counts, strict=True):
        alpha = PALE if left < at else 1.0
        axis.bar(left, count, BIN, align="edge", color=LINES[1], alpha=alpha, lw=0)
    axis.stairs(control, edges, color=CONTROL, lw=1.8)
    axis.vlines(0, 0, max(counts.max(), control.max()), color=GREY, ls=":", lw=1)
    axis.axvline(at, ymax=LABEL, color=PALETTE[7], lw=2)
    told: dict[str, dict[str, Any]] = {
        f"source study: {at:+.0f}": {"color": PALETTE[7], "weight": "bold"},
        "as much or more:": {"color": PALETTE[7]},
        f"{(gains['with'] >= claim).mean():.1%} with samples": {"color": INK, "weight": "bold"},
        f"{(gains['control'] >= claim).mean():.1%} with reviews instead": {
            "color": CONTROL,
            "weight": "bold",
        },
    }
    here = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
    for line, (words, look) in enumerate(told.items()):
        look |= {"xytext": (-7, -14 * line), "ha": "right", "va": "top", **here}
        axis.annotate(words, (at, LABEL), **look)
    axis.grid(visible=False)
