"""All chapters on a person's texts and encoder."""

import json
import shutil
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import write_rows

from sentigeo.paths import ROOT
from sentigeo.preflight import check_run
from sentigeo.profile import load_profile
from sentigeo.report.publish import run_report

SMALL = {
    "draw_per_label": 20, "test_reviews": 60, "epochs": 1, "head_epochs": 1, "headline_seeds": 1,
    "seeds": 1, "map_seeds": 1, "shot_draws": 2, "sentences": 20, "explained": 2,
    "bootstrap_samples": 100, "reruns": 2, "untrained_reviews": 20,
}  # fmt: skip


class FirstColumns:
    """Stands in for UMAP, which compiles for a quarter of a minute."""

    def __init__(self, **settings):
        self.settings = settings

    def fit_transform(self, distances):
        return distances[:, :2]

    transform = fit_transform


@pytest.mark.usefixtures("in_process")
def test_report_on_a_users_own_texts_and_encoder(tiny_mpnet, tmp_path, monkeypatch):
    """Ten unequal classes in another language, eleven clusters, and an encoder of another build."""
    monkeypatch.setattr("sentigeo.report.page.FIGURE_DPI", 40)
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")  # trainings in this process, too
    monkeypatch.setitem(sys.modules, "umap", SimpleNamespace(UMAP=FirstColumns))
    rng = np.random.default_rng(0)
    names = ["gatti", "auto", "zuppa", "mare", "neve", "pane", "luna", "treno", "fiori", "musica"]
    shared = [*names, "il", "la", "e", "di"]
    rows = [
        {"body": " ".join(rng.choice([name] * 9 + shared, rng.integers(5, 30))), "topic": name}
        for place, name in enumerate(names)
        for _ in range(24 + 3 * place)
    ]
    shutil.copytree(ROOT / "notebooks", tmp_path / "notebooks")
    overrides = {
        "reviews": str(write_rows(tmp_path / "own.json", rows)), "text_column": "body",
        "label_column": "topic", "labels": {}, "language": "it", "model": str(tiny_mpnet),
        "max_length": 64, "clusters": 11, "deep_sets": ["bbc_news"], **SMALL,
    }  # fmt: skip
    profile = load_profile("quick", **overrides)
    paths = run_report(profile, tmp_path, check_run(profile))
    results = json.loads((paths.reports / "results.json").read_text())
    metrics, verdicts = results["metrics"], {c["id"]: c["verdict"] for c in results["claims"]}
    assert results["skipped"].keys() == {"11_deep_clustering"}
    assert results["seconds"].keys() == {path.stem for path in paths.reports.glob("*.ipynb")}
    assert len(results["seconds"]) == 12
    reasons = [results["conditions"][name] for name in ("pairs", "english")]
    copies = "".join(path.read_text() for path in paths.reports.glob("*.ipynb"))
    for reason in reasons:
        assert f"*Left out: {reason}*" in copies
    assert results["encoder"]["architecture"] == "MPNetModel"
    assert metrics["baseline.tfidf.test_accuracy"]["value"] > 0.9
    assert metrics["keywords.before.log_odds.class_association"]["value"] > 0
    assert {"A2", "B1", "C5", "C6", "E2"} <= verdicts.keys()
    for untested in ("B3", "C8", "E1"):
        assert verdicts[untested] == "not testable in this profile"
    assert "(no class)" in (paths.reports / "05_clusters.ipynb").read_text()
    english = [name for name in metrics if "challenge" in name or name.startswith("senses.")]
    assert not english
    assert not [name for name in metrics if "zero_shot" in name]
