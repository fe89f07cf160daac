"""Figures of attention: an analysis in, a Figure out."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from sentigeo.attention.attention import Attention
from sentigeo.figures.style import PAGE_WIDTH, PALETTE

COLUMNS = 4  # heads in a row


def plot_layer(attention: Attention, layer: int) -> Figure:
    """Show what every head of a layer looks at in one text, as small heat maps.

    Args:
        attention: The attention of the text.
        layer: The layer, counted from 0.
    """
    maps = attention.weights[layer]
    rows = -(-len(maps) // COLUMNS)
    figure = Figure(figsize=(PAGE_WIDTH, 2.0 * rows + 0.4), layout="constrained")
    axes = figure.subplots(rows, COLUMNS, squeeze=False, sharex=True, sharey=True).ravel()
    places = range(len(attention.words))
    for head, axis in enumerate(axes):
        if head >= len(maps):
            axis.set_visible(False)
            continue
        axis.imshow(maps[head], cmap="Blues", vmin=0, vmax=1)
        axis.set_title(f"head {head + 1}", fontsize=9)
        axis.set_xticks(places, attention.words, rotation=90, fontsize=6)
        axis.set_yticks(places, attention.words, fontsize=6)
        axis.tick_params(pad=0)
        axis.grid(visible=False)
    return figure


def plot_head(versions: dict[str, Attention], layer: int, head: int) -> Figure:
    """Show what one head looks at in a text, before and after, with the words.

    Args:
        versions: Attention by title, of the same text.
        layer: The layer, counted from 0.
        head: The head, counted from 0.
    """
    figure = Figure(figsize=(PAGE_WIDTH, PAGE_WIDTH / len(versions) + 0.4), layout="constrained")
    axes = figure.subplots(1, len(versions), squeeze=False)[0]
    for axis, (title, attention) in zip(axes, versions.items(), strict=True):
        image = axis.imshow(attention.weights[layer, head], cmap="Blues", vmin=0, vmax=1)
        places = range(len(attention.words))
        axis.set_xticks(places, attention.words, rotation=90, fontsize=7)
        axis.set_yticks(places, attention.words, fontsize=7)
        axis.set_title(title)
        axis.grid(visible=False)
    axes[0].set_ylabel("looks ...")
    axes[0].set_xlabel("... at")
    figure.colorbar(image, ax=axes, shrink=0.6, label="attention")
    return figure


def plot_habits(shares: np.ndarray, names: Sequence[str]) -> Figure:
    """Name what each head looks at most, layer by head.

    Args:
        shares: (layers, heads, kinds) shares of attention.
        names: What the kinds are called.
    """
    main = shares.argmax(axis=-1)
    figure = Figure(figsize=(PAGE_WIDTH, 0.9 + 0.42 * len(shares)), layout="constrained")
    axis = figure.subplots()
    colours = ListedColormap([*PALETTE[: len(names) - 1], "#BBBBBB"])
    axis.imshow(main, cmap=colours, vmin=-0.5, vmax=len(names) - 0.5, alpha=0.75, aspect="auto")
    for (layer, head), kind in np.ndenumerate(main):
        axis.text(head, layer, f"{shares[layer, head, kind]:.2f}", ha="center", va="center", size=8)
    for kind in np.unique(main):
        axis.scatter([], [], s=60, marker="s", color=colours(int(kind)), label=names[kind])
    figure.legend(loc="outside lower center", ncols=4, title="looks most at")
    _label_grid(axis, main.shape)
    return figure


def plot_grid(values: dict[str, np.ndarray], label: str, marks: dict[str, np.ndarray]) -> Figure:
    """Show a number for every head, layer by head, one panel a title.

    Args:
        values: (layers, heads) by title.
        label: What the numbers are.
        marks: (layers, heads) true where a head is marked with a dot, by title.
    """
    layers, _ = next(iter(values.values())).shape
    figure = Figure(figsize=(PAGE_WIDTH, 1.1 + 0.3 * layers), layout="constrained")
    axes = figure.subplots(1, len(values), squeeze=False)[0]
    largest = max(float(np.abs(own).max()) for own in values.values())
    signed = any(float(own.min()) < 0 for own in values.values())
    colours, lowest = ("RdBu_r", -largest) if signed else ("Blues", 0.0)
    for axis, (title, own) in zip(axes, values.items(), strict=True):
        image = axis.imshow(own, cmap=colours, vmin=lowest, vmax=largest, aspect="auto")
        rows, columns = np.nonzero(marks.get(title, np.zeros_like(own)))
        axis.scatter(columns, rows, s=18, color="black")
        axis.set_title(title)
        _label_grid(axis, own.shape)
    figure.colorbar(image, ax=axes, label=label, shrink=0.9)
    return figure


def plot_explanations(explained: dict[str, pd.DataFrame], measures: Sequence[str]) -> Figure:
    """Colour the words of a text by how each measure rates them, one panel a title.

    Args:
        explained: Column `word` and the measures, by title; the same text.
        measures: Columns to show.
    """
    words = next(iter(explained.values()))["word"]
    height = (0.5 + 0.3 * len(measures)) * len(explained) + 0.9
    figure = Figure(figsize=(PAGE_WIDTH, height), layout="constrained")
    axes = figure.subplots(len(explained), 1, squeeze=False, sharex=True)[:, 0]
    for axis, (title, frame) in zip(axes, explained.items(), strict=True):
        sizes = frame[list(measures)].to_numpy().T
        scaled = sizes / np.maximum(np.abs(sizes).max(axis=1, keepdims=True), 1e-12)
        axis.imshow(scaled, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
        axis.set_yticks(range(len(measures)), measures)
        axis.set_title(title)
        axis.grid(visible=False)
    axes[-1].set_xticks(range(len(words)), words, rotation=60, ha="right")
    return figure


def _label_grid(axis: Axes, shape: tuple[int, ...]) -> None:
    axis.set_xticks(range(shape[1]), [str(head + 1) for head in range(shape[1])])
    axis.set_yticks(range(shape[0]), [str(layer + 1) for layer in range(shape[0])])
    axis.set_xlabel("head")
    axis.set_ylabel("layer")
    axis.grid(visible=False)
