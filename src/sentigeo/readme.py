"""The part of the README that holds numbers: written from the published results, never by hand."""

from typing import Any

from sentigeo.errors import UserError
from sentigeo.headline import abstract, answer_samples, headline_table

TERMS = (
    "95% intervals in brackets, with n; `-`: not measured. *Test accuracy*: share of held-out "
    "reviews labelled right. *Challenge consistency*: share of handcrafted pairs with both sides "
    "right; the sides differ in little but their verdict. *K-Means agreement*: share of held-out "
    "reviews whose cluster, found without labels, stands for their class. Fine-tuned models: means "
    "over trainings, but for K-Means."
)
BEGIN, END = "<!-- numbers: written by 'make report' -->", "<!-- end of numbers -->"


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
