"""The headline of a report: an answer, an abstract and a table of models.

The wording is in templates of the site's folder. No number is typed and every wording follows from
where an interval lies, so it stays true when numbers change. What was not measured is left out.
"""

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from sentigeo.data.literature import load_endpoints
from sentigeo.errors import UserError
from sentigeo.ledger.claims import Metric, read_metric
from sentigeo.ledger.rules import PARTLY, VERDICTS
from sentigeo.paths import SITE_SOURCE

MEASURES = {  # by name: the metric, where `{kind}.{model}` and `{clusters}` stand for the model
    "test accuracy": "{kind}.{model}.test_accuracy",
    "test accuracy, new films": "{kind}.{model}.test_accuracy_new_films",
    "consistency, natural pairs": "pairs.natural.{model}.consistency",
    "consistency, hard pairs": "pairs.hard.{model}.consistency",
    "K-Means agreement": "{clusters}.accuracy",
}
BASELINES = {  # kind and name of a model in its metrics, and what its clusters are called there
    "largest class": ("baseline", "majority", None),
    "lexicon (VADER)": ("baseline", "lexicon", None),
    "NB-SVM": ("baseline", "nbsvm", None),
    "TF-IDF + logistic regression": ("baseline", "tfidf", "cluster.tfidf"),
    "linear probe, [CLS]": ("baseline", "probe_cls", "cluster.before"),
    "linear probe, mean pooling": ("baseline", "probe_mean", None),
    "untrained encoder, linear probe": ("baseline", "untrained", None),
    "classification head only": ("finetune", "head_only", None),
}
ENCODERS = {"all-MiniLM-L6-v2": "six-layer BERT-type sentence encoder"}  # what they are
# Formats and units of numbers, by the name of the templates' filter that writes them.
WRITTEN = {"share": (".1f", "%"), "points": ("+z.1f", " points"), "change": ("+z.3f", "")}
SAMPLES_CLAIM = "C1"  # whether the contrastive samples help
BEGIN, END = "<!-- numbers: written by 'make report' -->", "<!-- end of numbers -->"


@dataclass(frozen=True)
class Answer:
    """The answer to the main question: in a few words, and in sentences with numbers."""

    question: str
    short: str
    verdict: str | None  # the ledger's; none where it was not judged
    sentences: list[str]


def find_metric(results: dict[str, Any], name: str) -> Metric | None:
    """Return a metric by name, or nothing if this run has not measured it."""
    found = results["metrics"].get(name)
    return found if found and found["value"] is not None else None


def write_number(
    metric: Metric, spec: str, unit: str, level: str = "95% CI ", usual: int | None = None
) -> str:
    """Write a metric as `47.1% (95% CI 40.2 to 54.0)`, in hundredths if it has a unit.

    Its n is added unless that is the usual one; lines break before the bracket only.
    """
    held = read_metric(metric)
    numbers = ((100 if unit else 1) * number for number in (held.value, held.low, held.high))
    value, low, high = (format(number, spec) for number in numbers)
    count = f"; n = {held.n:,}" if usual and held.n != usual else ""
    written = f"{value}{unit} ({level}{low} to {high}{count})"
    return written.replace(" ", "\u00a0").replace("\u00a0(", " (", 1)


def count_verdicts(claims: list[dict[str, Any]]) -> str:
    """Write the number of claims with each verdict."""
    counts = Counter(claim["verdict"] for claim in claims)
    words = {PARTLY: "supported in part"}
    found = [verdict for verdict in VERDICTS if counts[verdict]]
    return ", ".join(f"{counts[verdict]} {words.get(verdict, verdict)}" for verdict in found)


def fill_template(name: str, results: dict[str, Any], **more: Any) -> str:
    """Fill a template of the site's folder; HTML is escaped unless it is a `.txt.jinja`."""
    environment = Environment(
        loader=FileSystemLoader(SITE_SOURCE), undefined=StrictUndefined, keep_trailing_newline=True,
        autoescape=select_autoescape(disabled_extensions=["txt.jinja"], default=True),
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"estimate": read_metric, "verdicts": count_verdicts}
    environment.filters |= {
        name: partial(write_number, spec=spec, unit=unit) for name, (spec, unit) in WRITTEN.items()
    }
    kind = ENCODERS.get(results["encoder"].get("name"), "BERT-type encoder")
    facts = {**results, "results": results, "metric": partial(find_metric, results), "kind": kind}
    return environment.get_template(name).render(facts | more)


def compare_models(results: dict[str, Any]) -> dict[str, dict[str, Metric | None]]:
    """Return the score of each model by measure; models without any score are left out."""
    found = {}
    for title, (kind, model, clusters) in (BASELINES | _list_tuned(results)).items():
        names = {
            measure: name.format(kind=kind, model=model, clusters=clusters)
            for measure, name in MEASURES.items()
        }
        reached = {measure: find_metric(results, name) for measure, name in names.items()}
        if any(reached.values()):
            found[title] = reached
    kept = [name for name in MEASURES if any(reached[name] for reached in found.values())]
    return {model: {name: reached[name] for name in kept} for model, reached in found.items()}


def _list_tuned(results: dict[str, Any]) -> dict[str, tuple[str, str, str | None]]:
    """Return the fine-tuned models of a run, in the form of `BASELINES`."""
    if "finetune.with.test_accuracy" not in results["metrics"]:
        return {"fine-tuned": ("finetune", "without", "cluster.after")}
    samples, most = results["settings"]["contrastive_samples"], max(results["settings"]["doses"])
    return {
        "fine-tuned without samples": ("finetune", "without", "cluster.without"),
        f"fine-tuned with {samples} samples": ("finetune", "with", "cluster.after"),
        f"fine-tuned with {most} samples": ("finetune", f"with_{most}", None),
        "positive control": ("finetune", "positive_control", None),
    }


def headline_table(results: dict[str, Any]) -> pd.DataFrame:
    """Return one row per model and one column per measure, with intervals; n is in the titles."""
    models = compare_models(results)
    table = pd.DataFrame({"model": list(models)})
    for measure in next(iter(models.values()), {}):
        reached = [found[measure] for found in models.values()]
        usual = max(metric["n"] for metric in reached if metric)
        cells = [write_number(one, *WRITTEN["share"], "", usual) if one else "-" for one in reached]
        table[f"{measure} (n\u00a0=\u00a0{usual:,})"] = cells
    return table


def answer_samples(results: dict[str, Any]) -> Answer | None:
    """Say whether the contrastive samples help, how much, and how certain that is."""
    fixed = load_endpoints()
    smallest = fixed["smallest_effects"][fixed["primary"]["endpoint"]]
    lines = fill_template("answer.txt.jinja", results, smallest=smallest).split("\n")[:-1]
    if not lines:
        return None
    verdicts = {claim["id"]: claim["verdict"] for claim in results["claims"]}
    return Answer(lines[0], lines[1], verdicts.get(SAMPLES_CLAIM), lines[2:])


def abstract(results: dict[str, Any]) -> list[str]:
    """Summarise in a few sentences what was done and what was found."""
    text = fill_template("abstract.txt.jinja", results, answer=answer_samples(results))
    return text.split("\n")[:-1]


def fill_readme(text: str, results: dict[str, Any]) -> str:
    """Return a README with the headline of the results between its two marks, as Markdown."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise UserError(f"README.md lacks the lines '{BEGIN}' and '{END}'.")
    said = {"answer": answer_samples(results), "table": headline_table(results)}
    headline = fill_template("readme.txt.jinja", results, abstract=abstract(results), **said)
    plain = headline.replace("\u00a0", " ")  # read as plain text, too
    return f"{before}{BEGIN}\n\n{plain}\n{END}{after}"
