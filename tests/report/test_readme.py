import json

import pytest

from sentigeo.errors import UserError
from sentigeo.paths import ROOT
from sentigeo.report.headline import BEGIN, END, fill_readme

RESULTS = {
    "encoder": {"name": "tiny"},
    "settings": {"draw_per_label": 10, "contrastive_samples": 8},
    "claims": [],
    "metrics": {
        "baseline.tfidf.test_accuracy": {
            "value": 0.5, "low": 0.4, "high": 0.6, "n": 10, "unit": "share",
        },
    },
}  # fmt: skip


def test_numbers_stand_between_the_marks():
    text = fill_readme(f"before\n{BEGIN}\nold 0.1\n{END}\nafter", RESULTS)
    assert text.startswith(f"before\n{BEGIN}\n")
    assert text.endswith(f"{END}\nafter")
    assert "old 0.1" not in text
    assert "| TF-IDF + logistic regression | 0.500 [0.400, 0.600; n = 10] |" in text
    assert fill_readme(text, RESULTS) == text


def test_a_readme_without_marks_is_refused():
    with pytest.raises(UserError, match=r"README\.md lacks the lines"):
        fill_readme(f"{BEGIN} only", RESULTS)


def test_the_readme_is_in_step_with_the_published_results():
    text = (ROOT / "README.md").read_text("utf-8")
    results = json.loads((ROOT / "reports/results.json").read_text("utf-8"))
    assert fill_readme(text, results) == text, "run 'make report' and commit what it makes"
    for name in ("finetune.with_minus_without.challenge_consistency", "cluster.after.accuracy"):
        assert f"{results['metrics'][name]['value']:.3f}" in text
