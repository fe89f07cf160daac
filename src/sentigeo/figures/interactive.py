"""Pages of their own: one file each, complete without a network."""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from sentigeo.analysis.maps import some_rows
from sentigeo.errors import UserError
from sentigeo.figures.style import GREY, PALETTE, Colouring, cluster_colours, colour_labels, stage
from sentigeo.paths import SITE_SOURCE

if TYPE_CHECKING:
    from sentigeo.analysis.clusters import NamedClusters
    from sentigeo.attention.attention import Attention
    from sentigeo.encoder.corpus_vectors import CorpusVectors

WIDTH = 400  # characters of a text that the page shows and searches, unless told otherwise
STEPS = 65_535  # a coordinate is kept as two bytes
WEIGHT_STEPS = 255  # a weight is kept as one byte
MOST = 4_000  # reviews on the map
BUDGET = 720_000  # characters of all of them together, which keeps the page below a megabyte
BREAK = re.compile(r"(?:\s|<br\s*/?>)+", re.I)


def fill_page(template: str, title: str, facts: dict[str, Any]) -> str:
    """Return a page that carries its data with it, from a template in the site's folder.

    No fact can end the script that holds it, and lone surrogates, which no file may hold, become
    replacement characters.
    """
    site = FileSystemLoader(SITE_SOURCE)
    environment = Environment(loader=site, undefined=StrictUndefined, autoescape=True)
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
    """Return a page on which a reader explores a map of n texts and changes how it is drawn.

    Layouts are (n, 2) points, at least one, rows the (n,) numbers of the texts, by default counted
    from 1; of each text so many characters as the width are shown and searched.
    """
    if not len(texts):
        raise UserError("There are no texts to put on a map.")
    facts = {
        "width": width,
        "steps": STEPS,
        "rows": None if rows is None else _pack(rows, "<u4"),
        "texts": [text[:width] for text in texts],
        "lengths": {row: len(text) for row, text in enumerate(texts) if len(text) > width},
        "layouts": [_pack_layout(name, own, len(texts)) for name, own in layouts.items()],
        "colourings": [_pack_colouring(name, own, len(texts)) for name, own in colourings.items()],
    }
    return fill_page("map.html.jinja", title, facts)


def _pack_layout(name: str, points: np.ndarray, count: int) -> dict[str, str]:
    """Return (count, 2) finite points, on one scale that fills the longer axis."""
    if points.shape != (count, 2):
        wrong = f"has the shape {points.shape}, but {count:,} texts need ({count}, 2)"
        raise UserError(f"Layout '{name}' {wrong}.")
    if not np.isfinite(points).all():
        raise UserError(f"Layout '{name}' holds coordinates that are not finite numbers.")
    moved = points - points.min(axis=0).astype(np.float64)
    return {"name": name, "points": _pack(moved / (moved.max() or 1.0) * STEPS, "<u2")}


def _pack_colouring(name: str, own: Colouring, count: int) -> dict[str, Any]:
    """Return a colouring that gives each of the texts a group with a colour."""
    groups, names, colours, wrong = own.groups, list(own.names), list(own.colours), ""
    if len(groups) != count:
        wrong = f"{len(groups):,} groups for {count:,} texts"
    elif len(colours) != len(names):
        wrong = f"{len(colours)} colours for {len(names)} groups"
    elif groups.min() < 0 or groups.max() >= len(names):
        span = f"groups from {groups.min()} to {groups.max()}"
        wrong = f"{span}, but names for 0 to {len(names) - 1}"
    if wrong:
        raise UserError(f"Colouring '{name}' has {wrong}.")
    return {"name": name, "groups": _pack(groups, "<u2"), "names": names, "colours": colours}


def _pack(numbers: np.ndarray, kind: str) -> str:
    """Return numbers rounded to whole ones of a kind, such as `<u2` for two bytes, in base 64."""
    return base64.b64encode(np.round(numbers).astype(kind).tobytes()).decode()


def make_page(texts: "Sequence[Mapping[str, Attention]]", title: str) -> str:
    """Return a page on which a reader picks a text, a layer and a head; attention by stage."""
    packed = []
    for stages in texts:
        weights = {stage(at): _pack(own.weights * WEIGHT_STEPS, "u1") for at, own in stages.items()}
        packed.append({"words": next(iter(stages.values())).words, "weights": weights})
    layers, heads, *_ = next(iter(texts[0].values())).weights.shape
    facts = {"layers": layers, "heads": heads, "steps": WEIGHT_STEPS, "texts": packed}
    return fill_page("attention.html.jinja", title, facts)


def make_review_map(
    found: "CorpusVectors",
    clusters: "Mapping[str, NamedClusters]",
    points: Mapping[tuple[str, str], np.ndarray],
) -> str:
    """Return a page on which test reviews can be read where they lie, and travel between maps.

    Points are (t, 2) places of the t test reviews, by stage and kind of map, the first shown first.
    """
    texts = found.corpus.texts_of("test")
    shown = some_rows(len(texts), MOST)
    return make_map_page(
        "Test reviews, pretrained and fine-tuned",
        [BREAK.sub(" ", texts[row]).strip() for row in shown],
        {f"{kind}, {stage(time)}": own[shown] for (time, kind), own in points.items()},
        {name: own.at(shown) for name, own in colour_reviews(found, clusters).items()},
        shown + 1,
        min(WIDTH, BUDGET // len(shown)),
    )


def colour_reviews(
    found: "CorpusVectors", clusters: "Mapping[str, NamedClusters]"
) -> dict[str, Colouring]:
    """Colour test reviews by label, by cluster at each stage, and by the classifier's answer."""
    truth = found.corpus.labels_of("test")
    coloured = {"label": colour_labels(truth, found.corpus.classes)}
    for time, own in clusters.items():
        names = [f"{stage(time)}: {name}" for name in own.names]
        colours = cluster_colours(len(names))
        coloured[f"cluster, {stage(time)}"] = Colouring(own.members, names, colours)
    wrong = (found.logits["test"].argmax(axis=1) != truth).astype(np.int64)
    answers = ["classifier right", "classifier wrong"]
    return coloured | {"classifier": Colouring(wrong, answers, [GREY, PALETTE[4]])}
