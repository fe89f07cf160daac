"""Try a sentence: what is predicted, what is near, where it lies, which words decide."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import pandas as pd
from IPython.display import Image, display
from sklearn.decomposition import PCA

from sentigeo.analysis.similarity import nearest_rows
from sentigeo.errors import UserError
from sentigeo.figures.maps import plot_place
from sentigeo.figures.style import Colouring
from sentigeo.own_texts.decisions import Decide, Reading
from sentigeo.report.notebook import STAGE_VARIABLE, Page, draw_png
from sentigeo.text import clean_text, excerpt, find_words, plain, repair

MOST_PIECES = 64  # parts of a text that are occluded in turn; of a longer one they are phrases
WIDTH = 640  # pixels of the picture of its place
SERVED = "JPY_SESSION_NAME"  # set by a notebook server in the kernels it starts


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
        """Return what there is to see about a sentence."""
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
        """Show what there is to see about a sentence."""
        found = self.explore(sentence)
        best = int(found.probabilities.argmax())
        page = Page()
        page.say(
            f"**{plain(self.classes[best])}** with probability {found.probabilities[best]:.3f}. "
            "The words, by how much this probability falls without each (blue) or rises (orange):"
        )
        listed = ", ".join(f"{row.word} {row.occlusion:+.3f}" for row in found.words.itertuples())
        coloured = _colour_words(found.sentence, found.words)
        display({"text/html": coloured, "text/plain": listed}, raw=True)
        page.table(found.near, "Nearest texts by cosine.", {"cosine": "{:.3f}"})
        figure = plot_place(self._points, self.groups, found.place)
        look = {"alt": "Where the sentence lies among the known texts.", "width": WIDTH}
        display(Image(data=draw_png(figure), **look), metadata={"image/png": look})

    def box(self) -> None:
        """Show a text box if a notebook server runs this; a report has no one to type into it."""
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
    """Return a sentence as HTML with a background behind each word."""
    strongest = max(words["occlusion"].abs().max(), 1e-9) if len(words) else 1.0
    parts, last = [], 0
    for _, begin, end, size in words.itertuples(index=False):
        colour = "0, 114, 178" if size > 0 else "213, 94, 0"
        style = f"background: rgba({colour}, {abs(size) / strongest * 0.6:.2f})"
        word = f'<span style="{style}" title="{size:+.3f}">{escape(sentence[begin:end])}</span>'
        parts += [escape(sentence[last:begin]), word]
        last = end
    return f'<p dir="auto">{"".join(parts)}{escape(sentence[last:])}</p>'
