"""What a report says at first sight: an answer, an abstract, a table of models, the ledger.

Results in, sentences and rows out. No number is typed and every wording follows from where an
interval lies, so that a page made of this stays true when the numbers change. What was not measured
is left out.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import pandas as pd

from sentigeo.claims import NOT_SUPPORTED, NOT_TESTABLE, PARTLY, REFUTED, SUPPORTED
from sentigeo.stats import Estimate

MEASURES = ("test accuracy", "challenge consistency", "K-Means agreement")
SAMPLES_CLAIM = "C1"  # whether the contrastive samples help
VERDICTS = {
    SUPPORTED: "are supported",
    PARTLY: "hold in part",
    NOT_SUPPORTED: "are not supported",
    REFUTED: "are refuted",
    NOT_TESTABLE: "cannot be tested in this profile",
}


@dataclass(frozen=True)
class Answer:
    """What came out for the main question.

    Attributes:
        question: The question.
        short: The answer in a few words.
        effect: How large the effect is.
        verdict: The ledger's verdict; none where the claim was not judged.
        sentences: The answer with its numbers.
    """

    question: str
    short: str
    effect: Estimate
    verdict: str | None
    sentences: list[str]


def read_estimate(entry: dict[str, Any]) -> Estimate | None:
    """Return a metric or claim of `results.json` as an estimate; none if nothing was measured."""
    if entry["value"] is None:
        return None
    low, high = (float("nan") if entry[end] is None else entry[end] for end in ("low", "high"))
    return Estimate(entry["value"], low, high, entry.get("n", 0))


def find_estimate(results: dict[str, Any], name: str) -> Estimate | None:
    """Return a metric by name; none if this run has not measured it."""
    return read_estimate(results["metrics"][name]) if name in results["metrics"] else None


def write_estimate(found: Estimate, sign: str = "") -> str:
    """Write a number with its interval and n, which do not break over lines.

    Args:
        found: What was measured; a whole number was counted and has no interval.
        sign: A `+` for differences.
    """
    if isinstance(found.value, int):
        return f"{found.value:,}"
    value, low, high = (f"{own:{sign}z.3f}" for own in (found.value, found.low, found.high))
    bounds = [f"{low}, {high}"] if found.low == found.low else []
    count = [f"n = {found.n:,}"] if found.n else []
    return f"{value} [{'; '.join(bounds + count)}]".replace(" ", "\u00a0").replace("\u00a0", " ", 1)


def sign_of(unit: str) -> str:
    """Return the sign that numbers of a unit are written with: differences show a plus."""
    return "+" if unit.startswith("difference") else ""


def list_models(results: dict[str, Any]) -> dict[str, tuple[str, str, str]]:
    """Name every model and baseline, with the metrics of its three measures."""
    models = {
        "majority class": ("baseline.majority.test_accuracy", "baseline.majority.challenge_consistency", ""),
        "TF-IDF + logistic regression": ("baseline.tfidf.test_accuracy", "baseline.tfidf.challenge_consistency", "cluster.tfidf.accuracy"),
        "un-tuned encoder, linear probe": ("embed.before.probe_accuracy", "embed.before.challenge_consistency", "cluster.before.accuracy"),
        "classification head only": ("finetune.head_only.test_accuracy", "finetune.head_only.challenge_consistency", ""),
    }  # fmt: skip
    without = ("finetune.without.test_accuracy", "finetune.without.challenge_consistency")
    if "finetune.with.test_accuracy" not in results["metrics"]:
        return models | {"fine-tuned": (*without, "cluster.after.accuracy")}
    samples = results["settings"]["contrastive_samples"]
    return models | {
        "fine-tuned without samples": (*without, "cluster.without.accuracy"),
        f"fine-tuned with {samples} samples": ("finetune.with.test_accuracy", "finetune.with.challenge_consistency", "cluster.after.accuracy"),
    }  # fmt: skip


def compare_models(results: dict[str, Any]) -> dict[str, dict[str, Estimate | None]]:
    """Return what each model reaches, by measure; models and measures without a number are out."""
    found = {
        model: [find_estimate(results, name) for name in names]
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
        {"model": model} | {m: write_estimate(own) if own else "-" for m, own in reached.items()}
        for model, reached in compare_models(results).items()
    ]
    return pd.DataFrame(rows)


def answer_samples(results: dict[str, Any]) -> Answer | None:
    """Say whether the contrastive samples help, by how much and how sure that is."""
    effect = find_estimate(results, "finetune.with_minus_without.challenge_consistency")
    if effect is None:
        return None
    samples, place = results["settings"]["contrastive_samples"], effect.compare(0.0)
    short = {"above": "Yes, they help", "below": "No, they do harm"}
    changed = (
        f"The {samples} samples change the share of challenge pairs with both sides right by "
        f"{write_estimate(effect, '+')}"
    )
    accuracy = find_estimate(results, "finetune.with_minus_without.test_accuracy")
    if accuracy:
        changed += (
            f", and the accuracy on ordinary test reviews by {write_estimate(accuracy, '+')}"
        )
    return Answer(
        f"Do the {samples} contrastive samples help?",
        short.get(place, "Not that we can measure"),
        effect,
        find_verdict(results, SAMPLES_CLAIM),
        [f"{changed}.", bound_effect(effect)],
    )


def bound_effect(effect: Estimate) -> str:
    """Say which effects the interval leaves out."""
    if effect.compare(0.0) == "above":
        limit = f"A gain of less than {effect.low:.3f}"
    elif effect.compare(0.0) == "below":
        limit = f"A loss of less than {-effect.high:.3f}"
    else:
        limit = f"A gain of more than {effect.high:.3f}, or a loss of more than {-effect.low:.3f},"
    return f"{limit} would not fit these {effect.n:,} pairs (95% interval)."


def find_verdict(results: dict[str, Any], number: str) -> str | None:
    """Return the verdict on a claim; none where it was not judged."""
    return next((str(own["verdict"]) for own in results["claims"] if own["id"] == number), None)


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
    model = find_estimate(results, "finetune.without.test_accuracy")
    pairs = find_estimate(results, "finetune.without.challenge_consistency")
    if not model:
        return None
    return (
        f"{results['encoder']['name']} was fine-tuned on a draw of up to "
        f"{results['settings']['draw_per_label']:,} reviews a class and tested on {model.n:,} "
        "others" + (f" and on {pairs.n:,} handcrafted challenge pairs." if pairs else ".")
    )


def _say_accuracy(results: dict[str, Any]) -> str | None:
    reached = {model: own.get(MEASURES[0]) for model, own in compare_models(results).items()}
    tuned = next((own for name, own in reversed(reached.items()) if "fine-tuned" in name), None)
    words = reached.get("TF-IDF + logistic regression")
    if not tuned or not words:
        return None
    relation = "the intervals overlap"
    if tuned.low > words.high or tuned.high < words.low:
        relation = f"a clearly {'lower' if tuned.low > words.high else 'higher'} share"
    majority = reached.get("majority class")
    return (
        f"Fine-tuned, the encoder labels {write_estimate(tuned)} of the test reviews right; "
        f"TF-IDF with logistic regression labels {write_estimate(words)} ({relation})"
        + (f", the majority class alone {write_estimate(majority)}." if majority else ".")
    )


def _say_geometry(results: dict[str, Any]) -> str | None:
    probe, before, after, chance = (
        find_estimate(results, name)
        for name in (
            "embed.before.probe_accuracy",
            "cluster.before.accuracy",
            "cluster.after.accuracy",
            "baseline.majority.test_accuracy",
        )
    )
    if not (probe and before and after and chance):
        return None
    return (
        f"Before fine-tuning a linear probe reads the label of {write_estimate(probe)} off the "
        f"vectors, and K-Means, which knows no labels, agrees with {write_estimate(before)}, which "
        f"is {before.compare(chance.value)} the majority class; after fine-tuning K-Means agrees "
        f"with {write_estimate(after)}."
    )


def _say_verdicts(results: dict[str, Any]) -> str | None:
    counts = Counter(own["verdict"] for own in results["claims"])
    if not counts:
        return None
    parts = [f"{counts[verdict]} {words}" for verdict, words in VERDICTS.items() if counts[verdict]]
    listed = ", ".join(parts[:-1]) + " and " + parts[-1] if len(parts) > 1 else parts[0]
    return f"Of {counts.total()} claims of the sources, {listed}."


def ledger(results: dict[str, Any]) -> pd.DataFrame:
    """Return the claims in short, a row each, in the order of their numbers.

    Returns:
        Columns `claim`, `statement`, `estimate` (written, or why there is none), `measure`,
        `verdict`, `badge` (its class on a page), `chapter`.
    """
    rows = []
    for own in sorted(results["claims"], key=lambda own: (own["id"][:1], int(own["id"][1:]))):
        found = read_estimate(own)
        written = write_estimate(found, sign_of(own.get("unit", ""))) if found else "-"
        rows.append(
            {
                "claim": own["id"],
                "statement": own["statement"],
                "estimate": written if found else own.get("reason") or "-",
                "measure": own.get("measure", ""),
                "verdict": own["verdict"],
                "badge": badge_of(own["verdict"]),
                "chapter": own.get("chapter", ""),
            }
        )
    return pd.DataFrame(rows)


def badge_of(verdict: str) -> str:
    """Return the class of a verdict on a page, such as `verdict-not-supported`."""
    return "verdict-" + "-".join(verdict.removesuffix(" in this profile").split())
