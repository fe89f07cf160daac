"""What stood before the run: figures that works print, the endpoints, recipes that were tried."""

from typing import Any

import pandas as pd
import yaml

from sentigeo.paths import DATA

LITERATURE, ENDPOINTS = DATA / "literature.yaml", DATA / "endpoints.yaml"
RECIPES = DATA / "recipes.yaml"  # of fine-tuning; `benchmarks/recipes.py` writes it


def load_literature() -> tuple[pd.DataFrame, pd.DataFrame, dict[str, Any]]:
    """Return the works as a table, their accuracies as shares, and what else they print.

    Consistency is seldom printed, but two accuracies on pairs bound it: at best the side with fewer
    hits is right only where the other is too, at worst no pair is wrong on both sides.
    """
    held = yaml.safe_load(LITERATURE.read_text("utf-8"))
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


def load_endpoints() -> dict[str, Any]:
    """Return the `primary` endpoint, the `smallest_effects` of interest and the `level`."""
    found: dict[str, Any] = yaml.safe_load(ENDPOINTS.read_text("utf-8"))
    return found


def load_recipes() -> pd.DataFrame:
    """Return the recipes of fine-tuning that were tried, with their validation accuracy."""
    return pd.DataFrame(yaml.safe_load(RECIPES.read_text("utf-8")))
