"""Pages of their own: one file each, complete without a network."""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from sentigeo.analysis.clusters import NamedClusters
from sentigeo.analysis.maps import some_rows
from sentigeo.attention.attention import Attention
from sentigeo.encoder.corpus_vectors import CorpusVectors
from sentigeo.errors import UserError
from sentigeo.figures.style import (
    CLUSTER_COLOURS,
    GREY,
    PALETTE,
    Colouring,
    colour_labels,
    spread_colours,
)
from sentigeo.paths import SITE_SOURCE

WIDTH = 400  # characters of a text that the page shows and searches, unless told otherwise
STEPS = 65_535  # a coordinate is kept as two bytes
WEIGHT_STEPS = 255  # a weight is kept as one byte
MOST = 4_000  # reviews on the map
BUDGET = 720_000  # characters of all of them together, which keeps the page below a megabyte
BREAK = re.compile(r"(?:\s|<br\s*/?>)+", re.I)


def fill_page(template: str, title: str, facts: dict[str, Any]) -> str:
    """Return a page that carries its data with it.

    Args:
        template: File in the site's folder; it places `title` and, inside a script, `data`.
        title: Title of the page.
        facts: What the page shows; none of it can end the script, and lone surrogates, which no
            file may hold, become replacement characters.
    """
    environment = Environment(
        loader=FileSystemLoader(SITE_SOURCE), undefined=StrictUndefined, autoescape=True
    )
    data = json.dumps(facts, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    page = environment.get_template(template).render(title=title, data=data)
    return page.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def make_map_page(
    title: str,
    texts: Sequence[str],
    layouts: Mapping[str, np.ndarray],
    colourings: Mapping[str, Colouring],
    rows: np.ndarray | None = None,
    width: int = WIDTH,
) -> str:
    """Return a page on which a reader explores a map of texts, complete without a network.

    Args:
        title: Title of the page.
        texts: n texts, a point each.
        layouts: (n, 2) points by name, at least one; the reader changes between them.
        colourings: Groups of the points by name, at least one, in the same way.
        rows: (n,) numbers of the texts; by default they are counted from 1.
        width: Characters of a text that the page shows and searches.
    """
    if not len(texts):
        raise UserError("There are no texts to put on a map.")
    for name, points in layouts.items():
        check_points(name, points, len(texts))
    for name, colouring in colourings.items():
        check_colouring(name, colouring, len(texts))
    facts = {
        "width": width,
        "steps": STEPS,
        "rows": None if rows is None else pack_numbers(np.asarray(rows), "<u4"),
        "texts": [text[:width] for text in texts],
        "lengths": {row: len(text) for row, text in enumerate(texts) if len(text) > width},
        "layouts": [
            {"name": name, "points": pack_points(points)} for name, points in layouts.items()
        ],
        "colourings": [
            {
                "name": name,
                "groups": pack_numbers(own.groups, "<u2"),
                "names": list(own.names),
                "colours": list(own.colours),
            }
            for name, own in colourings.items()
        ],
    }
    return fill_page("map.html.jinja", title, facts)


def check_points(name: str, points: np.ndarray, count: int) -> None:
    """Raise an error if a layout is no (count, 2) array of finite numbers."""
    if points.shape != (count, 2):
        raise UserError(
            f"Layout '{name}' has the shape {points.shape}, but {count:,} texts need ({count}, 2)."
        )
    if not np.isfinite(points).all():
        raise UserError(f"Layout '{name}' holds coordinates that are not finite numbers.")


def check_colouring(name: str, colouring: Colouring, count: int) -> None:
    """Raise an error if a colouring does not give each of the texts a group with a colour."""
    groups, kinds = colouring.groups, len(colouring.names)
    if len(groups) != count:
        raise UserError(f"Colouring '{name}' has {len(groups):,} groups for {count:,} texts.")
    if len(colouring.colours) != kinds:
        raise UserError(
            f"Colouring '{name}' has {len(colouring.colours)} colours for {kinds} groups."
        )
    if groups.min() < 0 or groups.max() >= kinds:
        raise UserError(
            f"Colouring '{name}' has groups from {groups.min()} to {groups.max()}, but names for "
            f"0 to {kinds - 1}."
        )


def pack_points(points: np.ndarray) -> str:
    """Return (n, 2) points, on one scale that fills the longer axis, in base 64."""
    moved = points - points.min(axis=0).astype(np.float64)
    scaled = moved / (moved.max() or 1.0) * STEPS
    return pack_numbers(scaled.round(), "<u2")


def pack_numbers(numbers: np.ndarray, kind: str) -> str:
    """Return (n,) whole numbers of a kind, such as `<u2` for two bytes each, in base 64."""
    return base64.b64encode(numbers.astype(kind).tobytes()).decode()


def make_page(texts: Sequence[dict[str, Attention]], title: str) -> str:
    """Return a page on which a reader picks a text, a layer and a head.

    Args:
        texts: Attention by version, such as `before` and `after`; a text each.
        title: Title of the page.
    """
    first = next(iter(texts[0].values()))
    facts = {
        "layers": len(first.weights),
        "heads": len(first.weights[0]),
        "steps": WEIGHT_STEPS,
        "texts": [
            {
                "words": next(iter(versions.values())).words,
                "weights": {name: pack_weights(own.weights) for name, own in versions.items()},
            }
            for versions in texts
        ],
    }
    return fill_page("attention.html.jinja", title, facts)


def pack_weights(weights: np.ndarray) -> str:
    """Return (layers, heads, w, w) weights as bytes in base 64."""
    return base64.b64encode((weights * WEIGHT_STEPS).round().astype(np.uint8).tobytes()).decode()


def make_review_map(
    found: CorpusVectors,
    clusters: Mapping[str, NamedClusters],
    points: Mapping[tuple[str, str], np.ndarray],
) -> str:
    """Return a page on which test reviews can be read where they lie, and travel between maps.

    Args:
        found: Texts, labels and the classifier's answers.
        clusters: Clusters by time, such as before and after.
        points: (t, 2) places of the t test reviews, by time and kind of map; the first is shown
            first.
    """
    truth = found.corpus.labels_of("test")
    shown = some_rows(len(truth), MOST)
    every = found.corpus.texts_of("test")
    texts = [clean(every[row]) for row in shown]
    colourings = colour_reviews(found, clusters)
    return make_map_page(
        "Test reviews before and after fine-tuning",
        texts,
        {f"{kind}, {time}": own[shown] for (time, kind), own in points.items()},
        {name: replace(own, groups=own.groups[shown]) for name, own in colourings.items()},
        shown + 1,
        min(WIDTH, BUDGET // len(shown)),
    )


def colour_reviews(
    found: CorpusVectors, clusters: Mapping[str, NamedClusters]
) -> dict[str, Colouring]:
    """Colour test reviews by label, by cluster at each time, and by the classifier's answer."""
    truth = found.corpus.labels_of("test")
    wrong = (found.logits["test"].argmax(axis=1) != truth).astype(np.int64)
    answers = ["classifier right", "classifier wrong"]
    coloured = {"label": colour_labels(truth, found.corpus.classes)}
    for time, own in clusters.items():
        names = [f"{time}: {name}" for name in own.names]
        colours = spread_colours(len(names), CLUSTER_COLOURS)
        coloured[f"cluster {time}"] = Colouring(own.members, names, colours)
    return coloured | {"classifier": Colouring(wrong, answers, [GREY, PALETTE[4]])}


def clean(text: str) -> str:
    """Return a review on one line; the line breaks of web pages become spaces."""
    return BREAK.sub(" ", text).strip()
