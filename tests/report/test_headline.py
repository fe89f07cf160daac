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


RESULTS = {
    "encoder": {"name": "tiny-bert", "layers": 6},
    "settings": {
        "contrastive_samples": 8,
        "draw_per_label": 2500,
        "headline_seeds": 2,
        "seeds": 5,
    },
    "metrics": {
        "baseline.majority.test_accuracy": metric(0.5, 0.45, 0.55),
        "baseline.tfidf.test_accuracy": metric(0.8, 0.75, 0.85),
        "baseline.tfidf.challenge_consistency": metric(0.25, 0.1, 0.4, 20),
        "embed.before.probe_accuracy": metric(0.7, 0.65, 0.75),
        "finetune.layers": metric(1.5, 1.5, 1.5, 1, "count"),
        "finetune.without.test_accuracy": metric(0.82, 0.78, 0.86),
        "finetune.without.challenge_consistency": metric(0.2, 0.1, 0.3, 20),
        "finetune.with.test_accuracy": metric(0.83, 0.79, 0.87),
        "finetune.with.challenge_consistency": metric(0.25, 0.1, 0.4, 20),
        "finetune.with_minus_without.test_accuracy": metric(0.01, -0.01, 0.03, 100, "difference"),
        "finetune.with_minus_without.challenge_consistency": metric(
            0.05, -0.02, 0.12, 20, "difference"
        ),
        "finetune.dose_8_minus_dose_0.challenge_consistency": metric(
            0.01, -0.04, 0.05, 20, "difference"
        ),
        "cluster.before.accuracy": metric(0.52, 0.47, 0.57),
        "cluster.after.accuracy": metric(0.81, 0.77, 0.85),
    },
    "claims": [
        claim("C1", "not supported", metric(0.05, -0.02, 0.12, 20, "difference")),
        claim("A1", "supported", metric(7, 7, 7, 1, "count")),
        claim("B1", "not testable in this profile", metric(None, None, None), "It has one class."),
    ],
}


def change(**metrics):
    """Results with other metrics, given as `finetune__with__x`; `None` takes one out."""
    results = deepcopy(RESULTS)
    for name, own in metrics.items():
        results["metrics"].pop(name.replace("__", "."), None)
        if own:
            results["metrics"][name.replace("__", ".")] = own
    return results


def spaced(text):
    return text.replace("\u00a0", " ")


def test_the_table_has_a_row_a_model_and_a_dash_where_nothing_was_measured():
    table = headline_table(RESULTS).map(spaced)
    assert table.columns.tolist() == [
        "model", "test accuracy", "challenge consistency", "K-Means agreement"
    ]  # fmt: skip
    assert table["model"].tolist() == [
        "majority class", "TF-IDF + logistic regression", "un-tuned encoder, linear probe",
        "fine-tuned without samples", "fine-tuned with 8 samples",
    ]  # fmt: skip
    assert table.iloc[0].tolist() == ["majority class", "0.500 [0.450, 0.550; n = 100]", "-", "-"]
    assert table.iloc[4].tolist()[1:] == [
        "0.830 [0.790, 0.870; n = 100]", "0.250 [0.100, 0.400; n = 20]",
        "0.810 [0.770, 0.850; n = 100]",
    ]  # fmt: skip


def test_without_handcrafted_texts_there_is_one_tuned_model_and_no_challenge():
    results = deepcopy(RESULTS)
    results["metrics"] = {
        name: own for name, own in RESULTS["metrics"].items()
        if "challenge" not in name and "with." not in name and "with_" not in name
    }  # fmt: skip
    reached = compare_models(results)
    assert list(reached)[-1] == "fine-tuned"
    assert list(reached["fine-tuned"]) == ["test accuracy", "K-Means agreement"]
    assert reached["fine-tuned"]["K-Means agreement"]["value"] == 0.81
    assert answer_samples(results) is None
    said = " ".join(abstract(results))
    assert "tested on 100 others." in said
    assert "pairs" not in said


@pytest.mark.parametrize(
    ("low", "high", "short", "bound"),
    [
        (-0.02, 0.12, "Not that we can measure",
         "A gain of more than 0.120, or a loss of more than 0.020,"),
        (0.0, 0.12, "Not that we can measure",
         "A gain of more than 0.120, or a loss of more than 0.000,"),
        (0.01, 0.12, "Yes, they help", "A gain of less than 0.010"),
        (-0.12, -0.01, "No, they do harm", "A loss of less than 0.010"),
    ],
)  # fmt: skip
def test_the_answer_follows_the_interval(low, high, short, bound):
    effect = metric((low + high) / 2, low, high, 20, "difference")
    answer = answer_samples(change(finetune__with_minus_without__challenge_consistency=effect))
    assert answer.short == short
    assert answer.question == "Do the 8 contrastive samples help?"
    assert answer.verdict == "not supported"
    assert answer.sentences[1] == f"{bound} would not fit these 20 pairs (95% interval)."


def test_the_abstract_says_every_number_with_interval_and_n():
    said = [spaced(sentence) for sentence in abstract(RESULTS)]
    assert said == [
        "tiny-bert was fine-tuned (1.5 of its 6 layers) on a draw of up to 2,500 reviews a class "
        "and tested on 100 others and on 20 handcrafted challenge pairs.",
        "The 8 samples change the share of challenge pairs with both sides right by "
        "+0.050 [-0.020, +0.120; n = 20], and the accuracy on ordinary test reviews by "
        "+0.010 [-0.010, +0.030; n = 100].",
        "A gain of more than 0.120, or a loss of more than 0.020, would not fit these 20 pairs "
        "(95% interval).",
        "The interval rests on 2 trainings of each kind: it should be wider.",
        "In the dose-response, 5 trainings each, the change is +0.010 [-0.040, +0.050; n = 20].",
        "Fine-tuned with 8 samples, the encoder labels 0.830 [0.790, 0.870; n = 100] of the test "
        "reviews right. "
        "TF-IDF with logistic regression labels 0.800 [0.750, 0.850; n = 100] right (the intervals "
        "overlap), the majority class alone 0.500 [0.450, 0.550; n = 100].",
        "Before fine-tuning, a linear probe reads 0.700 [0.650, 0.750; n = 100] of the labels off "
        "the vectors. K-Means, which knows no labels, agrees with 0.520 [0.470, 0.570; n = 100] of "
        "them, not distinguishable from the majority class; on vectors that were fine-tuned, with "
        "labels, it agrees with 0.810 [0.770, 0.850; n = 100].",
        "Claims of the sources: 1 supported, 1 not supported, 1 not testable in this profile.",
    ]


def test_pairs_that_coins_would_do_better_on_are_called_hard():
    right = metric(0.05, 0.01, 0.1, 20)
    said = answer_samples(change(finetune__without__challenge_consistency=right)).sentences
    assert spaced(said[-1]) == (
        "The pairs are hard: without the samples 0.050 [0.010, 0.100; n = 20] of them are right, "
        "where two coin tosses would get 0.25."
    )


def test_enough_seeds_leave_no_doubt_about_the_interval():
    results = deepcopy(RESULTS)
    results["settings"]["headline_seeds"] = 5
    assert "should be wider" not in " ".join(abstract(results))


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(0.86, 0.9, "a clearly lower share"), (0.6, 0.7, "a clearly higher share")],
)
def test_the_comparison_with_the_baseline_follows_the_intervals(low, high, said):
    results = change(finetune__with__test_accuracy=metric(0.8, low, high))
    assert f"right ({said})" in " ".join(abstract(results))


def test_clusters_above_the_majority_are_said_to_be():
    results = change(cluster__before__accuracy=metric(0.6, 0.55, 0.65))
    assert "of them, above the majority class" in " ".join(abstract(results))


def test_chapters_that_were_skipped_leave_their_sentences_out():
    nothing = deepcopy(RESULTS) | {"metrics": {}, "claims": []}
    assert abstract(nothing) == []
    assert headline_table(nothing).empty


def test_no_interval_breaks_over_lines():
    written = headline_table(RESULTS)["test accuracy"][0]
    assert written.split(" ") == ["0.500", "[0.450,\u00a00.550;\u00a0n\u00a0=\u00a0100]"]


def test_the_published_report_has_all_rows():
    results = json.loads((run_paths("laptop").reports / "results.json").read_text("utf-8"))
    assert len(compare_models(results)) == 6
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
    assert "| TF-IDF + logistic regression | 0.500 [0.400, 0.600; n = 10] |" in text
    assert fill_readme(text, FEW) == text


def test_a_readme_without_marks_is_refused():
    with pytest.raises(UserError, match=r"README\.md lacks the lines"):
        fill_readme(f"{BEGIN} only", FEW)


@pytest.mark.published
def test_the_readme_is_in_step_with_the_published_results():
    text = (ROOT / "README.md").read_text("utf-8")
    results = json.loads((ROOT / "reports/results.json").read_text("utf-8"))
    assert fill_readme(text, results) == text, "run 'make report' and commit what it makes"
    for name in ("finetune.with_minus_without.challenge_consistency", "cluster.after.accuracy"):
        assert f"{results['metrics'][name]['value']:.3f}" in text
