"""Pages of their own: one file each, complete without a network."""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from sentigeo.analysis.clusters import NamedClusters
from sentigeo.analysis.maps import some_rows
from sentigeo.encoder.corpus import CorpusVectors
from sentigeo.figures.maps import Points
from sentigeo.figures.style import GREY, PALETTE, Colouring, cluster_colours, colour_labels, stage
from sentigeo.paths import SITE_SOURCE

WIDTH = 400  # characters of a text that the page shows and searches, unless told otherwise
STEPS = 65_535  # a coordinate is kept as two bytes
MOST = 4_000  # reviews on the map
BUDGET = 720_000  # characters of all of them together, which keeps the page below a megabyte
BREAK = re.compile(r"(?:\s|<br\s*/?>)+", re.I)


def fill_page(template: str, title: str, facts: dict[str, Any]) -> str:
    """Return a page from a template of the site; no fact can end the script that holds them all."""
    site = FileSystemLoader(SITE_SOURCE)
    environment = Environment(loader=site, undefined=StrictUndefined, autoescape=True)
    data = json.dumps(facts, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    page = environment.get_template(template).render(title=title, data=data)
    return page.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # no lone surrogates


def make_map_page(
    title: str,
    texts: Sequence[str],
    layouts: Mapping[str, np.ndarray],
    colourings: Mapping[str, Colouring],
    rows: np.ndarray | None = None,
    width: int = WIDTH,
) -> str:
    """Return a page to explore n texts on maps, (n, 2) points each; rows are their (n,) numbers."""
    facts = {
        "width": width,
        "steps": STEPS,
        "rows": None if rows is None else pack(rows, "<u4"),
        "texts": [text[:width] for text in texts],
        "lengths": {row: len(text) for row, text in enumerate(texts) if len(text) > width},
        "layouts": [{"name": name, "points": _scale(layouts[name])} for name in layouts],
        "colourings": [
            {"name": name, **vars(colouring), "groups": pack(colouring.groups, "<u2")}
            for name, colouring in colourings.items()
        ],
    }
    return fill_page("map.html.jinja", title, facts)


def _scale(points: np.ndarray) -> str:
    """Return (n, 2) points on one scale that fills the longer axis."""
    moved = points - points.min(axis=0).astype(np.float64)
    return pack(moved / (moved.max() or 1.0) * STEPS, "<u2")


def pack(numbers: np.ndarray, kind: str) -> str:
    """Return numbers rounded to whole ones of a kind, such as `<u2` for two bytes, in base 64."""
    return base64.b64encode(np.round(numbers).astype(kind).tobytes()).decode()


def make_review_map(
    found: CorpusVectors, clusters: Mapping[str, NamedClusters], points: Points
) -> str:
    """Return a page on which test reviews can be read on maps by stage and kind, (t, 2) points."""
    texts = found.corpus.texts_of("test")
    shown = some_rows(len(texts), MOST)
    return make_map_page(
        "Test reviews, pretrained and fine-tuned",
        [BREAK.sub(" ", texts[row]).strip() for row in shown],
        {f"{kind}, {stage(time)}": places[shown] for (time, kind), places in points.items()},
        {name: by.at(shown) for name, by in colour_reviews(found, clusters).items()},
        shown + 1,
        min(WIDTH, BUDGET // len(shown)),
    )


def colour_reviews(
    found: CorpusVectors, clusters: Mapping[str, NamedClusters]
) -> dict[str, Colouring]:
    """Colour test reviews by label, by cluster at each stage, and by the classifier's answer."""
    truth = found.corpus.labels_of("test")
    coloured = {"label": colour_labels(truth, found.corpus.classes)}
    for time, named in clusters.items():
        names = [f"{stage(time)}: {name}" for name in named.names]
        colours = cluster_colours(len(names))
        coloured[f"cluster, {stage(time)}"] = Colouring(named.members, names, colours)
    wrong = (found.logits["test"].argmax(axis=1) != truth).astype(np.int64)
    answers = ["classifier right", "classifier wrong"]
    return coloured | {"classifier": Colouring(wrong, answers, [GREY, PALETTE[4]])}
