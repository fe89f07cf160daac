"""A map of texts on a page of its own, to move about in, search and pick from."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sentigeo.errors import UserError
from sentigeo.pages import fill_page

WIDTH = 400  # characters of a text that the page shows and searches, unless told otherwise
STEPS = 65_535  # a coordinate is kept as two bytes


@dataclass(frozen=True)
class Colouring:
    """How points are coloured.

    Attributes:
        groups: (n,) number of each point's group, from 0.
        names: Names of the groups.
        colours: Hex colour of each group.
    """

    groups: np.ndarray
    names: Sequence[str]
    colours: Sequence[str]


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
