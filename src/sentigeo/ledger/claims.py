"""The ledger: what was measured, every claim of the sources, and the verdict on it."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from sentigeo.errors import UserError
from sentigeo.ledger.rules import NOT_TESTABLE, Rule, judge, leaves_of, list_bounds, match_names
from sentigeo.paths import NOTEBOOKS
from sentigeo.stats import NUMBERS, Estimate

LEDGER = NOTEBOOKS / "claims.yaml"
Metric = dict[str, Any]  # value, low, high, n and unit, as `results.json` holds them
Judged = dict[str, Any]  # a claim as `results.json` holds it
NOTHING: Metric = {"value": None, "low": None, "high": None, "n": 0, "unit": "share"}
SIGNED = ("difference", "log-odds", "Spearman", "half class gaps")  # units of what has two sides
MERGED = ("metrics", "claims", "untestable", "checkpoints")  # what every chapter adds to
BY_CHAPTER = ("figures", "pages")
COLUMNS = ("claim", "source", "statement", "measured", "rule", "verdict", "chapter")


def write_metric(estimate: Estimate, unit: str) -> Metric:
    """Return an estimate as JSON values; JSON has no NaN, so a missing number is null."""
    numbers = {name: getattr(estimate, name) for name in NUMBERS}
    return {k: None if v != v else v for k, v in numbers.items()} | {"n": estimate.n, "unit": unit}


def read_metric(metric: Metric) -> Estimate:
    """Return a metric as an estimate; what is null is NaN."""
    value, low, high = (float("nan") if metric[k] is None else metric[k] for k in NUMBERS)
    return Estimate(value, low, high, metric["n"])


def describe_metric(metric: Metric) -> str:
    """Write a metric as `0.873 [0.862, 0.884; n = 4,000]`, or as `-` if it was not measured."""
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
    """Join what chapters recorded, each in `<chapter>.json` of a folder, for `results.json`."""
    merged: dict[str, Any] = {name: {} for name in (*MERGED, *BY_CHAPTER)}
    for chapter in chapters:
        path = parts / f"{chapter}.json"
        if not path.is_file():
            raise UserError(f"{chapter} recorded nothing under its own name.")
        part = json.loads(path.read_text("utf-8"))
        repeated = merged["metrics"].keys() & part["metrics"].keys()
        if repeated:
            raise UserError(
                f"{chapter} records '{min(repeated)}', which an earlier chapter already recorded."
            )
        for name in MERGED:
            merged[name] |= part[name]
        for name in BY_CHAPTER:
            merged[name][chapter] = part[name]
        merged |= part["facts"]
    return merged


class Claim(BaseModel):
    """A claim of a source, as the ledger declares it before anything is measured."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: Annotated[str, Field(pattern="^[A-E][1-9]$")]
    source: Annotated[str, Field(pattern="^[0-9]{3}$")]  # the document that makes it
    statement: str
    chapter: str  # that measures it
    measure: str  # what is measured, in words
    metric: str  # the name of that
    others: dict[str, str] = {}  # further metrics of the answer, by their names in words
    rule: str  # how measurements decide, in words
    verdict: Rule  # the same as `rules.judge` reads it
    requires: str | None = None  # condition without which it cannot be tested; see `preflight`


def load_claims(path: Path = LEDGER) -> list[Claim]:
    """Read the ledger's declarations; an error names the claim whose declaration is wrong."""
    try:
        declared = yaml.load(path.read_text("utf-8"), yaml.CSafeLoader)  # ten times as fast
        claims = TypeAdapter(list[Claim]).validate_python(declared)
    except (yaml.YAMLError, ValidationError) as error:
        raise UserError(f"{path.name}: {' '.join(str(error).split())}") from None
    ids = [claim.id for claim in claims]
    for claim in claims:
        if ids.count(claim.id) > 1:
            raise UserError(f"{path.name} declares the claim {claim.id} twice.")
        try:
            leaves_of(claim.verdict)
        except UserError as error:
            raise UserError(f"The rule of {claim.id} in {path.name}: {error}.") from None
    return claims


def find_claims(notebooks: Path) -> list[Claim]:
    """Return the claims that the ledger in a folder of notebooks declares, if there is one."""
    ledger = notebooks / LEDGER.name
    return load_claims(ledger) if ledger.is_file() else []


def claims_of(notebook: Path) -> list[Claim]:
    """Return the claims that a chapter judges, by the ledger beside its notebook, if any."""
    return [claim for claim in find_claims(notebook.parent) if claim.chapter == notebook.stem]


def judge_claim(claim: Claim, metrics: Mapping[str, Metric], reason: str | None) -> Judged:
    """Put a claim to the test by every metric that was recorded, unless there is a reason not to.

    Its `margin` is how far the nearest end of the main metric's interval is from the nearest number
    at which the verdict may change, negative if the interval holds that number, and null if the
    main metric is not compared with one.
    """
    main = metrics.get(claim.metric, NOTHING)
    declared = {"id", "source", "statement", "chapter", "metric", "measure", "rule"}
    return {
        **claim.model_dump(include=declared),
        **main,
        "others": [
            {"measure": words.replace("*", middle.replace("_", " ")), "metric": name}
            | metrics[name]
            for words, pattern in claim.others.items()
            for name, middle in match_names(pattern, metrics)
        ],
        "verdict": NOT_TESTABLE if reason else _judge(claim, metrics),
        "reason": reason,
        "margin": _margin(list_bounds(claim.verdict, claim.metric), main),
    }


def _judge(claim: Claim, metrics: Mapping[str, Metric]) -> str:
    for name in (claim.metric, *claim.others.values()):
        if not match_names(name, metrics):
            raise UserError(f"The claim {claim.id} names '{name}', which no chapter measured.")
    try:
        return judge(claim.verdict, {name: read_metric(found) for name, found in metrics.items()})
    except UserError as error:
        raise UserError(f"The claim {claim.id} cannot be judged: {error}.") from None


def _margin(bounds: Sequence[float], metric: Metric) -> float | None:
    if not bounds or metric["low"] is None or metric["unit"] == "count":
        return None
    return min((float(max(b - metric["high"], metric["low"] - b)) for b in bounds), key=abs)


def show_claim(judged: Judged) -> tuple[str, str]:
    """Return a judged claim as HTML and as plain text, for a notebook."""
    others = "; ".join(f"{other['measure']} {describe_metric(other)}" for other in judged["others"])
    measured = f"{judged['measure']}: {describe_metric(judged)}"
    lines = {"Measured": f"{measured} ({others})." if others else f"{measured}."}
    lines |= {"Rule": judged["rule"]} | ({"Why": judged["reason"]} if judged["reason"] else {})
    badge = show_badge(judged["verdict"])
    title = f'<b class="claim-id">{judged["id"]}.</b> {escape(judged["statement"])} {badge}'
    rest = "".join(f"<p><i>{name}:</i> {escape(text)}</p>" for name, text in lines.items())
    plain = [f"{judged['id']}. {judged['statement']} Verdict: {judged['verdict']}."]
    plain += [f"{name}: {text}" for name, text in lines.items()]
    page = f'<div class="claim" id="{judged["id"]}"><p>{title}</p>{rest}</div>'
    return page, "\n".join(plain)


def show_badge(verdict: str) -> str:
    """Return a verdict in HTML, with a class such as `verdict-not-supported`, for its colour."""
    kind = "-".join(verdict.removesuffix(" in this profile").split())
    return f'<b class="verdict verdict-{kind}">{verdict}</b>'


def ledger_table(claims: Sequence[Judged], skipped: Collection[str] = ()) -> tuple[str, str]:
    """Return judged claims as a table, in HTML and as plain text; skipped chapters get no link."""
    rows, lines = [], []
    for claim in claims:
        measured = claim["reason"] or f"{claim['measure']}: {describe_metric(claim)}"
        chapter, statement = claim["chapter"], escape(claim["statement"])
        link = f'<a href="{chapter}.ipynb#{claim["id"]}">'
        said = statement if chapter in skipped else f"{link}{statement}</a>"
        cells = [claim["id"], claim["source"], said, escape(measured), escape(claim["rule"])]
        cells += [show_badge(claim["verdict"]), chapter]
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        lines.append(f"{claim['id']} {claim['statement']} {measured}: {claim['verdict']}")
    titles = "".join(f"<th>{name}</th>" for name in COLUMNS)
    page = f'<table class="ledger"><thead><tr>{titles}</tr></thead><tbody>{"".join(rows)}</tbody>'
    box = '<div class="scroll" role="region" aria-label="Claims and verdicts" tabindex="0">'
    return f'<figure class="table">{box}{page}</table></div></figure>', "\n".join(lines)


def list_margins(claims: Sequence[Judged]) -> pd.DataFrame:
    """List the claims decided by their main metric, the closest calls first; see `judge_claim`."""
    columns = ["claim", "statement", "verdict", "measured", "margin"]
    decided = [claim for claim in claims if claim.get("margin") is not None]
    rows = [claim | {"claim": claim["id"], "measured": describe_metric(claim)} for claim in decided]
    return pd.DataFrame(rows, columns=columns).sort_values("margin", key=abs, kind="stable")
