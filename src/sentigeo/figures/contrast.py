"""Figures of contrast pairs: what becomes of them, and what contrastive samples change."""

from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sentigeo.figures import style
from sentigeo.figures.style import GREY, PALETTE, error_bars, split
from sentigeo.stats import unfold

# Colours of an outcome and of the ink on it, which nothing else in the report has.
OUTCOME_COLOURS = {
    "right": ("#225555", "white"),
    "same answer": ("#DDDDDD", "black"),
    "reversed": ("#DDAA33", "black"),
}
FITS = 0.1  # share of a bar that has room for two digits


def plot_outcomes(frame: pd.DataFrame) -> Figure:
    """Show the share of each outcome as stacked bars, one per `name`, one panel per `group`.

    Columns are those of `list_outcomes`; numbers on the bars are percentages.
    """
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
    """Show each `estimate` of a difference by `name`, below its `group`, and write it beside.

    The band is what is smaller than the smallest effect of interest, the margin.
    """
    notes = [estimate.brief("+.3f") for estimate in frame["estimate"]]
    groups = split(unfold(frame).assign(note=notes), "group")
    figure, (axis,) = style.new_figure(1.2 + 0.26 * (len(frame) + len(groups)))
    axis.axvspan(
        -margin, margin, color=GREY, alpha=0.2, lw=0, label="within the smallest effect of interest"
    )
    axis.axvline(0, color=GREY, lw=1)
    labels: list[str] = []
    headings = []
    for group, rows in groups.items():
        headings.append(len(labels))
        labels += [group, *rows["name"]]
        _draw_effects(axis, rows, headings[-1] + 1)
    style.name_rows(axis, labels)
    for place in headings:
        axis.get_yticklabels()[place].set_fontweight("bold")
    axis.set_xlabel(axis_label)
    figure.legend(loc="outside upper center", frameon=False)
    return figure


def _draw_effects(axis: Axes, rows: pd.DataFrame, first: int) -> None:
    places, beside = range(first, first + len(rows)), axis.get_yaxis_transform()
    options: dict[str, Any] = {"xerr": error_bars(rows), "color": PALETTE[7]}
    axis.errorbar(rows["value"], places, **options, fmt="o", ms=5, capsize=2.5)
    for place, note in zip(places, rows["note"], strict=True):
        axis.text(1.02, place, note, va="center", size="small", transform=beside)
