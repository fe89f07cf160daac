"""What a run found: metrics as `results.json` holds them, and the parts that chapters leave."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from sentigeo.errors import UserError
from sentigeo.stats import Estimate

Metric = dict[str, Any]  # value, low, high, n, unit
SIGNED = ("difference", "log-odds", "Spearman", "half class gaps")  # units of what has two sides
MERGED = ("metrics", "claims", "untestable", "checkpoints")  # what every chapter adds to


def write_metric(estimate: Estimate, unit: str) -> Metric:
    """Return an estimate as JSON values, which know no NaN: a missing number is null."""
    numbers = {name: getattr(estimate, name) for name in ("value", "low", "high")}
    return {k: None if v != v else v for k, v in numbers.items()} | {"n": estimate.n, "unit": unit}


def read_metric(metric: Metric) -> Estimate:
    """Return a metric as an estimate; what is null is NaN."""
    bounds = [metric[name] for name in ("value", "low", "high")]
    value, low, high = (float("nan") if bound is None else bound for bound in bounds)
    return Estimate(value, low, high, metric["n"])


def describe_metric(metric: Metric) -> str:
    """Write a metric as `0.873 [0.862, 0.884; n = 4,000]`, differences with their sign.

    A count has no interval, and what could not be measured is a dash.
    """
    if metric["value"] is None:
        return "-"
    if metric["unit"] == "count":
        whole = float(metric["value"]).is_integer()
        return f"{metric['value']:{',.0f' if whole else ',.4g'}}"
    spec = "+.3f" if metric["unit"].startswith(SIGNED) else ".3f"
    if metric["low"] is None:
        return f"{metric['value']:{spec}} [n = {metric['n']:,}]"
    return format(read_metric(metric), spec)


def merge_parts(parts: Path, chapters: Iterable[str]) -> dict[str, Any]:
    """Join what chapters recorded, each in `<chapter>.json` of a folder.

    Returns:
        `metrics`, `claims`, `untestable` and `checkpoints` by name, `figures` and `pages` by
        chapter, and the facts of the run.
    """
    merged: dict[str, Any] = {name: {} for name in (*MERGED, "figures", "pages")}
    for chapter in chapters:
        path = parts / f"{chapter}.json"
        if not path.is_file():
            raise UserError(f"{chapter} recorded nothing under its own name.")
        part = json.loads(path.read_text("utf-8"))
        repeated = merged["metrics"].keys() & part["metrics"].keys()
        if repeated:
            raise UserError(f"{chapter} records '{min(repeated)}', which stands already.")
        for name in MERGED:
            merged[name] |= part[name]
        merged["figures"][chapter], merged["pages"][chapter] = part["figures"], part["pages"]
        merged |= part["facts"]
    return merged
