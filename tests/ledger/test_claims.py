import json

import pytest
import yaml

from sentigeo.errors import UserError
from sentigeo.ledger.claims import (
    LEDGER,
    claims_of,
    describe_metric,
    judge_claim,
    ledger_table,
    list_margins,
    load_claims,
    merge_parts,
    read_metric,
    show_badge,
    show_claim,
    write_metric,
)
from sentigeo.paths import NOTEBOOKS, ROOT, list_chapters
from sentigeo.stats import Estimate

GAIN = {"value": 0.1, "low": 0.05, "high": 0.15, "n": 40, "unit": "difference"}
DECLARED = {
    "id": "C1", "source": "002", "statement": "It helps & <pays>.", "chapter": "02_finetune",
    "measure": "gain", "metric": "gain.all", "others": {"on *": "gain.on_*"},
    "rule": "supported if above 0.", "verdict": {"above": {"gain.all": 0}},
}  # fmt: skip
NAN = float("nan")
SHARE = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 1000, "unit": "share"}
METRICS = {"gain.all": GAIN, "gain.on_news_texts": GAIN | {"value": 0.12}}


@pytest.fixture
def claim(tmp_path):
    return load_claims(write(tmp_path, [DECLARED]))[0]


def write(folder, claims):
    path = folder / "claims.yaml"
    path.write_text(yaml.safe_dump(claims))
    return path


def test_every_claim_of_the_sources_is_declared():
    numbers = {"A": 2, "B": 5, "C": 9, "D": 3, "E": 5}
    expected = [f"{letter}{n}" for letter, count in numbers.items() for n in range(1, count + 1)]
    claims = load_claims()
    assert [claim.id for claim in claims] == expected
    sources = dict(zip("ABCDE", ("000", "001", "002", "003", "004"), strict=True))
    assert all(claim.source == sources[claim.id[0]] for claim in claims)


def test_the_chapter_of_a_claim_judges_it():
    code = {path.stem: path.read_text("utf-8") for path in list_chapters()}
    for claim in load_claims():
        lines = [ln for ln in code[claim.chapter].splitlines() if "chapter.verdict(" in ln]
        assert any(f'\\"{claim.id}\\"' in line for line in lines), claim.id


def test_a_chapter_knows_its_claims(tmp_path):
    found = [claim.id for claim in claims_of(NOTEBOOKS / "04_maps.ipynb")]
    assert found == ["C3", "C4"]
    assert claims_of(tmp_path / "04_maps.ipynb") == []


def test_conditions_that_claims_require_are_known():
    known = (ROOT / "src/sentigeo/preflight.py").read_text("utf-8")
    for claim in load_claims():
        assert claim.requires is None or f'"{claim.requires}": (' in known


@pytest.mark.published
def test_published_verdicts_follow_from_the_published_metrics():
    results = json.loads((ROOT / "reports/results.json").read_text("utf-8"))
    reasons = results["untestable"]
    judged = [judge_claim(own, results["metrics"], reasons.get(own.id)) for own in load_claims()]
    assert judged == results["claims"], "run make report"
    assert {claim["verdict"] for claim in judged} > {"supported", "refuted", "not supported"}


def test_a_claim_is_judged_by_what_was_measured(claim):
    judged = judge_claim(claim, METRICS, None)
    assert judged["verdict"] == "supported"
    assert judged["reason"] is None
    assert {k: judged[k] for k in GAIN} == GAIN
    [other] = judged["others"]
    assert (other["measure"], other["value"]) == ("on news texts", 0.12)
    low = METRICS | {"gain.all": GAIN | {"low": -0.01}}
    assert judge_claim(claim, low, None)["verdict"] == "not supported"


def test_a_claim_without_a_measurement_is_an_error(claim):
    for missing in METRICS:
        metrics = {name: own for name, own in METRICS.items() if name != missing}
        with pytest.raises(UserError, match=r"The claim C1 names 'gain\.(all|on_\*)', which no"):
            judge_claim(claim, metrics, None)


def test_a_claim_that_cannot_be_tested_says_why(claim):
    judged = judge_claim(claim, {}, "There are no pairs.")
    assert judged["verdict"] == "not testable in this profile"
    assert judged["reason"] == "There are no pairs."
    assert judged["value"] is None
    assert judged["others"] == []
    assert "Why: There are no pairs." in show_claim(judged)[1]


def test_a_claim_is_shown_with_everything_behind_it(claim):
    page, plain = show_claim(judge_claim(claim, METRICS, None))
    assert plain == (
        "C1. It helps & <pays>. Verdict: supported.\n"
        "Measured: gain: +0.100 [+0.050, +0.150; n = 40] "
        "(on news texts +0.120 [+0.050, +0.150; n = 40]).\n"
        "Rule: supported if above 0."
    )
    assert '<b class="verdict verdict-supported">supported</b>' in page
    assert "It helps &amp; &lt;pays&gt;." in page


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"verdict": {"over": {"gain.all": 0}}},
            "The rule of C1 in claims.yaml: 'over' is not one of",
        ),
        ({"source": "2"}, "String should match pattern"),
        ({"metrics": "gain"}, "Extra inputs are not permitted"),
        ({"rule": None}, "valid string"),
    ],
)
def test_a_claim_that_is_declared_wrongly_is_refused(tmp_path, change, message):
    with pytest.raises(UserError, match=message):
        load_claims(write(tmp_path, [DECLARED | change]))


def test_a_claim_is_declared_once(tmp_path):
    with pytest.raises(UserError, match=r"claims\.yaml declares the claim C1 twice"):
        load_claims(write(tmp_path, [DECLARED, DECLARED]))


def test_the_ledger_lies_beside_the_chapters():
    assert LEDGER.parent == NOTEBOOKS


def test_badges():
    assert 'class="verdict verdict-partly"' in show_badge("partly")
    assert 'class="verdict verdict-not-testable"' in show_badge("not testable in this profile")


CLAIM = {
    "id": "B1", "source": "001", "statement": "Cosines & <classes>.", "chapter": "08_similarity",
    "metric": "similarity.before.auc", "measure": "AUC", "rule": "below 0.6.", "others": [],
    "value": 0.55, "low": 0.5, "high": 0.58, "n": 200, "unit": "AUC", "verdict": "supported",
    "reason": None, "margin": 0.02,
}  # fmt: skip


def test_the_table_names_everything_a_verdict_rests_on():
    page, plain = ledger_table([CLAIM])
    assert plain == "B1 Cosines & <classes>. AUC: 0.550 [0.500, 0.580; n = 200]: supported"
    link = '<a href="08_similarity.ipynb#B1">Cosines &amp; &lt;classes&gt;.</a>'
    assert f"<td>{link}</td>" in page
    assert f"<td>{link}</td>" not in ledger_table([CLAIM], skipped=["08_similarity"])[0]
    assert "<td>AUC: 0.550 [0.500, 0.580; n = 200]</td><td>below 0.6.</td>" in page


def test_the_table_says_why_a_claim_was_not_tested():
    untested = CLAIM | {"reason": "There are no pairs.", "verdict": "not testable in this profile"}
    page, _ = ledger_table([untested])
    assert "<td>There are no pairs.</td>" in page
    assert 'class="verdict verdict-not-testable"' in page


@pytest.mark.parametrize(
    ("low", "high", "margin"),
    [(0.05, 0.15, 0.05), (-0.3, -0.03, 0.03), (-0.01, 0.2, -0.01), (-0.2, 0.01, -0.01)],
)
def test_margins_are_distances_from_the_rules_number(claim, low, high, margin):
    metrics = METRICS | {"gain.all": GAIN | {"low": low, "high": high}}
    assert judge_claim(claim, metrics, None)["margin"] == pytest.approx(margin)


@pytest.mark.parametrize("change", [{"unit": "count"}, {"low": None, "high": None}])
def test_what_has_no_interval_has_no_margin(claim, change):
    judged = judge_claim(claim, METRICS | {"gain.all": GAIN | change}, "It is not tested.")
    assert judged["margin"] is None
    assert list_margins([judged]).empty


def test_closest_calls_come_first():
    found = list_margins([CLAIM, CLAIM | {"id": "E5", "margin": -0.01}])
    assert found["claim"].tolist() == ["E5", "B1"]
    assert found["measured"].tolist() == ["0.550 [0.500, 0.580; n = 200]"] * 2


def test_published_claims_are_in_the_order_of_the_ledger():
    results = json.loads((ROOT / "reports/results.json").read_text("utf-8"))
    assert [c["id"] for c in results["claims"]] == [claim.id for claim in load_claims()]


def write_part(folder, name, **changes):
    part = {"facts": {}, "metrics": {}, "figures": [], "pages": [], "untestable": {},
            "checkpoints": {}, "claims": {}}  # fmt: skip
    (folder / f"{name}.json").write_text(json.dumps(part | changes))


def test_metrics_are_written_and_read():
    assert write_metric(Estimate(0.5, 0.4, 0.6, 1000), "share") == SHARE
    assert read_metric(SHARE) == Estimate(0.5, 0.4, 0.6, 1000)
    unknown = write_metric(Estimate(0.5, NAN, NAN, 1), "share")
    assert (unknown["value"], unknown["low"], unknown["high"]) == (0.5, None, None)
    assert read_metric(unknown).low != read_metric(unknown).low


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({}, "0.500 [0.400, 0.600; n = 1,000]"),
        ({"unit": "difference of AUC"}, "+0.500 [+0.400, +0.600; n = 1,000]"),
        ({"unit": "Spearman"}, "+0.500 [+0.400, +0.600; n = 1,000]"),
        ({"value": None, "low": None, "high": None}, "-"),
        ({"low": None, "high": None}, "0.500 [n = 1,000]"),
        ({"unit": "count", "value": 6000}, "6,000"),
        ({"unit": "count", "value": 22.713216}, "22.71"),
    ],
)
def test_metrics_are_described(change, text):
    assert describe_metric(SHARE | change) == text


def test_parts_are_merged_in_order(tmp_path):
    write_part(tmp_path, "01_a", metrics={"a.x": SHARE}, facts={"data": {"rows": 3}})
    write_part(tmp_path, "02_b", metrics={"b.x": SHARE}, untestable={"C1": "No."}, figures=["f"])
    merged = merge_parts(tmp_path, ["01_a", "02_b"])
    assert list(merged["metrics"]) == ["a.x", "b.x"]
    assert merged["untestable"] == {"C1": "No."}
    assert merged["figures"] == {"01_a": [], "02_b": ["f"]}
    assert merged["data"] == {"rows": 3}


def test_parts_must_be_there_and_may_not_repeat_metrics(tmp_path):
    write_part(tmp_path, "01_a", metrics={"a.x": SHARE})
    write_part(tmp_path, "02_b", metrics={"a.x": SHARE})
    with pytest.raises(
        UserError, match=r"02_b records 'a\.x', which an earlier chapter already recorded"
    ):
        merge_parts(tmp_path, ["01_a", "02_b"])
    with pytest.raises(UserError, match="03_c recorded nothing under its own name"):
        merge_parts(tmp_path, ["01_a", "03_c"])
