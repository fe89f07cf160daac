"""Figures of estimates with their intervals, and of lengths, training and verdicts."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from sentigeo.figures import style
from sentigeo.figures.style import GREY, LINES, PALETTE, draw_line, error_bars, finish, split, stage
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
    figure, (left, right) = style.new_figure(max(3.4, 1.0 + 0.2 * len(classes)), columns=2)
    bins = sorted({round(edge) for edge in np.geomspace(tokens.min(), tokens.max() + 1, 40)})
    colours = style.class_colours(len(classes))
    for number, name in enumerate(classes):
        sizes, colour = np.sort(tokens[labels == number]), colours[number]
        left.hist(sizes, bins=bins, histtype="step", lw=1.8, color=colour, label=name)
        shares = 1 - np.arange(1, len(sizes) + 1) / len(sizes)
        right.plot(sizes, shares, lw=1.8, color=colour, label=name)
    for cut in (cut for cut in cuts if cut < tokens.max()):
        share = float((tokens > cut).mean())
        left.axvline(cut, color=GREY, ls=":", lw=1)
        right.axvline(cut, color=GREY, ls=":", lw=1)
        right.annotate(f"{cut}: {share:.0%}", (cut, share), (5, 6), textcoords="offset points")
    ticks = [32, 128, 256, 512, 1024]
    for axis, label in ((left, "reviews"), (right, "share of reviews that are longer")):
        axis.set(xscale="log", xlabel="tokens of a review", ylabel=label)
        axis.set(xticks=ticks, xticklabels=ticks)
        axis.minorticks_off()
    beside = {} if len(classes) <= style.FEW else {"bbox_to_anchor": (1.0, 1.0)}
    (right if beside else left).legend(title=f"n = {len(tokens):,}", loc="upper left", **beside)
    return figure


def plot_estimates(frame: pd.DataFrame, axis_label: str, reference: float | None = None) -> Figure:
    """Show each `estimate`, one row per `name`, one panel per `group`, and a reference line."""
    names = list(frame["name"].unique())
    shown = split(unfold(frame).assign(condition=""), "group")
    figure, panels = style.new_panels(1.3 + 0.28 * len(names), shown, sharey=True)
    for axis, rows in panels:
        _draw_dots(axis, rows, names, PALETTE[1:2], reference)
        least, most = rows["n"].min(), rows["n"].max()
        counts = f"{most:,}" if least == most else f"{least:,} to {most:,}"
        axis.set(title=f"{axis.get_title()} (n = {counts})", xlim=(-0.05, 1.05), xlabel=axis_label)
        axis.set_xticks([0, 0.25, 0.5, 0.75, 1])
    return figure


def plot_conditions(frame: pd.DataFrame, axis_label: str, reference: float | None = None) -> Figure:
    """Show estimates of each `condition` side by side in one panel, else as `plot_estimates`."""
    rows, names = unfold(frame), list(frame["name"].unique())
    _, (axis,) = style.new_figure(1.2 + 0.34 * len(names))
    _draw_dots(axis, rows, names, LINES, reference)
    axis.set_xlim(min(0.0, rows["low"].min()) - 0.02, 1.02)
    return finish(axis, style.BESIDE, xlabel=axis_label)


def _draw_dots(
    axis: Axes, frame: pd.DataFrame, names: list[str], colours: Sequence[str], at: float | None
) -> None:
    conditions = split(frame, "condition")
    for number, (condition, rows) in enumerate(conditions.items()):
        shift = 0.22 * (number - (len(conditions) - 1) / 2)
        places = [names.index(name) + shift for name in rows["name"]]
        style.draw_dots(axis, rows, places, colours[number], label=stage(condition))
    if at is not None:
        axis.axvline(at, color=GREY, ls="--", lw=1)
    style.name_rows(axis, names)


def plot_layers(frame: pd.DataFrame, axis_label: str) -> Figure:
    """Show an `estimate` over each `layer`, one panel per `group`, one line per `name`."""
    names = list(frame["name"].unique())
    figure, panels = style.new_panels(3.2, split(unfold(frame), "group"), sharey=True)
    for axis, group in panels:
        for number, name in enumerate(names):
            rows = group[group["name"] == name]
            places = rows["layer"] + 0.08 * (number - (len(names) - 1) / 2)
            bars, colour = error_bars(rows), LINES[number]
            draw_line(axis, places, rows["value"], colour, bars, label=stage(name))
        axis.set(xlabel="layer (0: embeddings)", xticks=sorted(frame["layer"].unique()))
    figure.axes[0].set_ylabel(axis_label)
    return finish(figure.axes[-1])


def plot_curves(frame: pd.DataFrame) -> Figure:
    """Show `train_loss`, `val_loss` and `val_accuracy` over each `epoch`, one line per `seed`."""
    panels = {"train_loss": "training loss", "val_loss": "validation loss",
              "val_accuracy": "validation accuracy"}  # fmt: skip
    _, axes = style.new_figure(2.8, columns=3)
    colours = dict(zip(frame["condition"].unique(), LINES, strict=False))
    for axis, (column, label) in zip(axes, panels.items(), strict=True):
        for (condition, _), run in frame.groupby(["condition", "seed"], sort=False):
            draw_line(axis, run["epoch"], run[column], colours[condition], alpha=0.8)
        axis.set(xlabel="epoch", ylabel=label, xticks=sorted(frame["epoch"].unique()))
    for condition, colour in colours.items():
        axes[0].plot([], [], "o-", color=colour, label=condition)
    return finish(axes[0], {"title": "contrastive\nsamples"})


def plot_reliability(frame: pd.DataFrame, guess: float) -> Figure:
    """Show the `estimate` of accuracy against `confidence`, from that of a guess to 1."""
    frame = unfold(frame)
    figure, (left, right) = style.new_figure(3.2, columns=2)
    left.plot([guess, 1], [guess, 1], color=GREY, ls="--", lw=1)
    draw_line(left, frame["confidence"], frame["value"], PALETTE[1], error_bars(frame), ms=6)
    left.set(xlabel="confidence", ylabel="accuracy")
    right.bar(frame["confidence"], frame["n"], width=(1 - guess) / 12, color=PALETTE[5])
    right.set(xlabel="confidence", ylabel=f"test reviews (n = {frame['n'].sum():,})")
    return figure


def plot_ledger(claims: Sequence[Mapping[str, str]]) -> Figure:
    """Show the `verdict` on every claim as a tile with its `id`, one row per `source`."""
    sources = sorted({claim["source"] for claim in claims})
    figure, (axis,) = style.new_figure(0.8 + 0.5 * len(sources))
    for row, source in enumerate(sources):
        for place, claim in enumerate(claim for claim in claims if claim["source"] == source):
            colour, ink = VERDICT_COLOURS[claim["verdict"]]
            axis.barh(row, 0.94, 0.8, left=place, color=colour, edgecolor=GREY, lw=0.5)
            axis.text(place + 0.47, row, claim["id"], ha="center", va="center", color=ink)
    axis.set_yticks(range(len(sources)), [f"source {source}" for source in sources])
    axis.set(xticks=[], xlabel="claims", yinverted=True)
    axis.grid(visible=False)
    sns.despine(figure, left=True, bottom=True)
    shown = [verdict for verdict in VERDICT_COLOURS if verdict in {c["verdict"] for c in claims}]
    tiles = [Patch(fc=VERDICT_COLOURS[verdict][0], ec=GREY, lw=0.5) for verdict in shown]
    figure.legend(tiles, shown, loc="outside upper center", ncols=len(shown), frameon=False)
    return figure
