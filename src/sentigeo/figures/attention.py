"""Figures of attention, and a page on which a reader picks a head."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from sentigeo.analysis.attention import Attention
from sentigeo.figures import style
from sentigeo.figures.interactive import fill_page, pack

COLUMNS = 4  # heads in a row
STEPS = 255  # a weight is kept as one byte


def plot_layer(attention: Attention, layer: int) -> Figure:
    """Show the attention of every head of a layer, counted from 0, in one text."""
    maps, words = attention.weights[layer], attention.words
    rows = -(-len(maps) // COLUMNS)
    figure, axes = style.new_grid(2.0 * rows + 0.4, rows, COLUMNS, sharex=True, sharey=True)
    for axis in axes.flat[len(maps) :]:
        axis.set_visible(False)
    for head, (axis, weights) in enumerate(zip(axes.flat, maps, strict=False)):
        style.draw_heat_map(axis, weights, words, words)
        axis.set_title(f"head {head + 1}", fontsize=9)
        axis.tick_params(pad=0, labelsize=6)
        axis.tick_params(axis="x", rotation=90)
    return figure


def plot_head(versions: Mapping[str, Attention], layer: int, head: int) -> Figure:
    """Show the attention of one head to the words of a text, by stage; both counted from 0."""
    figure, panels = style.new_panels(style.PAGE_WIDTH / len(versions) + 0.4, versions)
    for axis, shown in panels:
        image = style.draw_heat_map(axis, shown.weights[layer, head], shown.words, shown.words)
        axis.tick_params(labelsize=7)
        axis.tick_params(axis="x", rotation=90)
    figure.axes[0].set(ylabel="from ...", xlabel="... to")
    figure.colorbar(image, ax=figure.axes, shrink=0.6, label="attention")
    return figure


def plot_head_targets(shares: np.ndarray, names: Sequence[str]) -> Figure:
    """Name what each head attends to most, by (layers, heads, kinds) shares of attention."""
    main = shares.argmax(axis=-1)
    figure, (axis,) = style.new_figure(0.9 + 0.42 * len(shares))
    colours = ListedColormap([*style.PALETTE[: len(names) - 1], "#BBBBBB"])
    _draw_heads(axis, main, cmap=colours, vmin=-0.5, vmax=len(names) - 0.5, alpha=0.75)
    for (layer, head), kind in np.ndenumerate(main):
        axis.text(head, layer, f"{shares[layer, head, kind]:.2f}", ha="center", va="center", size=8)
    for kind in np.unique(main):
        axis.scatter([], [], s=60, marker="s", color=colours(int(kind)), label=names[kind])
    figure.legend(loc="outside lower center", ncols=4, title="attends most to")
    return figure


def plot_grid(
    values: Mapping[str, np.ndarray], label: str, marks: Mapping[str, np.ndarray] | None = None
) -> Figure:
    """Show (layers, heads) numbers by title; heads are marked with a dot where marks are true."""
    every = np.concatenate([*values.values()])
    tallest = max(map(len, values.values()))
    figure, panels = style.new_panels(1.1 + 0.3 * tallest, values)
    largest = float(np.abs(every).max())
    colours, lowest = ("RdBu_r", -largest) if every.min() < 0 else ("Blues", 0.0)
    for title, (axis, numbers) in zip(values, panels, strict=True):
        image = _draw_heads(axis, numbers, cmap=colours, vmin=lowest, vmax=largest)
        rows, columns = np.nonzero((marks or {}).get(title, np.zeros_like(numbers)))
        axis.scatter(columns, rows, s=18, color="black")
    figure.colorbar(image, ax=figure.axes, label=label, shrink=0.9)
    return figure


def _draw_heads(axis: Axes, values: np.ndarray, **options: Any) -> AxesImage:
    down, across = ([str(place + 1) for place in range(count)] for count in values.shape)
    axis.set(xlabel="head", ylabel="layer")
    return style.draw_heat_map(axis, values, across, down, aspect="auto", **options)


def plot_explanations(explained: Mapping[str, pd.DataFrame], measures: Sequence[str]) -> Figure:
    """Colour each `word` of a text by columns of measures, one panel per title."""
    height = (0.5 + 0.3 * len(measures)) * len(explained) + 0.9
    figure, axes = style.new_grid(height, len(explained), 1, sharex=True)
    colours = {"cmap": "RdBu_r", "vmin": -1, "aspect": "auto"}
    for axis, (title, frame) in zip(axes[:, 0], explained.items(), strict=True):
        sizes = frame[list(measures)].to_numpy().T
        scaled = sizes / np.maximum(np.abs(sizes).max(axis=1, keepdims=True), 1e-12)
        style.draw_heat_map(axis, scaled, frame["word"].tolist(), measures, **colours)
        axis.set_title(style.stage(title))
    axes[-1, 0].set_xticks(range(len(frame)), frame["word"], rotation=60, ha="right")
    return figure


def make_page(texts: Sequence[Mapping[str, Attention]], title: str) -> str:
    """Return a page on which a reader picks a text, a layer of all stages and a head."""
    packed = []
    for stages in texts:
        weights = {style.stage(at): pack(each.weights * STEPS, "u1") for at, each in stages.items()}
        packed.append({"words": next(iter(stages.values())).words, "weights": weights})
    layers, heads, *_ = np.min([each.weights.shape for each in texts[0].values()], axis=0).tolist()
    facts = {"layers": layers, "heads": heads, "steps": STEPS, "texts": packed}
    return fill_page("attention.html.jinja", title, facts)
