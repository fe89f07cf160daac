"""A page of its own, complete without a network, to look through attention."""

import base64
import json
from collections.abc import Sequence

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from sentigeo.attention import Attention
from sentigeo.paths import SITE_SOURCE

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
    environment = Environment(
        loader=FileSystemLoader(SITE_SOURCE), undefined=StrictUndefined, autoescape=True
    )
    data = json.dumps(facts).replace("<", "\\u003c")  # no text may end the script
    return environment.get_template("attention.html.jinja").render(title=title, data=data)


def pack_weights(weights: np.ndarray) -> str:
    """Return (layers, heads, w, w) weights as bytes in base 64."""
    return base64.b64encode((weights * STEPS).round().astype(np.uint8).tobytes()).decode()
