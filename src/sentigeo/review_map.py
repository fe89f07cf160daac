"""The interactive map of the report: test reviews before and after fine-tuning."""

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from sentigeo.cluster import NamedClusters
from sentigeo.cluster_plots import CLUSTER_COLOURS
from sentigeo.colours import spread_colours
from sentigeo.map_page import WIDTH, Colouring, make_map_page
from sentigeo.maps import some_rows
from sentigeo.own_plots import colour_labels
from sentigeo.plots import GREY, PALETTE
from sentigeo.space import Space

MOST = 4_000  # reviews on the map
BUDGET = 720_000  # characters of all of them together, which keeps the page below a megabyte
BREAK = re.compile(r"(?:\s|<br\s*/?>)+", re.I)


def make_review_map(
    space: Space,
    clusters: Mapping[str, NamedClusters],
    points: Mapping[tuple[str, str], np.ndarray],
) -> str:
    """Return a page on which test reviews can be read where they lie, and travel between maps.

    Args:
        space: Texts, labels and the classifier's answers.
        clusters: Clusters by time, such as before and after.
        points: (t, 2) places of the t test reviews, by time and kind of map; the first is shown
            first.
    """
    truth = space.labels("test")
    shown = some_rows(len(truth), MOST)
    texts = [clean(space.corpus["text"].iloc[row]) for row in space.rows("test")[shown]]
    colourings = colour_reviews(space, clusters)
    return make_map_page(
        "Test reviews before and after fine-tuning",
        texts,
        {f"{kind}, {time}": own[shown] for (time, kind), own in points.items()},
        {name: replace(own, groups=own.groups[shown]) for name, own in colourings.items()},
        shown + 1,
        min(WIDTH, BUDGET // len(shown)),
    )


def colour_reviews(space: Space, clusters: Mapping[str, NamedClusters]) -> dict[str, Colouring]:
    """Colour test reviews by label, by cluster at each time, and by the classifier's answer."""
    truth = space.labels("test")
    wrong = (space.logits["test"].argmax(axis=1) != truth).astype(np.int64)
    answers = ["classifier right", "classifier wrong"]
    found = {"label": colour_labels(truth, space.classes)}
    for time, own in clusters.items():
        names = [f"{time}: {name}" for name in own.names]
        colours = spread_colours(len(names), CLUSTER_COLOURS)
        found[f"cluster {time}"] = Colouring(own.members, names, colours)
    return found | {"classifier": Colouring(wrong, answers, [GREY, PALETTE[4]])}


def clean(text: str) -> str:
    """Return a review on one line; the line breaks of web pages become spaces."""
    return BREAK.sub(" ", text).strip()
