"""What a report says at first sight: an answer, an abstract and a table of models.

Results in, sentences and rows out. No number is typed and every wording follows from where an
interval lies, so that a page made of this stays true when the numbers change. What was not measured
is left out.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pandas as pd

from sentigeo.errors import UserError
from sentigeo.ledger.metrics import Metric, describe_metric, read_metric
from sentigeo.ledger.rules import NOT_SUPPORTED, NOT_TESTABLE, PARTLY, REFUTED, SUPPORTED
from sentigeo.stats import Estimate

MEASURES = ("test accuracy", "challenge consistency", "K-Means agreement")
WORDS = "TF-IDF + logistic regression"
SAMPLES_CLAIM = "C1"  # whether the contrastive samples help
FEW_SEEDS = 5  # with fewer, resampling them understates how far trainings differ
TWO_TOSSES = 0.25  # of pairs that coins get right on both sides
COUNTED = {
    SUPPORTED: "supported",
    PARTLY: "supported in part",
    NOT_SUPPORTED: "not supported",
    REFUTED: "refuted",
    NOT_TESTABLE: "not testable in this profile",
}
TERMS = (
    "95% intervals in brackets, with n; `-`: not measured. *Test accuracy*: share of held-out "
    "reviews labelled right. *Challenge consistency*: share of handcrafted pairs with both sides "
    "right; the sides differ in little but their verdict. *K-Means agreement*: share of held-out "
    "reviews whose cluster, found without labels, stands for their class. Fine-tuned models: means "
    "over trainings, but for K-Means."
)
BEGIN, END = "<!-- numbers: written by 'make report' -->", "<!-- end of numbers -->"


@dataclass(frozen=True)
class Answer:
    """What came out for the main question: in a few words, and in sentences with its numbers."""

    question: str
    short: str
    verdict: str | None  # the ledger's; none where it was not judged
    sentences: list[str]


def find_metric(results: dict[str, Any], name: str) -> Metric | None:
    """Return a metric by name; none if this run has not measured it."""
    found = results["metrics"].get(name)
    return found if found and found["value"] is not None else None


def write(metric: Metric) -> str:
    """Write a metric with its interval and n, which no line breaks."""
    return describe_metric(metric).replace(" ", "\u00a0").replace("\u00a0", " ", 1)


def list_models(results: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Name every model and baseline, with its prefix among the metrics and that of its clusters."""
    models = {
        "majority class": ("baseline.majority.test", ""),
        WORDS: ("baseline.tfidf.test", "cluster.tfidf"),
        "un-tuned encoder, linear probe": ("embed.before.probe", "cluster.before"),
        "classification head only": ("finetune.head_only.test", ""),
    }
    if "finetune.with.test_accuracy" not in results["metrics"]:
        return models | {"fine-tuned": ("finetune.without.test", "cluster.after")}
    samples = results["settings"]["contrastive_samples"]
    return models | {
        "fine-tuned without samples": ("finetune.without.test", "cluster.without"),
        f"fine-tuned with {samples} samples": ("finetune.with.test", "cluster.after"),
    }


def compare_models(results: dict[str, Any]) -> dict[str, dict[str, Metric | None]]:
    """Return what each model reaches, by measure; models and measures without a number are out."""
    found = {}
    for model, (own, clusters) in list_models(results).items():
        challenge = f"{own.rpartition('.')[0]}.challenge_consistency"
        names = (f"{own}_accuracy", challenge, f"{clusters}.accuracy")
        found[model] = [find_metric(results, name) for name in names]
    found = {model: reached for model, reached in found.items() if any(reached)}
    kept = [place for place in range(len(MEASURES)) if any(own[place] for own in found.values())]
    return {model: {MEASURES[place]: own[place] for place in kept} for model, own in found.items()}


def headline_table(results: dict[str, Any]) -> pd.DataFrame:
    """Return a row a model and a column a measure, written with intervals and n."""
    rows = [
        {"model": model} | {measure: write(own) if own else "-" for measure, own in reached.items()}
        for model, reached in compare_models(results).items()
    ]
    return pd.DataFrame(rows)


def answer_samples(results: dict[str, Any]) -> Answer | None:
    """Say whether the contrastive samples help, by how much and how sure that is."""
    metric = find_metric(results, "finetune.with_minus_without.challenge_consistency")
    if not metric:
        return None
    effect, samples = read_metric(metric), results["settings"]["contrastive_samples"]
    short = {"above": "Yes, they help", "below": "No, they do harm"}
    changed = f"The {samples} samples change the share of challenge pairs with both sides right by"
    changed += f" {write(metric)}"
    accuracy = find_metric(results, "finetune.with_minus_without.test_accuracy")
    if accuracy:
        changed += f", and the accuracy on ordinary test reviews by {write(accuracy)}"
    return Answer(
        f"Do the {samples} contrastive samples help?",
        short.get(effect.compare(0.0), "Not that we can measure"),
        next((own["verdict"] for own in results["claims"] if own["id"] == SAMPLES_CLAIM), None),
        [f"{changed}.", bound_effect(effect), *list_doubts(results)],
    )


def bound_effect(effect: Estimate) -> str:
    """Say which effects the interval leaves out."""
    limits = {
        "above": f"A gain of less than {effect.low:.3f}",
        "below": f"A loss of less than {-effect.high:.3f}",
    }
    both = f"A gain of more than {effect.high:.3f}, or a loss of more than {abs(effect.low):.3f},"
    limit = limits.get(effect.compare(0.0), both)
    return f"{limit} would not fit these {effect.n:,} pairs (95% interval)."


def list_doubts(results: dict[str, Any]) -> list[str]:
    """Say what to hold against the interval of the samples' effect."""
    settings = results["settings"]
    seeds, more = settings["headline_seeds"], settings["seeds"]
    said = []
    if seeds < FEW_SEEDS:
        said.append(f"The interval rests on {seeds} trainings of each kind: it should be wider.")
    dose = f"dose_{settings['contrastive_samples']}_minus_dose_0"
    again = find_metric(results, f"finetune.{dose}.challenge_consistency")
    if again:
        said.append(f"In the dose-response, {more} trainings each, the change is {write(again)}.")
    right = find_metric(results, "finetune.without.challenge_consistency")
    if right and read_metric(right).compare(TWO_TOSSES) == "below":
        said.append(
            f"The pairs are hard: without the samples {write(right)} of them are right, where two "
            f"coin tosses would get {TWO_TOSSES}."
        )
    return said


def abstract(results: dict[str, Any]) -> list[str]:
    """Return a few sentences with what was done and what came out."""
    answer = answer_samples(results)
    setting, rest = _say_setting(results), [_say_accuracy, _say_geometry, _say_verdicts]
    answered = answer.sentences if answer else []
    return list(filter(None, [setting, *answered, *(say(results) for say in rest)]))


def _say_setting(results: dict[str, Any]) -> str | None:
    tested = find_metric(results, "finetune.without.test_accuracy")
    pairs = find_metric(results, "finetune.without.challenge_consistency")
    if not tested:
        return None
    encoder, layers = results["encoder"], find_metric(results, "finetune.layers")
    deep = f" ({layers['value']:g} of its {encoder['layers']} layers)" if layers else ""
    return (
        f"{encoder['name']} was fine-tuned{deep} on a draw of up to "
        f"{results['settings']['draw_per_label']:,} reviews a class and tested on {tested['n']:,} "
        "others" + (f" and on {pairs['n']:,} handcrafted challenge pairs." if pairs else ".")
    )


def _say_accuracy(results: dict[str, Any]) -> str | None:
    reached = {model: own.get(MEASURES[0]) for model, own in compare_models(results).items()}
    model = next((model for model in reversed(reached) if "fine-tuned" in model), "")
    tuned, words, majority = (reached.get(name) for name in (model, WORDS, "majority class"))
    if not (tuned and words and majority):
        return None
    place = "the intervals overlap"
    if read_metric(tuned).low > read_metric(words).high:
        place = "a clearly lower share"
    elif read_metric(tuned).high < read_metric(words).low:
        place = "a clearly higher share"
    return (
        f"{model.capitalize()}, the encoder labels {write(tuned)} of the test reviews right. "
        f"TF-IDF with logistic regression labels {write(words)} right ({place}), the majority "
        f"class alone {write(majority)}."
    )


def _say_geometry(results: dict[str, Any]) -> str | None:
    names = ("embed.before.probe_", "baseline.majority.test_", "cluster.before.", "cluster.after.")
    probe, majority, before, after = (find_metric(results, f"{name}accuracy") for name in names)
    if not (probe and before and after and majority):
        return None
    return (
        f"Before fine-tuning, a linear probe reads {write(probe)} of the labels off the vectors. "
        f"K-Means, which knows no labels, agrees with {write(before)} of them, "
        f"{read_metric(before).compare(majority['value'])} the majority class; on vectors that "
        f"were fine-tuned, with labels, it agrees with {write(after)}."
    )


def _say_verdicts(results: dict[str, Any]) -> str | None:
    counts = Counter(own["verdict"] for own in results["claims"])
    parts = [f"{counts[verdict]} {words}" for verdict, words in COUNTED.items() if counts[verdict]]
    return f"Claims of the sources: {', '.join(parts)}." if parts else None


def fill_readme(text: str, results: dict[str, Any]) -> str:
    """Return a README with the headline of some results between its two marks, as Markdown."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise UserError(f"README.md lacks the lines '{BEGIN}' and '{END}'.")
    answer, table = answer_samples(results), headline_table(results)
    lines = [list(table.columns), ["---"] * len(table.columns), *table.to_numpy().tolist()]
    rows = ["| " + " | ".join(map(str, line)) + " |" for line in lines]
    said = answer.sentences if answer else []
    others = [sentence for sentence in abstract(results) if sentence not in said]
    paragraphs = ["\n".join(rows), TERMS, " ".join(others)]
    if answer:
        short = f"**{answer.question} {answer.short}.** {' '.join(answer.sentences)}"
        paragraphs.insert(0, short + f" Verdict on the source's claim: **{answer.verdict}**.")
    headline = "\n\n".join(paragraphs).replace("\u00a0", " ")  # read as plain text, too
    return f"{before}{BEGIN}\n\n{headline}\n\n{END}{after}"
