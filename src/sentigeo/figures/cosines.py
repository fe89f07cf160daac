"""Figures of similarity and neighbours: an analysis in, a Figure out."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from sentigeo.analysis.cosines import BINS, PairCounts
from sentigeo.figures.style import FEW, GREY, PAGE_WIDTH, PALETTE, error_bars, new_figure


def plot_cosines(
    matrices: dict[str, np.ndarray], labels: np.ndarray, classes: Sequence[str]
) -> Figure:
    """Show cosine matrices of a few texts as heat maps, ordered by class.

    They stand side by side, or one below the other if there are many classes.

    Args:
        matrices: (n, n) cosines by title.
        labels: (n,) classes, in order.
        classes: Names of the classes.
    """
    many = len(np.unique(labels)) > FEW
    rows, columns = (len(matrices), 1) if many else (1, len(matrices))
    height = rows * (PAGE_WIDTH / columns - (1.6 if many else 0.6))
    figure = Figure(figsize=(PAGE_WIDTH, height), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    borders = [float(place) + 1 for place in np.flatnonzero(np.diff(labels))]
    middles = [np.flatnonzero(labels == number).mean() + 0.5 for number in np.unique(labels)]
    for axis, (title, cosines) in zip(axes, matrices.items(), strict=True):
        others = cosines[~np.eye(len(cosines), dtype=bool)]
        low, high = np.quantile(others, [0.02, 0.98])
        sns.heatmap(
            cosines, ax=axis, cmap="viridis", vmin=low, vmax=high, square=True,
            cbar_kws={"shrink": 0.7, "label": "cosine"}, xticklabels=False, yticklabels=False,
        )  # fmt: skip
        for border in borders:
            axis.axhline(border, color="white", lw=0.5 if many else 1.5)
            axis.axvline(border, color="white", lw=0.5 if many else 1.5)
        names = [classes[number] for number in np.unique(labels)]
        axis.set_xticks(middles, names, rotation=90 if many else 0)
        axis.set_yticks(middles, names, rotation=0 if many else 90, va="center")
        axis.set_title(title)
    return figure


def plot_pair_kinds(counts: dict[str, PairCounts]) -> Figure:
    """Show how the cosines of pairs within a class and between classes are distributed.

    Args:
        counts: Counted cosines by title.
    """
    figure, axes = new_figure(2.9, columns=len(counts))
    for axis, (title, own) in zip(axes, counts.items(), strict=True):
        for kind, number in (("within a class", 2), ("between classes", 3)):
            bins = own.within.sum(axis=0) if number == 2 else own.between
            coarse = bins.reshape(-1, BINS // 100).sum(axis=1)
            places = np.linspace(*own.span, len(coarse), endpoint=False)
            axis.plot(
                places, coarse / max(coarse.sum(), 1), color=PALETTE[number], lw=1.8, label=kind
            )
        axis.set_title(title)
        axis.set_xlabel("cosine")
    axes[0].set_ylabel("share of pairs")
    axes[0].legend()
    return figure


def plot_thresholds(curves: dict[str, pd.DataFrame]) -> Figure:
    """Show precision against recall of taking pairs above a threshold for pairs of one class.

    Args:
        curves: Columns `precision`, `recall`, by name, of the same texts; a row a threshold, the
            first of which all pairs pass.
    """
    figure, (axis,) = new_figure(3.2)
    for number, (name, curve) in enumerate(curves.items()):
        seen = curve[curve["recall"] > 0.01]
        axis.plot(seen["recall"], seen["precision"], color=PALETTE[2 + number], lw=1.8, label=name)
        axis.axhline(curve["precision"].iloc[0], color=GREY, ls="--", lw=1)
    axis.set_xlabel("recall: share of same-class pairs above the threshold")
    axis.set_ylabel("precision")
    axis.legend()
    return figure


def plot_shots(curve: pd.DataFrame, chance: float) -> Figure:
    """Show accuracy over the number of labelled texts, with the range of draws as a band.

    Args:
        curve: Columns `group`, `method`, `shots`, `value`, `bottom`, `top`.
        chance: What guessing gives.
    """
    groups = list(dict.fromkeys(curve["group"]))
    figure, axes = new_figure(3.2, columns=len(groups), share_y=True)
    for axis, group in zip(axes, groups, strict=True):
        own = curve[curve["group"] == group]
        for number, (method, rows) in enumerate(own.groupby("method", sort=False)):
            colour = PALETTE[2 + number]
            axis.plot(rows["shots"], rows["value"], "o-", ms=4, color=colour, label=method)
            axis.fill_between(
                rows["shots"], rows["bottom"], rows["top"], color=colour, alpha=0.15, lw=0
            )
        axis.axhline(chance, color=GREY, ls="--", lw=1)
        axis.set_xscale("log", base=2)
        axis.set_xticks(
            sorted(own["shots"].unique()), [str(s) for s in sorted(own["shots"].unique())]
        )
        axis.set_title(group)
        axis.set_xlabel("labelled texts of each class")
    axes[0].set_ylabel("accuracy")
    axes[0].legend()
    return figure


def plot_lengths_and_cosines(frame: pd.DataFrame) -> Figure:
    """Show the mean cosine of pairs of texts that are about equally long.

    Args:
        frame: Columns `name`, `words` (mean length), `value`, `low`, `high`.
    """
    figure, (axis,) = new_figure(3.0)
    for number, (name, rows) in enumerate(frame.groupby("name", sort=False)):
        axis.errorbar(
            rows["words"], rows["value"], yerr=error_bars(rows), fmt="o-", ms=4, capsize=2.5,
            color=PALETTE[2 + number], label=name,
        )  # fmt: skip
    places = frame.loc[frame["name"] == frame["name"].iloc[0], "words"]
    axis.set_xscale("log")
    axis.set_xticks(places, [f"{place:.0f}" for place in places])
    axis.minorticks_off()
    axis.set_xlabel("words of the texts (mean of a fifth of them)")
    axis.set_ylabel("mean cosine of pairs")
    axis.legend()
    return figure


def plot_sentences(
    places: np.ndarray, texts: Sequence[str], senses: np.ndarray, word: str
) -> Figure:
    """Show sentences in the order of their word's place on the first principal component.

    Args:
        places: (n,) place of each sentence's word.
        texts: n sentences, short enough for a line.
        senses: (n,) sense of each.
        word: The word.
    """
    order = np.argsort(places)
    figure, (axis,) = new_figure(1.0 + 0.19 * len(texts))
    for number, sense in enumerate(dict.fromkeys(senses)):
        own = senses[order] == sense
        rows = np.flatnonzero(own)
        axis.scatter(places[order][own], rows, s=22, color=PALETTE[2 + number], label=sense)
    axis.set_yticks(range(len(texts)), [texts[row] for row in order], fontsize=7)
    axis.set_ylim(len(texts) - 0.5, -0.5)
    axis.set_xlabel(f"place of '{word}' on the first principal component")
    axis.legend(loc="lower left")
    return figure
