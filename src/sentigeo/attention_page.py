"""A page of its own, complete without a network, to look through attention."""

import base64
from collections.abc import Sequence

import numpy as np

from sentigeo.attention import Attention
from sentigeo.pages import fill_page

STEPS = 255  # a weight is kept as one byte


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
        "steps": STEPS,
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
    return base64.b64encode((weights * STEPS).round().astype(np.uint8).tobytes()).decode()
