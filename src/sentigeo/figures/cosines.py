"""Figures of similarity and neighbours."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from sentigeo.analysis.cosines import PairCounts
from sentigeo.figures import style
from sentigeo.figures.style import GREY, LINES, draw_line, error_bars, finish, new_figure, split
from sentigeo.stats import unfold

POINTS = 100  # of a distribution of cosines


def plot_cosines(matrices: style.Arrays, labels: np.ndarray, classes: Sequence[str]) -> Figure:
    """Show (n, n) cosines by stage as heat maps; the (n,) labels of their texts are in order."""
    present = np.unique(labels)
    many = len(present) > style.FEW
    rows, columns = (len(matrices), 1) if many else (1, len(matrices))
    height = rows * (style.PAGE_WIDTH / columns - (1.6 if many else 0.6))
    figure, axes = style.new_grid(height, rows, columns)
    middles = [np.flatnonzero(labels == number).mean() for number in present]
    names = [classes[number] for number in present]
    for axis, (title, cosines) in zip(axes.flat, matrices.items(), strict=True):
        low, high = np.quantile(cosines[~np.eye(len(cosines), dtype=bool)], [0.02, 0.98])
        image = style.draw_heat_map(axis, cosines, [], [], cmap="viridis", vmin=low, vmax=high)
        figure.colorbar(image, ax=axis, shrink=0.7, label="cosine")
        for border in np.flatnonzero(np.diff(labels)) + 0.5:
            axis.axhline(border, color="white", lw=0.5 if many else 1.5)
            axis.axvline(border, color="white", lw=0.5 if many else 1.5)
        axis.set_xticks(middles, names, rotation=90 if many else 0)
        axis.set_yticks(middles, names, rotation=0 if many else 90, va="center")
        axis.set_title(style.stage(title))
    return figure


def plot_pair_kinds(counts: dict[str, PairCounts]) -> Figure:
    """Show how the cosines of pairs within a class and between classes are distributed."""
    figure, panels = style.new_panels(2.9, counts)
    for axis, pairs in panels:
        kinds = {"within a class": pairs.within.sum(axis=0), "between classes": pairs.between}
        for colour, (kind, bins) in zip(LINES, kinds.items(), strict=False):
            coarse = bins.reshape(POINTS, -1).sum(axis=1)
            places = np.linspace(*pairs.span, POINTS, endpoint=False)
            axis.plot(places, coarse / max(coarse.sum(), 1), color=colour, lw=1.8, label=kind)
        axis.set_xlabel("cosine")
    return finish(figure.axes[0], ylabel="share of pairs")


def plot_thresholds(curves: dict[str, pd.DataFrame]) -> Figure:
    """Show `precision` against `recall` of pairs of one class, from the lowest threshold on."""
    _, (axis,) = new_figure(3.2)
    for colour, (name, curve) in zip(LINES, curves.items(), strict=False):
        seen, label = curve[curve["recall"] > 0.01], style.stage(name)
        axis.plot(seen["recall"], seen["precision"], color=colour, lw=1.8, label=label)
        axis.axhline(curve["precision"].iloc[0], color=GREY, ls="--", lw=1)
    recall = "recall: share of same-class pairs above the threshold"
    return finish(axis, xlabel=recall, ylabel="precision")


def plot_shots(curve: pd.DataFrame, chance: float) -> Figure:
    """Show the `estimate` and range (`bottom`, `top`) of accuracy by `group`, `method`, `shots`."""
    figure, panels = style.new_panels(3.2, split(unfold(curve), "group"), sharey=True)
    for axis, group in panels:
        for colour, method in zip(LINES, curve["method"].unique(), strict=False):
            rows = group[group["method"] == method]
            draw_line(axis, rows["shots"], rows["value"], colour, label=method)
            span = rows["shots"], rows["bottom"], rows["top"]
            axis.fill_between(*span, color=colour, alpha=0.15, lw=0)
        axis.axhline(chance, color=GREY, ls="--", lw=1)
        axis.set_xscale("log", base=2)
        ticks = sorted(group["shots"].unique())
        axis.set(xticks=ticks, xticklabels=ticks, xlabel="labelled texts of each class")
    return finish(figure.axes[0], ylabel="accuracy")


def plot_lengths_and_cosines(frame: pd.DataFrame) -> Figure:
    """Show the `estimate` of the mean cosine against the length of texts in `words`, by `name`."""
    _, (axis,) = new_figure(3.0)
    groups = split(unfold(frame), "name")
    for colour, (name, rows) in zip(LINES, groups.items(), strict=False):
        draw_line(axis, rows["words"], rows["value"], colour, error_bars(rows), label=name)
    places = next(iter(groups.values()))["words"]
    axis.set_xscale("log")
    axis.set_xticks(places, [f"{place:.0f}" for place in places])
    axis.minorticks_off()
    words = "words of the texts (mean of a fifth of them)"
    return finish(axis, xlabel=words, ylabel="mean cosine of pairs")


def plot_sentences(
    places: np.ndarray, texts: Sequence[str], senses: np.ndarray, word: str
) -> Figure:
    """Show n short texts in the order of their word's (n,) place, coloured by its (n,) sense."""
    order = np.argsort(places)
    _, (axis,) = new_figure(1.0 + 0.19 * len(texts))
    for colour, sense in zip(LINES, dict.fromkeys(senses), strict=False):
        rows = np.flatnonzero(senses[order] == sense)
        axis.scatter(places[order][rows], rows, s=22, color=colour, label=sense)
    axis.set_yticks(range(len(texts)), [texts[row] for row in order], fontsize=7)
    axis.set_ylim(len(texts) - 0.5, -0.5)
    place = f"place of '{word}' on the first principal component"
    return finish(axis, {"loc": "lower left"}, xlabel=place)
