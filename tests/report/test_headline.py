import json
from copy import deepcopy

import pytest

from sentigeo.errors import UserError
from sentigeo.paths import ROOT, run_paths
from sentigeo.report.headline import (
    BEGIN,
    END,
    abstract,
    answer_samples,
    compare_models,
    fill_readme,
    headline_table,
)


def metric(value, low, high, n=100, unit="share"):
    return {"value": value, "low": low, "high": high, "n": n, "unit": unit}


def claim(number, verdict, found, reason=None):
    return {"id": number, "statement": f"Statement {number}.", "chapter": "02_finetune",
            "measure": "gain", "verdict": verdict, "reason": reason, **found}  # fmt: skip


def difference(value, low, high, n=20):
    return metric(value, low, high, n, "difference")


RESULTS = {
    "encoder": {"name": "tiny-bert", "layers": 6},
    "settings": {
        "contrastive_samples": 8,
        "doses": [8, 32],
        "draw_per_label": 2500,
        "headline_seeds": 10,
    },
    "metrics": {
        "baseline.majority.test_accuracy": metric(0.5, 0.45, 0.55),
        "baseline.tfidf.test_accuracy": metric(0.8, 0.75, 0.85),
        "baseline.tfidf.test_accuracy_new_films": metric(0.78, 0.74, 0.82, 60),
        "baseline.probe_cls.test_accuracy": metric(0.7, 0.65, 0.75),
        "baseline.untrained.test_accuracy": metric(0.6, 0.5, 0.7, 50),
        "finetune.trained_layers": metric(1, 1, 1, 1, "count"),
        "finetune.kept_layers": metric(4, 4, 4, 1, "count"),
        "finetune.without.test_accuracy": metric(0.82, 0.78, 0.86),
        "finetune.without.test_accuracy_new_films": metric(0.81, 0.77, 0.85, 60),
        "finetune.without_minus_tfidf.test_accuracy_new_films": difference(0.03, -0.01, 0.07, 60),
        "finetune.with.test_accuracy": metric(0.83, 0.79, 0.87),
        "finetune.with_minus_without.test_accuracy": difference(0.01, -0.01, 0.03, 100),
        "finetune.with_32.test_accuracy": metric(0.84, 0.8, 0.88),
        "finetune.positive_control.test_accuracy": metric(0.85, 0.81, 0.89),
        "pairs.natural.tfidf.consistency": metric(0.3, 0.2, 0.4, 20),
        "pairs.natural.without.consistency": metric(0.4706, 0.402, 0.54, 20),
        "pairs.natural.with.consistency": metric(0.48, 0.41, 0.55, 20),
        "pairs.hard.without.consistency": metric(0.05, 0.0, 0.1, 30),
        "pairs.natural.with_minus_without.logit_difference": difference(0.01, -0.02, 0.04),
        "pairs.natural.positive_control.logit_difference": difference(0.3, 0.2, 0.4),
        "source.reruns.share_at_least_39_points": metric(0.012, 0.007, 0.021, 1000),
        "source.reruns.with.share_at_least_39_points": metric(0.01, 0.005, 0.018, 1000),
        "cluster.before.accuracy": metric(0.52, 0.47, 0.57),
        "cluster.without.accuracy": metric(0.8, 0.76, 0.84),
        "cluster.after.accuracy": metric(0.81, 0.77, 0.85),
    },
    "claims": [
        claim("C1", "not supported", difference(0.01, -0.02, 0.04)),
        claim("A1", "supported", metric(7, 7, 7, 1, "count")),
        claim("B1", "not testable in this profile", metric(None, None, None), "It has one class."),
    ],
}
EFFECT = "pairs.natural.with_minus_without.logit_difference"
CONTROL = "pairs.natural.positive_control.logit_difference"


def change(metrics):
    """Results with other metrics by name; `None` takes one out."""
    results = deepcopy(RESULTS)
    results["metrics"] |= metrics
    results["metrics"] = {name: own for name, own in results["metrics"].items() if own}
    return results


def spaced(text):
    return text.replace("\u00a0", " ")


def test_the_table_has_a_row_a_model_and_a_dash_where_nothing_was_measured():
    table = headline_table(RESULTS).map(spaced).rename(columns=spaced)
    assert table.columns.tolist() == [
        "model", "test accuracy (n = 100)", "test accuracy, new films (n = 60)",
        "consistency, natural pairs (n = 20)", "consistency, hard pairs (n = 30)",
        "K-Means agreement (n = 100)",
    ]  # fmt: skip
    assert table["model"].tolist() == [
        "largest class", "TF-IDF + logistic regression", "linear probe, [CLS]",
        "untrained encoder, linear probe", "fine-tuned without samples",
        "fine-tuned with 8 samples", "fine-tuned with 32 samples", "positive control",
    ]  # fmt: skip
    rows = table.set_index("model").T.to_dict("list")
    assert rows["largest class"] == ["50.0% (45.0 to 55.0)", "-", "-", "-", "-"]
    assert rows["linear probe, [CLS]"][-1] == "52.0% (47.0 to 57.0)"
    assert rows["fine-tuned without samples"] == [
        "82.0% (78.0 to 86.0)", "81.0% (77.0 to 85.0)", "47.1% (40.2 to 54.0)",
        "5.0% (0.0 to 10.0)", "80.0% (76.0 to 84.0)",
    ]  # fmt: skip
    assert rows["fine-tuned with 8 samples"][-1] == "81.0% (77.0 to 85.0)"
    assert rows["positive control"][0] == "85.0% (81.0 to 89.0)"


def test_a_model_that_was_tested_on_fewer_reviews_says_so():
    table = headline_table(RESULTS).set_index("model")
    written = table.loc["untrained encoder, linear probe"].iloc[0]
    assert spaced(written) == "60.0% (50.0 to 70.0; n = 50)"


def test_every_model_of_chapter_2_has_its_row():
    models = ["majority", "lexicon", "nbsvm", "tfidf", "probe_cls", "probe_mean", "untrained"]
    names = [f"baseline.{model}.test_accuracy_new_films" for model in models]
    arms = ("head_only", "without", "with", "with_32", "positive_control")
    names += [f"finetune.{arm}.test_accuracy_new_films" for arm in arms]
    found = {name: metric(place / 100, 0, 1) for place, name in enumerate(names, 1)}
    reached = compare_models(change(found)).values()
    values = [own["test accuracy, new films"]["value"] for own in reached]
    assert values == [place / 100 for place in range(1, 13)]


def test_without_handcrafted_texts_there_is_one_tuned_model_and_no_pairs():
    results = deepcopy(RESULTS)
    results["metrics"] = {
        name: own for name, own in RESULTS["metrics"].items()
        if "pairs" not in name and "with." not in name and "with_" not in name
    }  # fmt: skip
    reached = compare_models(results)
    assert "fine-tuned" in reached
    assert list(reached["fine-tuned"]) == [
        "test accuracy", "test accuracy, new films", "K-Means agreement"
    ]  # fmt: skip
    assert reached["fine-tuned"]["K-Means agreement"]["value"] == 0.81
    assert answer_samples(results) is None
    said = " ".join(abstract(results))
    assert "tested on 100 others." in said
    assert "pairs" not in said


@pytest.mark.parametrize(
    ("low", "high", "short"),
    [
        (0.06, 0.12, "Yes"),
        (0.05, 0.12, "Yes, but perhaps too little to matter"),
        (0.01, 0.05, "Yes, but perhaps too little to matter"),
        (0.01, 0.04, "Yes, but too little to matter"),
        (0.0, 0.04, "No: an effect of interest is excluded"),
        (-0.02, 0.04, "No: an effect of interest is excluded"),
        (-0.06, 0.04, "No: a gain of interest is excluded"),
        (-0.02, 0.05, "Too little evidence"),
        (-0.12, 0.12, "Too little evidence"),
        (-0.04, -0.01, "No: they do harm, but too little to matter"),
        (-0.12, -0.01, "No: they do harm"),
    ],
)
def test_the_answer_follows_the_interval(low, high, short):
    effect = difference((low + high) / 2, low, high)
    answer = answer_samples(change({EFFECT: effect}))
    assert answer.short == short
    assert answer.question == "Do the 8 contrastive samples help?"
    assert answer.verdict == "not supported"
    assert "the instrument can move" in answer.sentences[1]


@pytest.mark.parametrize(("low", "high"), [(-0.1, 0.7), (0.0, 0.6), (-0.7, -0.1)])
@pytest.mark.parametrize("effect", [(0.06, 0.12), (-0.02, 0.04)])
def test_nothing_follows_where_the_positive_control_did_not_work(low, high, effect):
    control = difference((low + high) / 2, low, high)
    answer = answer_samples(change({CONTROL: control, EFFECT: difference(0, *effect)}))
    assert answer.short == "Nothing follows: the positive control did not work"
    assert answer.sentences[1].endswith("no rise, so nothing follows from the change above.")


def test_the_smallest_effect_is_the_one_that_was_fixed(monkeypatch):
    fixed = {"primary": {"endpoint": "x"}, "smallest_effects": {"x": 0.03, "y": 0.5}}
    monkeypatch.setattr("sentigeo.report.headline.load_endpoints", lambda: fixed)
    answer = answer_samples(RESULTS)
    assert answer.short == "Too little evidence"
    assert answer.sentences[0].endswith("smallest effect of interest 0.03.")


def test_the_abstract_says_every_number_with_its_interval():
    said = [spaced(sentence) for sentence in abstract(RESULTS)]
    assert said == [
        "The BERT-type encoder tiny-bert was fine-tuned (its lowest 4 of 6 layers, 1 of them "
        "trained) on a draw of up to "
        "2,500 reviews a class and tested on 100 others.",
        "What samples change is measured on pairs of texts that differ in little but their "
        "verdict, in tiers: 20 natural, 30 hard.",
        "With 8 contrastive samples in training, the logit difference between the sides of natural "
        "pairs (held-out reviews and their edits to the opposite verdict) changes by +0.010 "
        "(95% CI -0.020 to +0.040) standard deviations of a model's logits; 10 trainings of each "
        "kind, 20 pairs, smallest effect of interest 0.05.",
        "Edited reviews in training, the positive control, change it by +0.300 (95% CI +0.200 to "
        "+0.400): the instrument can move.",
        "Both sides are right in 47.1% (95% CI 40.2 to 54.0) of these pairs without samples and in "
        "48.0% (95% CI 41.0 to 55.0) with them; accuracy on ordinary test reviews changes by +1.0 "
        "points (95% CI -1.0 to +3.0).",
        "The source's own experiment, repeated 1,000 times with a linear classifier on frozen "
        "vectors, gains at least its 39 points with ordinary reviews in place of the samples in "
        "1.2% (95% CI 0.7 to 2.1) of the runs, with samples in 1.0% (95% CI 0.5 to 1.8).",
        "Of test reviews of films that no training review is about, the encoder fine-tuned without "
        "samples labels 81.0% (95% CI 77.0 to 85.0) right and TF-IDF with logistic regression "
        "78.0% (95% CI 74.0 to 82.0): +3.0 points (95% CI -1.0 to +7.0), no clear difference.",
        "K-Means, which knows no labels, agrees with 52.0% (95% CI 47.0 to 57.0) of them on "
        "pretrained [CLS] vectors, not distinguishable from the largest class; on vectors that "
        "were fine-tuned, with labels, it agrees with 81.0% (95% CI 77.0 to 85.0).",
        "Claims of the sources: 1 supported, 1 not supported, 1 not testable in this profile.",
    ]


def test_the_packaged_encoder_is_called_what_it_is():
    results = RESULTS | {"encoder": {"name": "all-MiniLM-L6-v2", "layers": 6}}
    begin = "The six-layer BERT-type sentence encoder all-MiniLM-L6-v2 was fine-tuned"
    assert abstract(results)[0].startswith(begin)


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(0.01, 0.05, "a lead over a bag of words"), (-0.05, -0.01, "a bag of words is better")],
)
def test_the_comparison_with_the_baseline_follows_the_interval(low, high, said):
    name = "finetune.without_minus_tfidf.test_accuracy_new_films"
    assert f"), {said}." in " ".join(abstract(change({name: difference(0.0, low, high)})))


def test_where_films_cannot_be_told_all_test_reviews_are_compared():
    name = "finetune.without_minus_tfidf.test_accuracy"
    films = {f"{name}_new_films": None, name: difference(0.02, 0.01, 0.03, 100)}
    said = spaced(" ".join(abstract(change(films))))
    assert "Of the test reviews, the encoder fine-tuned without samples labels 82.0%" in said
    assert "films" not in said


def test_clusters_above_the_largest_class_are_said_to_be():
    results = change({"cluster.before.accuracy": metric(0.6, 0.55, 0.65)})
    assert "[CLS] vectors, above the largest class" in " ".join(abstract(results))


def test_chapters_that_were_skipped_leave_their_sentences_out():
    nothing = deepcopy(RESULTS) | {"metrics": {}, "claims": []}
    assert abstract(nothing) == []
    assert headline_table(nothing).empty


def test_no_interval_breaks_over_lines():
    written = headline_table(RESULTS).iloc[0, 1]
    assert written.split(" ") == ["50.0%", "(45.0\u00a0to\u00a055.0)"]
    sentence = answer_samples(RESULTS).sentences[2]
    assert " (95%\u00a0CI\u00a040.2\u00a0to\u00a054.0) " in sentence


@pytest.mark.published
def test_the_published_report_has_all_rows():
    results = json.loads((run_paths("laptop").reports / "results.json").read_text("utf-8"))
    assert len(compare_models(results)) == 12
    assert len(answer_samples(results).sentences) == 4
    assert len(abstract(results)) == 9


FEW = {
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
    text = fill_readme(f"before\n{BEGIN}\nold 0.1\n{END}\nafter", FEW)
    assert text.startswith(f"before\n{BEGIN}\n")
    assert text.endswith(f"{END}\nafter")
    assert "old 0.1" not in text
    assert "| TF-IDF + logistic regression | 50.0% (40.0 to 60.0) |" in text
    assert fill_readme(text, FEW) == text


def test_the_readme_has_the_answer_its_verdict_and_a_table_after_a_blank_line():
    text = fill_readme(f"{BEGIN}{END}", RESULTS)
    opening = "**Do the 8 contrastive samples help? No: an effect of interest is excluded.** With 8"
    assert opening in text
    assert "claim: **not supported**.\n\n| model | test accuracy (n = 100) |" in text
    assert "\n| --- | --- | --- | --- | --- | --- |\n| largest class | 50.0%" in text
    assert text.count("the instrument can move") == 1


def test_a_readme_without_marks_is_refused():
    with pytest.raises(UserError, match=r"README\.md lacks the lines"):
        fill_readme(f"{BEGIN} only", FEW)


@pytest.mark.published
def test_the_readme_is_in_step_with_the_published_results():
    text = (ROOT / "README.md").read_text("utf-8")
    results = json.loads((ROOT / "reports/results.json").read_text("utf-8"))
    assert fill_readme(text, results) == text, "run 'make report' and commit what it makes"
    effect = results["metrics"]["pairs.natural.with_minus_without.logit_difference"]
    assert f"{effect['value']:+.3f} (95% CI" in text
    assert f"{results['metrics']['cluster.after.accuracy']['value']:.1%}" in text
