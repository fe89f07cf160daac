"""Figures of estimates with their intervals, and of lengths, training and verdicts."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from sentigeo.figures import style
from sentigeo.figures.style import GREY, LINES, PALETTE, draw_line, error_bars, new_figure, stage
from sentigeo.stats import unfold

# Colours of a tile and of the ink on it, from blue over white to vermilion.
VERDICT_COLOURS = {
    "supported": ("#0072B2", "white"),
    "partly": ("#9CCBE4", "black"),
    "not supported": ("#F4D3B8", "black"),
    "refuted": ("#D55E00", "white"),
    "not testable in this profile": ("#EEEEEE", "black"),
}


def plot_lengths(
    tokens: np.ndarray, labels: np.ndarray, classes: Sequence[str], cuts: Sequence[int]
) -> Figure:
    """Show how many tokens (n,) reviews have by class, and what share of them each budget cuts."""
    figure, (left, right) = new_figure(max(3.4, 1.0 + 0.2 * len(classes)), columns=2)
    bins = sorted({round(edge) for edge in np.geomspace(tokens.min(), tokens.max() + 1, 40)})
    for number, (name, colour) in enumerate(
        zip(classes, style.class_colours(len(classes)), strict=True)
    ):
        sizes = np.sort(tokens[labels == number])
        left.hist(sizes, bins=bins, histtype="step", lw=1.8, color=colour, label=name)
        shares = 1 - np.arange(1, len(sizes) + 1) / len(sizes)
        right.plot(sizes, shares, lw=1.8, color=colour, label=name)
    for cut in (cut for cut in cuts if cut < tokens.max()):
        share = float((tokens > cut).mean())
        left.axvline(cut, color=GREY, ls=":", lw=1)
        right.axvline(cut, color=GREY, ls=":", lw=1)
        right.annotate(f"{cut}: {share:.0%}", (cut, share), (5, 6), textcoords="offset points")
    for axis, label in ((left, "reviews"), (right, "share of reviews that are longer")):
        axis.set(xscale="log", xlabel="tokens of a review", ylabel=label)
        axis.set_xticks([32, 128, 256, 512, 1024], ["32", "128", "256", "512", "1024"])
        axis.minorticks_off()
    beside = {} if len(classes) <= style.FEW else {"bbox_to_anchor": (1.0, 1.0)}
    (right if beside else left).legend(title=f"n = {len(tokens):,}", loc="upper left", **beside)
    return figure


def plot_estimates(frame: pd.DataFrame, axis_label: str, reference: float | None = None) -> Figure:
    """Show estimates with their intervals, one row per name, one panel per group.

    Args:
        frame: Columns `group`, `name`, `estimate`; rows from top to bottom.
        axis_label: What the numbers are.
        reference: A value to compare with, such as what guessing would give.
    """
    groups, names = (list(dict.fromkeys(frame[column])) for column in ("group", "name"))
    figure, axes = new_figure(1.3 + 0.28 * len(names), columns=len(groups), share_y=True)
    for axis, group in zip(axes, groups, strict=True):
        rows = unfold(frame[frame["group"] == group]).assign(condition=group)
        _draw_dots(axis, rows, names, {group: PALETTE[1]}, axis_label, reference)
        sizes = rows["n"].unique()
        counts = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes.min():,} to {sizes.max():,}"
        axis.set(title=f"{stage(group)} (n = {counts})", xlim=(-0.05, 1.05))
        axis.set_xticks([0, 0.25, 0.5, 0.75, 1])
    return figure


def plot_conditions(frame: pd.DataFrame, axis_label: str, reference: float | None = None) -> Figure:
    """Show estimates of several conditions side by side, one row per name.

    Arguments are those of `plot_estimates`, with a column `condition` in place of `group`.
    """
    frame = unfold(frame)
    names = list(dict.fromkeys(frame["name"]))
    colours = dict(zip(dict.fromkeys(frame["condition"]), LINES, strict=False))
    figure, (axis,) = new_figure(1.2 + 0.34 * len(names))
    _draw_dots(axis, frame, names, colours, axis_label, reference)
    axis.set_xlim(min(0.0, float(frame["low"].min())) - 0.02, 1.02)
    axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _draw_dots(
    axis: Axes,
    frame: pd.DataFrame,
    names: Sequence[str],
    colours: Mapping[str, str],
    axis_label: str,
    reference: float | None,
) -> None:
    """Draw estimates as dots with intervals, one row per name, conditions below each other."""
    for number, (condition, colour) in enumerate(colours.items()):
        rows = frame[frame["condition"] == condition]
        shift = 0.22 * (number - (len(colours) - 1) / 2)
        axis.errorbar(
            rows["value"], [names.index(name) + shift for name in rows["name"]],
            xerr=error_bars(rows), fmt="o", ms=5, capsize=2.5, color=colour, label=stage(condition),
        )  # fmt: skip
    if reference is not None:
        axis.axvline(reference, color=GREY, ls="--", lw=1)
    axis.set_yticks(range(len(names)), names)
    axis.set(ylim=(len(names) - 0.5, -0.5), xlabel=axis_label)
    axis.grid(axis="y", visible=False)


def plot_layers(frame: pd.DataFrame, axis_label: str) -> Figure:
    """Show a measure over the layers of an encoder, one panel per group, one line per name.

    The frame has the columns `group`, `name`, `layer` and `estimate`.
    """
    groups, names = (list(dict.fromkeys(frame[column])) for column in ("group", "name"))
    figure, axes = new_figure(3.2, columns=len(groups), share_y=True)
    for axis, group in zip(axes, groups, strict=True):
        for number, name in enumerate(names):
            rows = unfold(frame[(frame["group"] == group) & (frame["name"] == name)])
            places = rows["layer"] + 0.08 * (number - (len(names) - 1) / 2)
            draw_line(axis, places, rows["value"], LINES[number], error_bars(rows),
                      label=stage(name))  # fmt: skip
        axis.set(title=stage(group), xlabel="layer (0: embeddings)")
        axis.set_xticks(sorted(frame["layer"].unique()))
    axes[0].set_ylabel(axis_label)
    axes[-1].legend()
    return figure


def plot_curves(frame: pd.DataFrame) -> Figure:
    """Show `train_loss`, `val_loss` and `val_accuracy` over each `epoch`, one line per `seed`."""
    panels = {"train_loss": "training loss", "val_loss": "validation loss",
              "val_accuracy": "validation accuracy"}  # fmt: skip
    figure, axes = new_figure(2.8, columns=3)
    conditions = list(dict.fromkeys(frame["condition"]))
    for axis, (column, label) in zip(axes, panels.items(), strict=True):
        for (condition, _), run in frame.groupby(["condition", "seed"], sort=False):
            colour = LINES[conditions.index(condition)]
            draw_line(axis, run["epoch"], run[column], colour, alpha=0.8)
        axis.set(xlabel="epoch", ylabel=label, xticks=sorted(frame["epoch"].unique()))
    for number, condition in enumerate(conditions):
        axes[0].plot([], [], "o-", color=LINES[number], label=condition)
    axes[0].legend(title="contrastive\nsamples")
    return figure


def plot_dose(frame: pd.DataFrame, band: tuple[float, float], axis_label: str) -> Figure:
    """Show a `value` over the `dose`, one line per `seed`, and the band of seed noise at dose 0."""
    figure, (axis,) = new_figure(3.2)
    doses = sorted(frame["dose"].unique())
    means = frame.groupby("dose")["value"].mean()
    axis.axhspan(*band, color=GREY, alpha=0.2, lw=0, label="seed noise at dose 0")
    for _, run in frame.groupby("seed"):
        places = [doses.index(dose) for dose in run["dose"]]
        draw_line(axis, places, run["value"], PALETTE[5], alpha=0.5, lw=1, zorder=1.5)
    axis.plot(range(len(doses)), means[doses], "o-", color=PALETTE[1], lw=2, label="mean of seeds")
    axis.set_xticks(range(len(doses)), [str(dose) for dose in doses])
    axis.set(xlabel="contrastive samples among the training texts", ylabel=axis_label)
    axis.legend()
    return figure


def plot_reliability(frame: pd.DataFrame, guess: float) -> Figure:
    """Show the `estimate` of accuracy against `confidence`, from that of a guess to 1."""
    frame = unfold(frame)
    figure, (left, right) = new_figure(3.2, columns=2)
    left.plot([guess, 1], [guess, 1], color=GREY, ls="--", lw=1)
    draw_line(left, frame["confidence"], frame["value"], PALETTE[1], error_bars(frame), ms=6)
    left.set(xlabel="confidence", ylabel="accuracy")
    right.bar(frame["confidence"], frame["n"], width=(1 - guess) / 12, color=PALETTE[5])
    right.set(xlabel="confidence", ylabel=f"test reviews (n = {frame['n'].sum():,})")
    return figure


def plot_ledger(claims: Sequence[Mapping[str, str]]) -> Figure:
    """Show the `verdict` on every claim as a tile with its `id`, one row per `source`."""
    sources = sorted({claim["source"] for claim in claims})
    figure, (axis,) = new_figure(0.8 + 0.5 * len(sources))
    for row, source in enumerate(sources):
        for place, claim in enumerate(claim for claim in claims if claim["source"] == source):
            colour, ink = VERDICT_COLOURS[claim["verdict"]]
            axis.barh(row, 0.94, 0.8, left=place, color=colour, edgecolor=GREY, lw=0.5)
            axis.text(place + 0.47, row, claim["id"], ha="center", va="center", color=ink)
    axis.set_yticks(range(len(sources)), [f"source {source}" for source in sources])
    axis.invert_yaxis()
    axis.set(xticks=[], xlabel="claims")
    axis.grid(visible=False)
    sns.despine(figure, left=True, bottom=True)
    shown = [verdict for verdict in VERDICT_COLOURS if verdict in {c["verdict"] for c in claims}]
    tiles = [Patch(fc=VERDICT_COLOURS[verdict][0], ec=GREY, lw=0.5) for verdict in shown]
    figure.legend(tiles, shown, loc="outside upper center", ncols=len(shown), frameon=False)
    return figure
