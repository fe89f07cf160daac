"""The ledger: every claim of the sources, the rule it is judged by, and the verdict on it."""

from collections.abc import Collection, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from sentigeo.errors import UserError
from sentigeo.ledger.metrics import Metric, describe_metric, read_metric
from sentigeo.ledger.rules import NOT_TESTABLE, Rule, judge, leaves_of, list_bounds, match_names
from sentigeo.paths import NOTEBOOKS

LEDGER = NOTEBOOKS / "claims.yaml"
NOTHING: Metric = {"value": None, "low": None, "high": None, "n": 0, "unit": "share"}
Judged = dict[str, Any]  # a claim as `results.json` holds it
COLUMNS = ("claim", "source", "statement", "measured", "rule", "verdict", "chapter")


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
    """Read the ledger's declarations; an error names the claim that is declared wrongly."""
    try:
        declared = yaml.load(path.read_text("utf-8"), yaml.CSafeLoader)  # ten times as fast
        claims = TypeAdapter(list[Claim]).validate_python(declared)
    except (yaml.YAMLError, ValidationError) as error:
        raise UserError(f"{path.name}: {' '.join(str(error).split())}") from None
    for number, claim in enumerate(claims):
        if claim.id in [earlier.id for earlier in claims[:number]]:
            raise UserError(f"{path.name} declares the claim {claim.id} twice.")
        try:
            leaves_of(claim.verdict)
        except UserError as error:
            raise UserError(f"The rule of {claim.id} in {path.name}: {error}.") from None
    return claims


def claims_of(notebook: Path) -> list[Claim]:
    """Return the claims that a chapter judges, by the ledger beside its notebook, if any."""
    ledger = notebook.with_name(LEDGER.name)
    claims = load_claims(ledger) if ledger.is_file() else []
    return [claim for claim in claims if claim.chapter == notebook.stem]


def judge_claim(claim: Claim, metrics: Mapping[str, Metric], reason: str | None) -> Judged:
    """Put a claim to the test, by every metric that was recorded.

    Args:
        claim: As declared.
        metrics: By name.
        reason: Why it cannot be tested in this run, if so.

    Returns:
        What `results.json` holds of a claim; its `margin` is how far the nearest end of the main
        metric's interval is from the nearest number at which the verdict may change, negative if
        the interval holds that number, and null if the main metric is not compared with one.
    """
    main = metrics.get(claim.metric, NOTHING)
    return {
        **claim.model_dump(include={"id", "source", "statement", "chapter", "metric", "measure"}),
        "rule": claim.rule,
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


def _margin(bounds: Sequence[float], metric: Metric) -> float | None:
    if not bounds or metric["low"] is None or metric["unit"] == "count":
        return None
    margins = [float(max(b - metric["high"], metric["low"] - b)) for b in bounds]
    return min(margins, key=abs)


def show_claim(judged: Mapping[str, Any]) -> tuple[str, str]:
    """Return a judged claim as HTML and as plain text, for a notebook."""
    others = "; ".join(f"{own['measure']} {describe_metric(own)}" for own in judged["others"])
    measured = f"{judged['measure']}: {describe_metric(dict(judged))}"
    lines = {"Measured": f"{measured} ({others})." if others else f"{measured}."}
    lines |= {"Rule": judged["rule"]} | ({"Why": judged["reason"]} if judged["reason"] else {})
    badge = show_badge(judged["verdict"])
    head = f'<b class="claim-id">{judged["id"]}.</b> {escape(judged["statement"])} {badge}'
    rest = "".join(f"<p><i>{name}:</i> {escape(text)}</p>" for name, text in lines.items())
    plain = [f"{judged['id']}. {judged['statement']} Verdict: {judged['verdict']}."]
    plain += [f"{name}: {text}" for name, text in lines.items()]
    page = f'<div class="claim" id="{judged["id"]}"><p>{head}</p>{rest}</div>'
    return page, "\n".join(plain)


def show_badge(verdict: str) -> str:
    """Return a verdict in HTML, with a class such as `verdict-not-supported`, for its colour."""
    kind = "-".join(verdict.removesuffix(" in this profile").split())
    return f'<b class="verdict verdict-{kind}">{verdict}</b>'


def _judge(claim: Claim, metrics: Mapping[str, Metric]) -> str:
    for name in (claim.metric, *claim.others.values()):
        if not match_names(name, metrics):
            raise UserError(f"The claim {claim.id} names '{name}', which no chapter measured.")
    try:
        return judge(claim.verdict, {name: read_metric(own) for name, own in metrics.items()})
    except UserError as error:
        raise UserError(f"The claim {claim.id} cannot be judged: {error}.") from None


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
    head = "".join(f"<th>{name}</th>" for name in COLUMNS)
    page = f'<table class="ledger"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody>'
    box = '<div class="scroll" role="region" aria-label="Claims and verdicts" tabindex="0">'
    return f'<figure class="table">{box}{page}</table></div></figure>', "\n".join(lines)


def list_margins(claims: Sequence[Judged]) -> pd.DataFrame:
    """List the claims decided by their main metric, the closest calls first; see `judge_claim`."""
    columns = ["claim", "statement", "verdict", "measured", "margin"]
    rows = [
        (own["id"], own["statement"], own["verdict"], describe_metric(own), own["margin"])
        for own in claims
        if own.get("margin") is not None
    ]
    return pd.DataFrame(rows, columns=columns).sort_values("margin", key=abs, kind="stable")
