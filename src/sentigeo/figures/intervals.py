"""Every figure of the report: an analysis in, a Figure out."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from sentigeo.figures.style import FEW, GREY, PALETTE, error_bars, new_figure, spread_colours

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
    """Show how long reviews are, and what share of them each token budget cuts.

    Args:
        tokens: (n,) tokens of each review.
        labels: (n,) class of each review.
        classes: Names of the classes.
        cuts: Token budgets.
    """
    figure, (left, right) = new_figure(max(3.4, 1.0 + 0.2 * len(classes)), columns=2)
    bins = sorted({round(edge) for edge in np.geomspace(tokens.min(), tokens.max() + 1, 40)})
    colours = spread_colours(len(classes), PALETTE)
    for number, (name, colour) in enumerate(zip(classes, colours, strict=True)):
        sizes = np.sort(tokens[labels == number])
        left.hist(sizes, bins=bins, histtype="step", lw=1.8, color=colour, label=name)
        shares = 1 - np.arange(1, len(sizes) + 1) / len(sizes)
        right.plot(sizes, shares, lw=1.8, color=colour, label=name)
    for cut in (cut for cut in cuts if cut < tokens.max()):
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
    title = f"n = {len(tokens):,}"
    if len(classes) <= FEW:
        left.legend(title=title, loc="upper left")
    else:
        right.legend(title=title, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def plot_estimates(frame: pd.DataFrame, axis_label: str, reference: float | None = None) -> Figure:
    """Show estimates with their intervals, a row each, one panel a group.

    Args:
        frame: Columns `group`, `name`, `value`, `low`, `high`, `n`; rows from top to bottom.
        axis_label: What the numbers are.
        reference: A value to compare with, such as what guessing would give.
    """
    groups = list(dict.fromkeys(frame["group"]))
    names = list(dict.fromkeys(frame["name"]))
    height = 1.3 + 0.28 * len(names)
    figure, axes = new_figure(height, columns=len(groups), share_y=True)
    for axis, group in zip(axes, groups, strict=True):
        rows = frame[frame["group"] == group]
        places = [names.index(name) for name in rows["name"]]
        errors = error_bars(rows)
        axis.errorbar(rows["value"], places, xerr=errors, fmt="o", color=PALETTE[1], capsize=3)
        if reference is not None:
            axis.axvline(reference, color=GREY, ls="--", lw=1)
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


def plot_curves(frame: pd.DataFrame) -> Figure:
    """Show losses and validation accuracy over the epochs, a line a run.

    Args:
        frame: Columns `condition`, `epoch`, `train_loss`, `val_loss`, `val_accuracy`, `seed`.
    """
    panels = {"train_loss": "training loss", "val_loss": "validation loss",
              "val_accuracy": "validation accuracy"}  # fmt: skip
    figure, axes = new_figure(2.8, columns=3)
    conditions = list(dict.fromkeys(frame["condition"]))
    for axis, (column, label) in zip(axes, panels.items(), strict=True):
        for (condition, _), run in frame.groupby(["condition", "seed"], sort=False):
            colour = PALETTE[2 + conditions.index(condition)]
            axis.plot(run["epoch"], run[column], "o-", color=colour, alpha=0.8, ms=4)
        axis.set_xlabel("epoch")
        axis.set_ylabel(label)
        axis.set_xticks(sorted(frame["epoch"].unique()))
    for number, condition in enumerate(conditions):
        axes[0].plot([], [], "o-", color=PALETTE[2 + number], label=condition)
    axes[0].legend(title="contrastive\nsamples")
    return figure


def plot_conditions(frame: pd.DataFrame, axis_label: str, reference: float | None = None) -> Figure:
    """Show estimates of several conditions side by side, a row a name.

    Args:
        frame: Columns `name`, `condition`, `value`, `low`, `high`.
        axis_label: What the numbers are.
        reference: A value to compare with, such as what guessing would give.
    """
    names = list(dict.fromkeys(frame["name"]))
    conditions = list(dict.fromkeys(frame["condition"]))
    figure, (axis,) = new_figure(1.2 + 0.34 * len(names))
    for number, condition in enumerate(conditions):
        rows = frame[frame["condition"] == condition]
        shift = 0.22 * (number - (len(conditions) - 1) / 2)
        places = [names.index(name) + shift for name in rows["name"]]
        errors = error_bars(rows)
        axis.errorbar(
            rows["value"], places, xerr=errors, fmt="o", capsize=2.5, ms=5,
            color=PALETTE[2 + number], label=condition,
        )  # fmt: skip
    if reference is not None:
        axis.axvline(reference, color=GREY, ls="--", lw=1)
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.set_xlim(min(0.0, float(frame["low"].min())) - 0.02, 1.02)
    axis.set_xlabel(axis_label)
    axis.grid(axis="y", visible=False)
    axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def plot_dose(frame: pd.DataFrame, band: tuple[float, float], axis_label: str) -> Figure:
    """Show a measure over the dose, every seed as a dot, against the noise of dose 0.

    Args:
        frame: Columns `dose`, `seed`, `value`.
        band: Range of the measure that seeds alone account for.
        axis_label: What the measure is.
    """
    figure, (axis,) = new_figure(3.2)
    doses = sorted(frame["dose"].unique())
    means = frame.groupby("dose")["value"].mean()
    axis.axhspan(*band, color=GREY, alpha=0.2, lw=0, label="seed noise at dose 0")
    for _, run in frame.groupby("seed"):
        places = [doses.index(dose) for dose in run["dose"]]
        axis.plot(places, run["value"], "o-", color=PALETTE[5], alpha=0.5, lw=1, ms=4)
    axis.plot(range(len(doses)), means[doses], "o-", color=PALETTE[1], lw=2, label="mean of seeds")
    axis.set_xticks(range(len(doses)), [str(dose) for dose in doses])
    axis.set_xlabel("contrastive samples among the training texts")
    axis.set_ylabel(axis_label)
    axis.legend()
    return figure


def plot_reliability(frame: pd.DataFrame, guess: float) -> Figure:
    """Show accuracy against confidence; on the diagonal a model is as sure as it is right.

    Args:
        frame: Columns `confidence`, `value`, `low`, `high`, `n`.
        guess: Confidence of a guess, where the axis begins.
    """
    figure, (left, right) = new_figure(3.2, columns=2)
    errors = error_bars(frame)
    left.plot([guess, 1], [guess, 1], color=GREY, ls="--", lw=1)
    left.errorbar(frame["confidence"], frame["value"], yerr=errors, fmt="o-", color=PALETTE[1],
                  capsize=3)  # fmt: skip
    left.set_xlabel("confidence")
    left.set_ylabel("accuracy")
    right.bar(frame["confidence"], frame["n"], width=(1 - guess) / 12, color=PALETTE[5])
    right.set_xlabel("confidence")
    right.set_ylabel(f"test reviews (n = {frame['n'].sum():,})")
    return figure


def plot_layers(frame: pd.DataFrame, axis_label: str) -> Figure:
    """Show a measure over the layers of an encoder, a panel a group, a line a name.

    Args:
        frame: Columns `group`, `name`, `layer`, `value`, `low`, `high`.
        axis_label: What the measure is.
    """
    groups, names = list(dict.fromkeys(frame["group"])), list(dict.fromkeys(frame["name"]))
    figure, axes = new_figure(3.2, columns=len(groups), share_y=True)
    for axis, group in zip(axes, groups, strict=True):
        for number, name in enumerate(names):
            rows = frame[(frame["group"] == group) & (frame["name"] == name)]
            shift = 0.08 * (number - (len(names) - 1) / 2)
            errors = error_bars(rows)
            axis.errorbar(
                rows["layer"] + shift, rows["value"], yerr=errors, fmt="o-", ms=4, lw=1.5,
                capsize=2.5, color=PALETTE[2 + number], label=name,
            )  # fmt: skip
        axis.set_title(group)
        axis.set_xlabel("layer (0: embeddings)")
        axis.set_xticks(sorted(frame["layer"].unique()))
    axes[0].set_ylabel(axis_label)
    axes[-1].legend()
    return figure


def plot_ledger(claims: Sequence[Mapping[str, str]]) -> Figure:
    """Show the verdict on every claim as a tile, a row a source.

    Args:
        claims: With `id`, `source` and `verdict`.
    """
    sources = sorted({claim["source"] for claim in claims})
    figure, (axis,) = new_figure(0.8 + 0.5 * len(sources))
    for row, source in enumerate(sources):
        own = [claim for claim in claims if claim["source"] == source]
        for place, claim in enumerate(own):
            colour, ink = VERDICT_COLOURS[claim["verdict"]]
            axis.barh(row, 0.94, 0.8, left=place, color=colour, edgecolor=GREY, lw=0.5)
            axis.text(place + 0.47, row, claim["id"], ha="center", va="center", color=ink)
    axis.set_yticks(range(len(sources)), [f"source {source}" for source in sources])
    axis.invert_yaxis()
    axis.set_xticks([])
    axis.set_xlabel("claims")
    axis.grid(visible=False)
    sns.despine(figure, left=True, bottom=True)
    shown = [verdict for verdict in VERDICT_COLOURS if verdict in {c["verdict"] for c in claims}]
    tiles = [Patch(fc=VERDICT_COLOURS[verdict][0], ec=GREY, lw=0.5) for verdict in shown]
    figure.legend(tiles, shown, loc="outside upper center", ncols=len(shown), frameon=False)
    return figure
