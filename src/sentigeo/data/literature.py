"""Published works on contrast pairs, and the figures that they print."""

from typing import Any

import pandas as pd
import yaml

from sentigeo.paths import DATA

LITERATURE_FILE = DATA / "literature.yaml"


def load_literature() -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """Return the works as a table, their accuracies as shares, and what else they print.

    Consistency is seldom printed, but two accuracies on pairs bound it: at best the side with fewer
    hits is right only where the other is too, at worst no pair is wrong on both sides.
    """
    held = yaml.safe_load(LITERATURE_FILE.read_text("utf-8"))
    works, accuracies = pd.DataFrame(held.pop("works")), pd.DataFrame(held.pop("accuracies"))
    sides = accuracies[["original", "edited"]] / 100
    lowest = (sides.sum(axis=1) - 1).clip(lower=0)
    bounds = {"consistency_from": lowest, "consistency_to": sides.min(axis=1)}
    return works, accuracies.assign(**sides, **bounds), held


def list_works(works: pd.DataFrame) -> str:
    """Return the references of works as one line of Markdown, with links."""
    rows = works.sort_values(["year", "authors"])
    return "; ".join(
        f"{row.authors} {row.year}, [*{row.title}*]({row.url}), {row.venue}"
        for row in rows.itertuples()
    )
