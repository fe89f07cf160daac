"""The ledger as a reader sees it: one table, and how close each verdict was."""

from collections.abc import Sequence
from html import escape
from typing import Any

import pandas as pd

from sentigeo.claims import load_claims, show_badge
from sentigeo.results import describe_metric
from sentigeo.verdicts import list_bounds

Judged = dict[str, Any]  # a claim as `results.json` holds it
COLUMNS = ("claim", "source", "statement", "measured", "rule", "verdict", "chapter")


def ledger_table(claims: Sequence[Judged]) -> tuple[str, str]:
    """Return all claims as a table, in HTML with links to their chapters, and as plain text."""
    rows, lines = [], []
    for claim in claims:
        measured = claim["reason"] or f"{claim['measure']}: {describe_metric(claim)}"
        texts = (claim["id"], claim["source"], claim["statement"], measured, claim["rule"])
        cells = [escape(text) for text in texts] + [
            show_badge(claim["verdict"]),
            f'<a href="{claim["chapter"]}.ipynb">{claim["chapter"]}</a>',
        ]
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        lines.append(f"{claim['id']} {claim['statement']} {measured}: {claim['verdict']}")
    head = "".join(f"<th>{name}</th>" for name in COLUMNS)
    page = f'<table class="ledger"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody>'
    return f"{page}</table>", "\n".join(lines)


def list_margins(claims: Sequence[Judged]) -> pd.DataFrame:
    """Measure how far each claim's main metric is from a number at which the verdict may change.

    Args:
        claims: Judged claims.

    Returns:
        Columns `claim`, `statement`, `verdict`, `measured`, `margin`: the distance of the nearest
        such number from the nearest end of the interval, negative where it lies inside. The
        closest calls come first; claims that are not decided by their main metric are left out.
    """
    rules = {claim.id: claim.verdict for claim in load_claims()}
    rows = []
    for claim in claims:
        bounds = list_bounds(rules[claim["id"]], claim["metric"])
        if not bounds or claim["low"] is None or claim["unit"] == "count":
            continue
        margins = [max(bound - claim["high"], claim["low"] - bound) for bound in bounds]
        rows.append(
            {
                "claim": claim["id"],
                "statement": claim["statement"],
                "verdict": claim["verdict"],
                "measured": describe_metric(claim),
                "margin": min(margins, key=abs),
            }
        )
    found = pd.DataFrame(rows, columns=["claim", "statement", "verdict", "measured", "margin"])
    return found.sort_values("margin", key=abs, kind="stable")
