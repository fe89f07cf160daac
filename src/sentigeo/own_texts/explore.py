"""Try a sentence: what is predicted, what is near, where it lies, which words decide."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import pandas as pd
from IPython.display import Image, display
from sklearn.decomposition import PCA
from torch import Tensor
from transformers import AutoModelForSequenceClassification

from sentigeo.analysis.neighbours import nearest_rows
from sentigeo.analysis.probes import fit_probe
from sentigeo.cores import track
from sentigeo.encoder.encoder import load_with_head
from sentigeo.errors import UserError
from sentigeo.figures.maps import plot_place
from sentigeo.figures.style import Colouring
from sentigeo.own_texts.read import BATCH, Reading, is_classifier
from sentigeo.report.notebook import STAGE_VARIABLE
from sentigeo.report.page import Page, draw_png
from sentigeo.text import clean_text, excerpt, find_words, plain, repair

MOST_PIECES = 64  # parts of a text that are occluded in turn; of a longer one they are phrases
WIDTH = 640  # pixels of the picture of its place
SERVED = "JPY_SESSION_NAME"  # set by a notebook server in the kernels it starts
LEARNT = 5_000  # texts that a probe learns from
SMALL = 20  # texts of a group, of which a fifth would be too few
Decide = Callable[[Sequence[str]], np.ndarray]  # texts to (n, classes) probabilities


def decide_by_classifier(source: str, reading: Reading) -> tuple[Decide, list[str]]:
    """Return a model's classification head as a function, and the names of its classes."""
    kind, encoder = AutoModelForSequenceClassification, reading.encoder
    model, _ = load_with_head(kind, source, encoder.revision, seed=0)
    model.eval().to(encoder.model.device)

    def read(ids: Tensor, mask: Tensor) -> Tensor:
        logits: Tensor = model(ids, attention_mask=mask.long()).logits
        return logits.softmax(dim=-1)

    labels: dict[int, str] = model.config.id2label  # type: ignore[assignment,union-attr]
    names = [labels[number] for number in sorted(labels)]
    return lambda texts: reading.in_batches(texts, read), names


def choose_decision(
    source: str, reading: Reading, vectors: np.ndarray, known: Colouring
) -> tuple[Decide, Sequence[str]]:
    """Return a classifier and its classes: the model if it is one, else a probe of groups."""
    if is_classifier(reading.encoder):
        return decide_by_classifier(source, reading)
    return decide_by_probe(vectors, known.groups, reading), known.names


def decide_many(decide: Decide, texts: Sequence[str]) -> np.ndarray:
    """Return the (n, classes) probabilities of many texts; short ones are decided together."""
    order = np.argsort([len(text) for text in texts], kind="stable")
    parts = np.array_split(order, max(1, len(order) // (8 * BATCH)))
    found = [decide([texts[row] for row in part]) for part in track(parts, "deciding")]
    return np.concatenate(found)[np.argsort(order)]


def decide_by_probe(vectors: np.ndarray, groups: np.ndarray, reading: Reading) -> Decide:
    """Return what logistic regression on about as many (n, d) vectors of each group decides."""
    rng = np.random.default_rng(0)
    order, present = rng.permutation(len(groups)), np.unique(groups)
    even = [order[groups[order] == group][: LEARNT // len(present)] for group in present]
    rows = rng.permutation(np.concatenate(even))
    cut = len(rows) // 5  # these choose its strength; where a group is very small all do
    train, chosen = (rows[cut:], rows[:cut]) if min(map(len, even)) >= SMALL else (rows, rows)
    probe = fit_probe(vectors, groups, (train, chosen))

    def decide(texts: Sequence[str]) -> np.ndarray:
        found = np.zeros((len(texts), int(groups.max()) + 1))
        found[:, probe.classes_] = probe.predict_proba(reading.vectors_of_few(texts))
        return found

    return decide


@dataclass(frozen=True)
class Finding:
    """What was found about a sentence."""

    sentence: str  # as it was read
    probabilities: np.ndarray  # (classes,)
    near: pd.DataFrame  # columns `cosine`, `group`, `text`, nearest first
    place: np.ndarray  # (2,) on the map
    words: pd.DataFrame  # columns `word`, `begin`, `end`, `occlusion` (loss of the best class)


@dataclass
class Explorer:
    """Shows what a model makes of sentences, among n known texts with (n, d) vectors and groups."""

    reading: Reading
    decide: Decide
    classes: Sequence[str]
    texts: Sequence[str]
    vectors: np.ndarray
    groups: Colouring

    def __post_init__(self) -> None:
        self._map = PCA(2, svd_solver="covariance_eigh").fit(self.vectors)
        self._points = self._map.transform(self.vectors)

    def explore(self, sentence: str, neighbours: int = 5) -> Finding:
        """Return everything that is shown about a sentence."""
        sentence = clean_text(repair(sentence))
        if not sentence:
            raise UserError("Type a sentence: there is nothing to look at.")
        vector = self.reading.vectors_of_few([sentence])[0]
        rows, cosines = nearest_rows(vector, self.vectors, neighbours)
        names = [self.groups.names[group] for group in self.groups.groups[rows]]
        texts = [excerpt(self.texts[row]) for row in rows]
        near = pd.DataFrame({"cosine": cosines, "group": names, "text": texts})
        probabilities, words = self._occlude(sentence)
        return Finding(sentence, probabilities, near, self._map.transform(vector[None])[0], words)

    def show(self, sentence: str) -> None:
        """Show in a notebook what was found about a sentence."""
        found = self.explore(sentence)
        best = int(found.probabilities.argmax())
        page = Page()
        page.say(
            f"**{plain(self.classes[best])}** with probability {found.probabilities[best]:.3f}. "
            "The words, by how much this probability falls without each (blue) or rises (orange):"
        )
        listed = ", ".join(f"{row.word} {row.occlusion:+.3f}" for row in found.words.itertuples())
        page.show(_colour_words(found.sentence, found.words), listed)
        page.table(found.near, "Nearest texts by cosine.", {"cosine": "{:.3f}"})
        figure = plot_place(self._points, self.groups, found.place)
        facts = {"alt": "Where the sentence lies among the known texts.", "width": WIDTH}
        display(Image(data=draw_png(figure), **facts), metadata={"image/png": facts})

    def box(self) -> None:
        """Show a text box if a notebook server runs this; nobody could type into a report."""
        if SERVED not in os.environ or STAGE_VARIABLE in os.environ:
            Page().say("In JupyterLab (`make lab`) a text box stands here; `show` does the same.")
            return
        from ipywidgets import Button, HBox, Output, Text

        field = Text(placeholder="Type a sentence", layout={"width": "40em"})
        button, output = Button(description="Try", button_style="primary"), Output()

        def answer(_: Any) -> None:
            output.clear_output()
            with output:
                try:
                    self.show(field.value)
                except UserError as error:
                    print(error)

        button.on_click(answer)
        display(HBox([field, button]), output)

    def _occlude(self, sentence: str) -> tuple[np.ndarray, pd.DataFrame]:
        """Return the probabilities, and how much the largest falls without each word."""
        spans = find_words(sentence)
        pieces = [part for part in np.array_split(np.arange(len(spans)), MOST_PIECES) if len(part)]
        places = [(spans[part[0]][0], spans[part[-1]][1]) for part in pieces]
        without = [sentence[:begin] + sentence[end:] for begin, end in places]
        whole, *others = self.decide([sentence, *without])
        best = whole.argmax()
        words = pd.DataFrame(places, columns=["begin", "end"])
        words.insert(0, "word", [sentence[begin:end] for begin, end in places])
        return whole, words.assign(occlusion=[whole[best] - other[best] for other in others])


def _colour_words(sentence: str, words: pd.DataFrame) -> str:
    strongest = max(words["occlusion"].abs().max(), 1e-9)
    parts, last = [], 0
    for _, begin, end, size in words.itertuples(index=False):
        colour = "0, 114, 178" if size > 0 else "213, 94, 0"
        style = f"background: rgba({colour}, {abs(size) / strongest * 0.6:.2f})"
        word = f'<span style="{style}" title="{size:+.3f}">{escape(sentence[begin:end])}</span>'
        parts += [escape(sentence[last:begin]), word]
        last = end
    return f'<p dir="auto">{"".join(parts)}{escape(sentence[last:])}</p>'
