import json

import pytest

from sentigeo.errors import UserError
from sentigeo.ledger.metrics import describe_metric, merge_parts, read_metric, write_metric
from sentigeo.stats import Estimate

NAN = float("nan")
SHARE = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 1000, "unit": "share"}


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
    with pytest.raises(UserError, match=r"02_b records 'a\.x', which stands already"):
        merge_parts(tmp_path, ["01_a", "02_b"])
    with pytest.raises(UserError, match="03_c recorded nothing under its own name"):
        merge_parts(tmp_path, ["01_a", "03_c"])
