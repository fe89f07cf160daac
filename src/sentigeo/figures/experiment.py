"""Figures of the experiment: the source's own and its repetitions, contrast pairs, doses."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from sentigeo.analysis.source_logs import SourceLog, is_share
from sentigeo.figures import style
from sentigeo.figures.style import GREY, LINES, PALETTE, draw_line, split
from sentigeo.stats import share, unfold

PALE = 0.45  # opacity of bars short of what the source gained
INK = "#A8487F"  # the colour of these bars, dark enough for letters
CONTROL = "#333333"
LABEL = 0.97  # height of the label, of the panel
BIN = 8  # points: accuracies of 13 and of 15 texts lie about as far apart
EPOCHS = {"last": "last epoch, as in the source study", "best": "best epoch of each training"}
# Colours of an outcome and of the ink on it, which nothing else in the report has.
OUTCOME_COLOURS = {
    "right": ("#225555", "white"),
    "same answer": ("#DDDDDD", "black"),
    "reversed": ("#DDAA33", "black"),
}
FITS = 0.1  # share of a bar that has room for two digits
ENDPOINTS = {
    "logit_difference": "logit difference (standard deviations)",
    "consistency": "consistency",
    "rank_accuracy": "rank accuracy",
    "test_accuracy": "test accuracy",
}
# The name, colour and line of each kind of dose.
KINDS = {
    "handcrafted": ("n handcrafted samples", LINES[1], "o-"),
    "edited": ("n edited pairs", LINES[0], "o-"),
    "edited, weighted": ("n edited pairs, weight 5", LINES[0], "s--"),
    "shuffled": ("n edited pairs, labels shuffled", LINES[2], "o-"),
    "ordinary": ("n ordinary reviews", GREY, "o-"),
    "ordinary, twice": ("2n ordinary reviews", GREY, "s--"),
}


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
        axis.legend()
    axes[0].set_ylabel("accuracy")
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
    told = [
        (f"source study: {at:+.0f}", PALETTE[7], "bold"),
        ("as much or more:", PALETTE[7], "normal"),
        (f"{(gains['with'] >= claim).mean():.1%} with samples", INK, "bold"),
        (f"{(gains['control'] >= claim).mean():.1%} with reviews instead", CONTROL, "bold"),
    ]
    for line, (words, colour, weight) in enumerate(told):
        axis.annotate(
            words, (at, LABEL), (-7, -14 * line), ("data", "axes fraction"), "offset points",
            color=colour, weight=weight, ha="right", va="top",
        )  # fmt: skip
    axis.grid(visible=False)


def plot_outcomes(frame: pd.DataFrame) -> Figure:
    """Stack the shares (%) of `list_outcomes` as bars, one per `name`, one panel per `group`."""
    names = list(frame["name"].unique())
    figure, panels = style.new_panels(1.4 + 0.28 * len(names), split(frame, "group"), sharey=True)
    for axis, rows in panels:
        _stack_bars(axis, rows, [names.index(name) for name in rows["name"]])
        if len(set(rows["n"])) == 1:
            axis.set_title(f"{axis.get_title()} (n = {rows['n'].max():,})")
        axis.set_xlim(0, 1)
        axis.set_xticks([0, 0.5, 1], ["0", "50", "100"])
        axis.grid(visible=False)
        style.name_rows(axis, names)
    figure.supxlabel("share of pairs (%)", fontsize="medium")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    return figure


def _stack_bars(axis: Axes, rows: pd.DataFrame, places: list[int]) -> None:
    begin = pd.Series(0.0, index=rows.index)
    for outcome, (colour, ink) in OUTCOME_COLOURS.items():
        bars = axis.barh(places, rows[outcome], 0.8, left=begin, color=colour, lw=0, label=outcome)
        notes = [f"{share:.0%}"[:-1] if share >= FITS else "" for share in rows[outcome]]
        axis.bar_label(bars, notes, label_type="center", color=ink, fontsize="small")
        begin = begin + rows[outcome]


def plot_effects(frame: pd.DataFrame, margin: float, axis_label: str) -> Figure:
    """Show each `estimate` of a difference by `name`, below its `group`; a band is the margin."""
    notes = [estimate.brief("+.3f") for estimate in frame["estimate"]]
    groups = split(unfold(frame).assign(note=notes), "group")
    figure, (axis,) = style.new_figure(1.2 + 0.26 * (len(frame) + len(groups)))
    band = "within the smallest effect of interest"
    axis.axvspan(-margin, margin, color=GREY, alpha=0.2, lw=0, label=band)
    axis.axvline(0, color=GREY, lw=1)
    labels, headings, beside = list[str](), list[int](), axis.get_yaxis_transform()
    for group, rows in groups.items():
        headings.append(len(labels))
        labels += [group, *rows["name"]]
        places = range(headings[-1] + 1, len(labels))
        style.draw_dots(axis, rows, places, PALETTE[7])
        for place, note in zip(places, rows["note"], strict=True):
            axis.text(1.02, place, note, va="center", size="small", transform=beside)
    style.name_rows(axis, labels)
    for place in headings:
        axis.get_yticklabels()[place].set_fontweight("bold")
    axis.set_xlabel(axis_label)
    figure.legend(loc="outside upper center", frameon=False)
    return figure


def plot_doses(effects: pd.DataFrame, smallest: Mapping[str, float]) -> Figure:
    """Show each `estimate` of change by `kind` and `dose`, one panel for each smallest effect."""
    figure, axes = style.new_figure(4.0, columns=len(smallest))
    doses = [0, *sorted(effects["dose"].unique())]
    groups = split(unfold(effects), "endpoint")
    for axis, (endpoint, effect) in zip(axes, smallest.items(), strict=True):
        band = "below the smallest effect of interest"
        axis.axhspan(-effect, effect, color=GREY, alpha=0.12, lw=0, label=band)
        axis.axhline(0, color=GREY, lw=1)
        for kind, rows in split(groups[endpoint], "kind").items():
            name, colour, line = KINDS[kind]
            places = [0, *(doses.index(dose) for dose in rows["dose"])]
            low, value, high = ([0, *rows[part]] for part in ("low", "value", "high"))
            draw_line(axis, places, value, colour, label=name, fmt=line)
            axis.fill_between(places, low, high, color=colour, alpha=0.2, lw=0)
        axis.set_xticks(range(len(doses)), [str(dose) for dose in doses])
        axis.set(title=ENDPOINTS[endpoint], xlabel="dose n")
    axes[0].set_ylabel("change against dose 0")
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
    return figure
