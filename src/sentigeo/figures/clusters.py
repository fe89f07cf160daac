"""Figures of clusters, confusion matrices, keywords and deep clustering."""

from collections.abc import Sequence
from itertools import cycle

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sentigeo.figures import style
from sentigeo.figures.style import GREY, LINES, PALETTE, draw_line, new_figure, new_grid, stage
from sentigeo.text import excerpt

LONGEST = 32  # characters of a name beside a matrix


def plot_k_study(studies: dict[str, pd.DataFrame]) -> Figure:
    """Show how `inertia`, `silhouette`, `gap` (with `gap_error`) and `ari` depend on `k`."""
    panels = {"inertia": "inertia (k = 1 is 1)", "silhouette": "silhouette",
              "gap": "gap statistic", "ari": "agreement with labels (ARI)"}  # fmt: skip
    figure, axes = new_grid(5.0, 2, 2, sharex=True)
    for axis, (column, label) in zip(axes.ravel(), panels.items(), strict=True):
        for colour, (name, study) in zip(LINES, studies.items(), strict=False):
            values = study[column] / (study["inertia"].iloc[0] if column == "inertia" else 1)
            errors = study["gap_error"] if column == "gap" else None
            draw_line(axis, study["k"], values, colour, errors, label=stage(name))
        axis.set(ylabel=label, xticks=study["k"][:: 1 + len(study) // 12])
    for axis in axes[1]:
        axis.set_xlabel("k")
    axes[0, 0].legend()
    return figure


def plot_choice(study: pd.DataFrame, k: int) -> Figure:
    """Show what `study_stability` found for each number of clusters, and the k that was taken."""
    figure, (left, right) = new_figure(3.0, columns=2)
    draw_line(left, study["k"], study["stability"], PALETTE[2], study["spread"], label="the texts")
    draw_line(left, study["k"], study["cloud"], GREY, fmt="o--", label="clouds without groups")
    draw_line(right, study["k"], study["silhouette"], PALETTE[3])
    left.legend()
    for axis, label in ((left, "stability (0 = chance)"), (right, "silhouette")):
        axis.set(xlabel="k", ylabel=label, xticks=study["k"])
        axis.axvline(k, color=GREY, ls=":", lw=1)
        axis.annotate(f"k = {k}", (k, 1), (4, -12), xycoords=("data", "axes fraction"),
                      textcoords="offset points", color=GREY)  # fmt: skip
    return figure


def plot_confusions(tables: dict[str, pd.DataFrame]) -> Figure:
    """Show tables of counts, one row per class, with shares of their row.

    Large ones stand one below the other; where there is no room for both, shares are colours only.
    """
    most = max(max(table.shape) for table in tables.values())
    side_by_side, many = most <= 4, most > style.FEW
    rows, columns = (1, len(tables)) if side_by_side else (len(tables), 1)
    height = rows * (1.6 + (0.75 if side_by_side else 0.25 if many else 0.5) * most)
    figure, axes = new_grid(height, rows, columns)
    for axis, (title, table) in zip(axes.ravel(), tables.items(), strict=True):
        counts, sizes = table.to_numpy(), table.sum(axis=1).to_numpy()[:, None]
        shares = counts / np.maximum(sizes, 1)
        above, beside = (
            [excerpt(name, LONGEST) for name in names] for names in (table.columns, table.index)
        )
        sns.heatmap(
            shares, ax=axis, annot=_notes(counts, shares, many), fmt="", cmap="Blues",
            vmin=0, vmax=1, cbar=False, yticklabels=beside, linewidths=1,
            xticklabels=[name.replace(" (", " (" if many else "\n(") for name in above],
        )  # fmt: skip
        axis.set_title(f"{title}\n(n = {int(sizes.sum()):,})")
        axis.tick_params(axis="x", rotation=90 if many else 0)
        axis.tick_params(axis="y", rotation=0)
        axis.set_ylabel("label" if axis is axes[0, 0] or not side_by_side else "")
    return figure


def _notes(counts: np.ndarray, shares: np.ndarray, many: bool) -> np.ndarray:
    """Write counts and shares into the cells of a matrix; of many cells, counts above 0 only."""
    cells = zip(counts.flat, shares.flat, strict=True)
    notes = [(f"{n:,}" if n else "") if many else f"{n:,}\n{own:.1%}" for n, own in cells]
    return np.array(notes).reshape(counts.shape)


def plot_keywords(lists: dict[str, pd.DataFrame], names: Sequence[str]) -> Figure:
    """Show the `score` of each `term` as a bar, best first, clusters facing each other in pairs.

    Args:
        lists: Columns `cluster` (from 0), `term`, `score`, by title.
        names: Names of the clusters.
    """
    rows = -(-len(names) // 2)  # of a list
    longest = max(own.groupby("cluster").size().max() for own in lists.values())
    height = len(lists) * rows * (1.0 + 0.21 * longest)
    figure, axes = new_grid(height, len(lists) * rows, 2)
    for first, (title, own) in zip(range(0, len(axes), rows), lists.items(), strict=True):
        panels = axes[first : first + rows].ravel()
        for axis in panels[len(names) :]:
            axis.set_axis_off()
        for cluster, colour in enumerate(style.cluster_colours(len(names))):
            _draw_bars(panels[cluster], own[own["cluster"] == cluster], colour, cluster % 2 == 0)
            top = 1.04 * own["score"].max()
            panels[cluster].set(xlim=(0, top) if cluster % 2 else (top, 0), xlabel=title)
            panels[cluster].set_title(names[cluster], color=colour)
    return figure


def _draw_bars(axis: Axes, terms: pd.DataFrame, colour: str, leftward: bool) -> None:
    """Draw one side of a pair of bar charts, its labels on the outside."""
    axis.barh(range(len(terms)), terms["score"], color=colour, height=0.75)
    axis.set_yticks(range(len(terms)), terms["term"])
    axis.set_ylim(len(terms) - 0.4, -0.6)
    axis.grid(axis="y", visible=False)
    axis.locator_params(axis="x", nbins=4)
    if not leftward:
        axis.yaxis.tick_right()


def plot_associations(frame: pd.DataFrame, shuffled: dict[str, np.ndarray]) -> Figure:
    """Show the `log_odds` of keywords in the class of their cluster, by `name` of a list.

    Shuffled are the mean log-odds of the same words given to the clusters at random, by name.
    """
    names = list(dict.fromkeys(frame["name"]))
    figure, (axis,) = new_figure(1.2 + 0.45 * len(names))
    for place, name in enumerate(names):
        odds = frame.loc[frame["name"] == name, "log_odds"].to_numpy()
        shift = np.linspace(-0.2, 0.2, len(odds)) if len(odds) > 1 else 0.0
        axis.scatter(odds, place + shift, s=14, alpha=0.7, lw=0, color=PALETTE[1])
        axis.plot([odds.mean()] * 2, [place - 0.34, place + 0.34], color=PALETTE[7], lw=2)
        low, high = np.quantile(shuffled[name], [0.025, 0.975])
        axis.fill_betweenx([place - 0.4, place + 0.4], low, high, color=GREY, alpha=0.35, lw=0)
    axis.scatter([], [], s=14, color=PALETTE[1], label="a keyword")
    axis.plot([], [], color=PALETTE[7], lw=2, label="their mean")
    axis.fill_betweenx([], [], [], color=GREY, alpha=0.35, label="mean, words shuffled")
    axis.axvline(0, color=GREY, ls="--", lw=1)
    axis.set_yticks(range(len(names)), names)
    axis.set_ylim(len(names) - 0.5, -0.5)
    axis.set_xlabel("log-odds of a keyword in the class of its cluster")
    axis.grid(axis="y", visible=False)
    axis.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def plot_courses(
    frame: pd.DataFrame, measures: dict[str, str], conditions: dict[str, str]
) -> Figure:
    """Show measures over the epochs: rows are measures, columns sets, lines conditions.

    Args:
        frame: Columns `set`, `condition`, `draw`, `epoch`, and the measures. Lines are means over
            draws and end where one of them has no value; bands are their range.
        measures: What to call each measure.
        conditions: What to call every condition, so that each keeps its colour.
    """
    sets, last = list(dict.fromkeys(frame["set"])), list(measures.values())[-1]
    shown = {c: colour for c, colour in zip(conditions, cycle(PALETTE[1:]), strict=False)
             if (frame["condition"] == c).any()}  # fmt: skip
    figure, axes = new_grid(0.7 + 1.9 * len(measures), len(measures), len(sets), sharey="row")
    for row, (measure, title) in enumerate(measures.items()):
        for axis, name in zip(axes[row], sets, strict=True):
            for condition, colour in shown.items():
                own = frame[(frame["set"] == name) & (frame["condition"] == condition)]
                draws = own.pivot_table(measure, "epoch", "draw", dropna=False).dropna()
                axis.plot(draws.index, draws.mean(axis=1), color=colour, lw=1.8)
                style.draw_band(axis, draws.index, draws.min(axis=1), draws.max(axis=1), colour)
            axis.set(title=name if row == 0 else "", xlabel="epoch" if title is last else "")
        axes[row, 0].set_ylabel(title)
    lines = [axes[0, 0].plot([], [], color=colour, lw=1.8)[0] for colour in shown.values()]
    names = [conditions[condition] for condition in shown]
    figure.legend(lines, names, loc="outside upper center", ncols=min(3, len(lines)))
    return figure


def plot_sizes(frames: dict[tuple[str, str], np.ndarray]) -> Figure:
    """Show (epochs, k) shares of clusters as stacked areas, by set (row) and condition (column)."""
    sets, conditions = (list(dict.fromkeys(part)) for part in zip(*frames, strict=True))
    figure, axes = new_grid(0.7 + 1.7 * len(sets), len(sets), len(conditions), sharey="row")
    for (name, condition), shares in frames.items():
        axis: Axes = axes[sets.index(name), conditions.index(condition)]
        colours = style.cluster_colours(shares.shape[1])
        axis.stackplot(range(len(shares)), shares.T, colors=colours, lw=0.4, ec="white")
        axis.set(xlim=(0, max(1, len(shares) - 1)), ylim=(0, 1))
        axis.set_title(condition if name == sets[0] else "")
        axis.set_xlabel("epoch" if name == sets[-1] else "")
        if condition == conditions[0]:
            axis.set_ylabel(f"{name}\nshare of texts")
    return figure


def plot_warming(losses: dict[str, list[float]]) -> Figure:
    """Show how the loss of a new MLM head falls, one line per set of texts."""
    figure, (axis,) = new_figure(3.3)
    for colour, (name, values) in zip(cycle(PALETTE[1:]), losses.items()):
        draw_line(axis, range(1, len(values) + 1), values, colour, label=name)
    axis.set(xlabel="epoch of the MLM head alone", ylabel="masked-language loss (nats)")
    axis.legend()
    return figure
