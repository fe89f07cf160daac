import json

import pytest

from sentigeo.ledger.claims import ledger_table, list_margins, load_claims
from sentigeo.paths import ROOT

CLAIM = {
    "id": "B1", "source": "001", "statement": "Cosines & <classes>.", "chapter": "08_similarity",
    "metric": "similarity.before.auc", "measure": "AUC", "rule": "below 0.6.", "others": [],
    "value": 0.55, "low": 0.5, "high": 0.58, "n": 200, "unit": "AUC", "verdict": "supported",
    "reason": None,
}  # fmt: skip


def test_the_table_names_everything_a_verdict_rests_on():
    page, plain = ledger_table([CLAIM])
    assert plain == "B1 Cosines & <classes>. AUC: 0.550 [0.500, 0.580; n = 200]: supported"
    assert "<td>Cosines &amp; &lt;classes&gt;.</td>" in page
    assert "<td>AUC: 0.550 [0.500, 0.580; n = 200]</td><td>below 0.6.</td>" in page
    assert '<td><a href="08_similarity.ipynb">08_similarity</a></td>' in page


def test_the_table_says_why_a_claim_was_not_tested():
    untested = CLAIM | {"reason": "There are no pairs.", "verdict": "not testable in this profile"}
    page, _ = ledger_table([untested])
    assert "<td>There are no pairs.</td>" in page
    assert 'class="verdict verdict-not-testable"' in page


@pytest.mark.parametrize(
    ("low", "high", "margin"),
    [(0.5, 0.58, 0.02), (0.63, 0.7, 0.03), (0.55, 0.61, -0.01), (0.59, 0.8, -0.01)],
)
def test_margins_are_distances_from_the_rules_number(low, high, margin):
    found = list_margins([CLAIM | {"low": low, "high": high}])
    assert found["margin"].tolist() == pytest.approx([margin])


def test_closest_calls_come_first():
    other = CLAIM | {"id": "E5", "metric": "similarity.before.mean.length_correlation",
                     "low": 0.01, "high": 0.09}  # fmt: skip
    found = list_margins([CLAIM, other])
    assert found["claim"].tolist() == ["E5", "B1"]
    assert found["margin"].tolist() == pytest.approx([0.01, 0.02])


def test_claims_without_such_a_number_have_no_margin():
    counted = CLAIM | {"id": "C9", "metric": "encoder.million_weights", "unit": "count"}
    unmeasured = CLAIM | {"low": None, "high": None}
    assert list_margins([counted, unmeasured]).empty


def test_published_claims_are_in_the_order_of_the_ledger():
    results = json.loads((ROOT / "reports/results.json").read_text("utf-8"))
    assert [c["id"] for c in results["claims"]] == [claim.id for claim in load_claims()]
