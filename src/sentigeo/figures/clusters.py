"""Figures of clusters, confusion matrices, keywords and deep clustering."""

from collections.abc import Sequence
from itertools import cycle

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.artist import setp
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sentigeo.figures import style
from sentigeo.figures.style import GREY, LINES, PALETTE, draw_line, finish, new_grid, split
from sentigeo.text import excerpt

LONGEST = 32  # characters of a name beside a matrix


def plot_k_study(studies: dict[str, pd.DataFrame]) -> Figure:
    """Show how `inertia`, `silhouette`, `gap` (with `gap_error`) and `ari` depend on `k`."""
    panels = {"inertia": "inertia (k = 1 is 1)", "silhouette": "silhouette",
              "gap": "gap statistic", "ari": "agreement with labels (ARI)"}  # fmt: skip
    figure, axes = new_grid(5.0, 2, 2, sharex=True)
    for axis, (column, label) in zip(axes.flat, panels.items(), strict=True):
        for colour, (name, study) in zip(LINES, studies.items(), strict=False):
            values = study[column] / (study["inertia"].iloc[0] if column == "inertia" else 1)
            errors = study["gap_error"] if column == "gap" else None
            draw_line(axis, study["k"], values, colour, errors, label=style.stage(name))
        axis.set(ylabel=label, xticks=study["k"][:: 1 + len(study) // 12])
    setp(axes[1], xlabel="k")
    axes[0, 0].legend()
    return figure


def plot_choice(study: pd.DataFrame, k: int) -> Figure:
    """Show what `study_stability` found for each number of clusters, and the k that was taken."""
    figure, (left, right) = style.new_figure(3.0, columns=2)
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
    """Show tables of counts with shares of their row; of many classes, shares as colours only."""
    most = max(max(table.shape) for table in tables.values())
    side_by_side, many = most <= 4, most > style.FEW
    rows, columns = (1, len(tables)) if side_by_side else (len(tables), 1)
    height = rows * (1.6 + (0.75 if side_by_side else 0.25 if many else 0.5) * most)
    figure, axes = new_grid(height, rows, columns)
    for axis, (title, table) in zip(axes.flat, tables.items(), strict=True):
        shares = table.div(table.sum(axis=1).clip(1), axis=0)
        notes = table.map("{:,}".format)
        notes = notes.replace("0", "") if many else notes + shares.map("\n{:.1%}".format)
        above = [excerpt(name, LONGEST) for name in table.columns]
        beside = [excerpt(name, LONGEST) for name in table.index]
        sns.heatmap(
            shares.to_numpy(), annot=notes.to_numpy(), fmt="", ax=axis, cmap="Blues", vmin=0,
            vmax=1, cbar=False, linewidths=1, yticklabels=beside,
            xticklabels=above if many else [name.replace(" (", "\n(") for name in above],
        )  # fmt: skip
        axis.tick_params(axis="x", rotation=90 if many else 0)
        axis.tick_params(axis="y", rotation=0)
        axis.set_title(f"{title}\n(n = {table.to_numpy().sum():,})")
        axis.set_ylabel("label" if axis in axes[:, 0] else "")
    return figure


def plot_keywords(lists: dict[str, pd.DataFrame], names: Sequence[str]) -> Figure:
    """Show the `score` of each `term` by named `cluster` (from 0), two of which face each other."""
    rows = -(-len(names) // 2)  # of a list
    longest = max(terms.groupby("cluster").size().max() for terms in lists.values())
    figure, axes = new_grid(len(lists) * rows * (1.0 + 0.21 * longest), len(lists) * rows, 2)
    colours = style.cluster_colours(len(names))
    for panels, (title, terms) in zip(axes.reshape(len(lists), -1), lists.items(), strict=True):
        for cluster, (axis, name) in enumerate(zip(panels, names, strict=False)):
            _draw_bars(axis, terms[terms["cluster"] == cluster], colours[cluster])
            axis.set(xlim=(0, 1.04 * terms["score"].max()), xlabel=title)
            axis.set_title(name, color=colours[cluster])
            if cluster % 2:
                axis.yaxis.tick_right()
            else:
                axis.invert_xaxis()
        for axis in panels[len(names) :]:
            axis.set_axis_off()
    return figure


def _draw_bars(axis: Axes, terms: pd.DataFrame, colour: str) -> None:
    axis.barh(range(len(terms)), terms["score"], color=colour, height=0.75)
    axis.set_yticks(range(len(terms)), terms["term"])
    axis.set_ylim(len(terms) - 0.4, -0.6)
    axis.grid(axis="y", visible=False)
    axis.locator_params(axis="x", nbins=4)


def plot_associations(frame: pd.DataFrame, shuffled: dict[str, np.ndarray]) -> Figure:
    """Show the `log_odds` of keywords in their cluster's class, by `name`, and shuffled means."""
    lists = split(frame, "name")
    _, (axis,) = style.new_figure(1.2 + 0.45 * len(lists))
    for place, (name, rows) in enumerate(lists.items()):
        odds = rows["log_odds"].to_numpy()
        shift = np.linspace(-0.2, 0.2, len(odds)) if len(odds) > 1 else 0.0
        axis.scatter(odds, place + shift, s=14, alpha=0.7, lw=0, color=PALETTE[1])
        axis.plot([odds.mean()] * 2, [place - 0.34, place + 0.34], color=PALETTE[7], lw=2)
        low, high = np.quantile(shuffled[name], [0.025, 0.975])
        axis.fill_betweenx([place - 0.4, place + 0.4], low, high, color=GREY, alpha=0.35, lw=0)
    axis.scatter([], [], s=14, color=PALETTE[1], label="a keyword")
    axis.plot([], [], color=PALETTE[7], lw=2, label="their mean")
    axis.fill_betweenx([], [], [], color=GREY, alpha=0.35, label="mean, words shuffled")
    axis.axvline(0, color=GREY, ls="--", lw=1)
    style.name_rows(axis, lists)
    return finish(axis, style.BESIDE, xlabel="log-odds of a keyword in the class of its cluster")


def plot_courses(
    frame: pd.DataFrame, measures: dict[str, str], conditions: dict[str, str]
) -> Figure:
    """Show titled measures over each `epoch`, one column per `set`, one line per `condition`.

    Lines are means over every `draw` and end where one of them has no value; bands are their range.
    """
    sets, colours = split(frame, "set"), dict(zip(conditions, cycle(PALETTE[1:]), strict=False))
    shown = [condition for condition in conditions if (frame["condition"] == condition).any()]
    figure, axes = new_grid(0.7 + 1.9 * len(measures), len(measures), len(sets), sharey="row")
    for column, (name, rows) in enumerate(sets.items()):
        for axis, (measure, title) in zip(axes[:, column], measures.items(), strict=True):
            axis.set_ylabel("" if column else title)
            for condition in shown:
                draws = rows[rows["condition"] == condition]
                draws = draws.pivot_table(measure, "epoch", "draw", dropna=False).dropna()
                colour = colours[condition]
                axis.plot(draws.index, draws.mean(axis=1), lw=1.8, color=colour)
                span = draws.min(axis=1), draws.max(axis=1)
                axis.fill_between(draws.index, *span, alpha=0.2, lw=0, color=colour)
        axes[0, column].set_title(name)
        axes[-1, column].set_xlabel("epoch")
    for condition in shown:
        axes[0, 0].plot([], [], color=colours[condition], lw=1.8, label=conditions[condition])
    figure.legend(loc="outside upper center", ncols=min(3, len(shown)))
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
        axis.set_ylabel(f"{name}\nshare of texts" if condition == conditions[0] else "")
    setp(axes[-1], xlabel="epoch")
    return figure


def plot_warming(losses: dict[str, list[float]]) -> Figure:
    """Show how the loss of a new MLM head falls, one line per set of texts."""
    _, (axis,) = style.new_figure(3.3)
    for colour, (name, values) in zip(cycle(PALETTE[1:]), losses.items()):
        draw_line(axis, range(1, len(values) + 1), values, colour, label=name)
    epoch = "epoch of the MLM head alone"
    return finish(axis, xlabel=epoch, ylabel="masked-language loss (nats)")
