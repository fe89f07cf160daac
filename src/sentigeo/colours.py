"""Colours that a reader can tell apart, as many as there are groups."""

from collections.abc import Sequence

import numpy as np

GRID = 18  # levels of red, green and blue that further colours are taken from
LIGHTNESS = (0.45, 0.85)  # of further colours, so that white paper and black both set them off
STRENGTH = 0.17  # most colourful they may be: strong ones shout beside the muted schemes of figures

# From linear RGB to the cones, and from there to lightness and two opponent colours (OKLab,
# Ottosson, 2020), where equal distances look equally large.
TO_CONES = np.array(
    [[0.4122214708, 0.5363325363, 0.0514459929],
     [0.2119034982, 0.6806995451, 0.1073969566],
     [0.0883024619, 0.2817188376, 0.6299787005]]
)  # fmt: skip
TO_LAB = np.array(
    [[0.2104542553, 0.7936177850, -0.0040720468],
     [1.9779984951, -2.4285922050, 0.4505937099],
     [0.0259040371, 0.7827717662, -0.8086757660]]
)  # fmt: skip


def spread_colours(count: int, base: Sequence[str]) -> list[str]:
    """Return colours for groups: first those given, then each as unlike all others as can be.

    Args:
        count: How many are wanted.
        base: Hex colours to begin with.

    Returns:
        Hex colours, none of the first 2,000 twice.
    """
    colours = list(base[:count])
    levels = np.linspace(0, 255, GRID).round().astype(int)
    grid = np.stack(np.meshgrid(levels, levels, levels), axis=-1).reshape(-1, 3)
    seen = see_colours(grid)
    light, strength = seen[:, 0], np.hypot(seen[:, 1], seen[:, 2])
    usable = (light > LIGHTNESS[0]) & (light < LIGHTNESS[1]) & (strength < STRENGTH)
    grid, seen = grid[usable], seen[usable]
    taken = see_colours(np.array([list(bytes.fromhex(own[1:])) for own in colours]).reshape(-1, 3))
    nearest = np.full(len(grid), np.inf)
    for own in taken:
        nearest = np.minimum(nearest, np.linalg.norm(seen - own, axis=1))
    while len(colours) < count:
        best = int(nearest.argmax())
        colours.append("#{:02X}{:02X}{:02X}".format(*grid[best]))
        nearest = np.minimum(nearest, np.linalg.norm(seen - seen[best], axis=1))
    return colours


def see_colours(colours: np.ndarray) -> np.ndarray:
    """Return the (n, 3) OKLab coordinates of (n, 3) colours from 0 to 255."""
    shares = colours / 255
    linear = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    return np.asarray(np.cbrt(linear @ TO_CONES.T) @ TO_LAB.T)
