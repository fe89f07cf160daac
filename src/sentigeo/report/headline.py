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
    """What came out for the main question.

    Attributes:
        question: The question.
        short: The answer in a few words.
        verdict: The ledger's verdict on it; none where it was not judged.
        sentences: The answer with its numbers.
    """

    question: str
    short: str
    verdict: str | None
    sentences: list[str]


def find_metric(results: dict[str, Any], name: str) -> Metric | None:
    """Return a metric by name; none if this run has not measured it."""
    found = results["metrics"].get(name)
    return found if found and found["value"] is not None else None


def write(metric: Metric) -> str:
    """Write a metric with its interval and n, which no line breaks."""
    value, _, rest = describe_metric(metric).partition(" ")
    return f"{value} {rest}".strip().replace(" ", "\u00a0").replace("\u00a0", " ", 1)


def list_models(results: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    """Name every model and baseline, with the metrics of its three measures."""
    models = {
        "majority class": _measured("baseline.majority", ""),
        WORDS: _measured("baseline.tfidf", "cluster.tfidf.accuracy"),
        "un-tuned encoder, linear probe": (
            "embed.before.probe_accuracy",
            "embed.before.challenge_consistency",
            "cluster.before.accuracy",
        ),
        "classification head only": _measured("finetune.head_only", ""),
    }
    if "finetune.with.test_accuracy" not in results["metrics"]:
        return models | {"fine-tuned": _measured("finetune.without", "cluster.after.accuracy")}
    samples = results["settings"]["contrastive_samples"]
    return models | {
        "fine-tuned without samples": _measured("finetune.without", "cluster.without.accuracy"),
        f"fine-tuned with {samples} samples": _measured("finetune.with", "cluster.after.accuracy"),
    }


def _measured(model: str, clusters: str) -> tuple[str, str, str]:
    return f"{model}.test_accuracy", f"{model}.challenge_consistency", clusters


def compare_models(results: dict[str, Any]) -> dict[str, dict[str, Metric | None]]:
    """Return what each model reaches, by measure; models and measures without a number are out."""
    found = {
        model: [find_metric(results, name) for name in names]
        for model, names in list_models(results).items()
    }
    found = {model: own for model, own in found.items() if any(own)}
    places = [place for place in range(len(MEASURES)) if any(own[place] for own in found.values())]
    return {
        model: {MEASURES[place]: own[place] for place in places} for model, own in found.items()
    }


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
    changed = (
        f"The {samples} samples change the share of challenge pairs with both sides right by "
        f"{write(metric)}"
    )
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
    if effect.compare(0.0) == "above":
        limit = f"A gain of less than {effect.low:.3f}"
    elif effect.compare(0.0) == "below":
        limit = f"A loss of less than {-effect.high:.3f}"
    else:
        limit = (
            f"A gain of more than {effect.high:.3f}, or a loss of more than {abs(effect.low):.3f},"
        )
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
    found = [
        _say_setting(results),
        *(answer.sentences if answer else []),
        _say_accuracy(results),
        _say_geometry(results),
        _say_verdicts(results),
    ]
    return [sentence for sentence in found if sentence]


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
    relation = {"above": "a clearly lower share", "below": "a clearly higher share"}
    place = relation.get(compare(tuned, words), "the intervals overlap")
    return (
        f"{model.capitalize()}, the encoder labels {write(tuned)} of the test reviews right. "
        f"TF-IDF with logistic regression labels {write(words)} right ({place}), the majority "
        f"class alone {write(majority)}."
    )


def _say_geometry(results: dict[str, Any]) -> str | None:
    names = ("embed.before.probe", "cluster.before", "cluster.after", "baseline.majority.test")
    ends = ("_accuracy", ".accuracy", ".accuracy", "_accuracy")
    probe, before, after, majority = (
        find_metric(results, name + end) for name, end in zip(names, ends, strict=True)
    )
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


def compare(metric: Metric, other: Metric) -> str:
    """Say where the whole interval of a metric lies against that of another."""
    own, others = read_metric(metric), read_metric(other)
    if own.low > others.high:
        return "above"
    return "below" if own.high < others.low else "not distinguishable from"


def fill_readme(text: str, results: dict[str, Any]) -> str:
    """Return a README with the headline of some results between its two marks."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise UserError(f"README.md lacks the lines '{BEGIN}' and '{END}'.")
    return f"{before}{BEGIN}\n{write_headline(results)}{END}{after}"


def write_headline(results: dict[str, Any]) -> str:
    """Return the answer to the main question, the table of models and the abstract as Markdown."""
    answer = answer_samples(results)
    table = headline_table(results)
    lines = [list(table.columns), ["---"] * len(table.columns), *table.to_numpy().tolist()]
    rows = ["| " + " | ".join(map(str, line)) + " |" for line in lines]
    said = answer.sentences if answer else []
    rest = [sentence for sentence in abstract(results) if sentence not in said]
    paragraphs = ["\n".join(rows), TERMS, " ".join(rest)]
    if answer:
        short = f"**{answer.question} {answer.short}.** {' '.join(answer.sentences)}"
        paragraphs.insert(0, short + f" Verdict on the source's claim: **{answer.verdict}**.")
    text = "\n" + "\n\n".join(paragraphs) + "\n\n"
    return text.replace("\u00a0", " ")  # a README is read as plain text, too
