"""The corpus, made once and kept, and its vectors: what chapters 1 and 3 leave; without torch."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sentigeo.cache import Store, load_array, save_arrays
from sentigeo.data.films import group_films
from sentigeo.data.handcrafted import (
    FILES,
    identify_own_pairs,
    load_challenge,
    load_contrastive,
    load_easier_pairs,
    load_natural_pairs,
    load_own_pairs,
    load_source_sentence,
    why_unfit,
)
from sentigeo.data.reviews import Reviews, draw_reviews, order_test_pool, sample_test_pool
from sentigeo.data.tables import identify_source
from sentigeo.encoder.tokens import TokenIds, encode_and_count
from sentigeo.encoder.vectors import Vectors, open_vectors
from sentigeo.hashes import hash_array, hash_code, hash_files
from sentigeo.paths import DATA, write_text
from sentigeo.profile import PACKAGED, Profile

COLUMNS = ["id", "text", "label", "part", "pair", "phenomenon", "known_film"]
# Pairs to score models on, by the names of their parts.
TIERS = {"natural": "natural", "plain": "plain", "contrast": "contrast", "challenge": "hard"}
READ = {  # settings that decide what the corpus is
    "text_column", "label_column", "labels", "language", "draw_per_label", "draw_seed",
    "validation_share", "contrastive_samples", "test_reviews", "new_film_reviews", "max_length",
    "truncation",
}  # fmt: skip


@dataclass(frozen=True)
class Corpus:
    """All texts of a report.

    Their columns are `id`, `text`, `label`, `part`; `pair`, `phenomenon` of contrast pairs; and, if
    films can be told, whether a review to score has a `known_film`, one of a training review. Parts
    are `train`, `validation`, `test`, `new_films` (further test reviews); to train on beside them,
    `contrastive`, single samples, and `natural_train`, pairs; to score pairs on, `TIERS` and
    `own_pairs`; and the source's `sentence`.
    """

    folder: Path  # where it is kept
    texts: pd.DataFrame
    classes: list[str]  # names by number
    provenance: dict[str, Any]  # of the reviews
    tokens: TokenIds  # of all texts, each cut to the budget
    lengths: np.ndarray  # (n,) tokens of all texts, nothing cut

    @cached_property
    def labels(self) -> np.ndarray:
        """(n,) classes of all texts."""
        return self.texts["label"].to_numpy(np.int64)

    def rows(self, part: str) -> np.ndarray:
        """Return the rows of a part."""
        return np.flatnonzero(self.texts["part"] == part)

    def labels_of(self, part: str) -> np.ndarray:
        """Return the (n,) classes of a part."""
        return np.asarray(self.labels[self.rows(part)])

    def texts_of(self, part: str) -> list[str]:
        """Return the texts of a part."""
        return self.texts["text"].iloc[self.rows(part)].tolist()

    def new_films(self) -> np.ndarray:
        """Return the rows of test reviews whose film no training review is about."""
        return np.flatnonzero(self.texts["known_film"].eq(False))

    def reviews(self) -> pd.DataFrame:
        """Return the drawn reviews and the whole test pool, as `load_reviews` does."""
        return pd.read_parquet(self.folder / "reviews.parquet")

    def source(self) -> pd.DataFrame:
        """Return every review: columns `id`, `found` (as it lies there), `text`, `label`."""
        return pd.read_parquet(self.folder / "source.parquet")


def make_corpus(profile: Profile, encoder: Any, store: Store) -> Corpus:
    """Return a run's corpus from the store; all its texts are read, cleaned and tokenised once."""
    source = identify_source(profile.reviews, profile.reviews_revision)
    reviews = draw_reviews(profile) if source is None else None
    key = {
        "source": source or (reviews and reviews.provenance["sha256"]),
        "own_pairs": identify_own_pairs(profile),
        "handcrafted": hash_files(DATA, FILES),
        "sentence": load_source_sentence(),
        "settings": {name: getattr(profile, name) for name in sorted(READ)},
        "tokenizer": encoder.tokenizer_sha256,
        "code": hash_code(__name__),
    }

    def fill(folder: Path) -> None:
        found = reviews or draw_reviews(profile)
        texts = join_texts(found, profile)
        cut = encoder.tokenizer, profile.max_length, profile.truncation
        tokens, lengths = encode_and_count(texts["text"].tolist(), *cut)
        texts.to_parquet(folder / "texts.parquet", index=False)
        found.table.to_parquet(folder / "reviews.parquet", index=False)
        found.source.to_parquet(folder / "source.parquet", index=False)
        save_arrays(folder, {"ids": tokens.ids, "starts": tokens.starts, "lengths": lengths})
        facts = {"classes": found.classes, "provenance": found.provenance}
        write_text(folder / "facts.json", json.dumps(facts | {"padding": tokens.padding}))

    return open_corpus(store.folder("corpus", key, fill))


def open_corpus(folder: Path) -> Corpus:
    """Read a corpus from where `make_corpus` put it."""
    facts = json.loads((folder / "facts.json").read_text("utf-8"))
    ids, starts, lengths = (load_array(folder / f"{n}.npy") for n in ("ids", "starts", "lengths"))
    tokens = TokenIds(np.array(ids), np.array(starts), facts["padding"])
    texts = pd.read_parquet(folder / "texts.parquet")
    return Corpus(folder, texts, facts["classes"], facts["provenance"], tokens, lengths)


def join_texts(reviews: Reviews, profile: Profile) -> pd.DataFrame:
    """Join all texts that an encoder reads into one frame; see `Corpus.texts`."""
    table = reviews.table
    drawn = table[(table["origin"] != "handcrafted") & table["split"].isin(["train", "validation"])]
    test, more = sample_test_pool(reviews.table, profile), table[:0]
    if profile.reviews == PACKAGED:
        test, more = _mark_films(reviews, test, profile)
    parts = [
        drawn.assign(part=drawn["split"]),
        test.assign(part="test"),
        more.assign(part="new_films"),
    ]
    if not why_unfit(reviews.classes, profile.language):
        parts += _handcrafted_parts()
    parts.append(_name_sides(load_own_pairs(profile, reviews.classes).assign(part="own_pairs")))
    return pd.concat(parts, ignore_index=True).reindex(columns=COLUMNS)


def _mark_films(
    reviews: Reviews, test: pd.DataFrame, profile: Profile
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Say of which test reviews the film is known; add such of new films, up to the number asked.

    Half of all test reviews of new films are of each class, if possible.
    """
    films = pd.Series(group_films(reviews.source), index=reviews.source["id"])
    table = reviews.table
    natural, reviewed = load_natural_pairs(), table["origin"] != "handcrafted"
    trained = {
        *films[table.loc[(table["split"] == "train") & reviewed, "id"]],
        *films.iloc[natural.loc[natural["part"] == "train", "row"]],
    }
    pool = order_test_pool(table, profile)
    pool = pool.assign(known_film=films[pool["id"]].isin(trained).to_numpy())
    test = pool.loc[test.index]
    others = pool[~pool["known_film"] & ~pool.index.isin(test.index)]
    found = test.loc[~test["known_film"], "label"].value_counts()
    half, classes = profile.new_film_reviews // 2, range(len(reviews.classes))
    short = {label: max(0, half - found.get(label, 0)) for label in classes}
    more = [others[others["label"] == label].tail(count) for label, count in short.items() if count]
    return test, pd.concat([others[:0], *more]).sort_index()


def _handcrafted_parts() -> list[pd.DataFrame]:
    natural, easier = load_natural_pairs(), load_easier_pairs()
    names = natural["part"].map({"test": "natural", "train": "natural_train"})
    sentence = {"id": "sentence", "text": load_source_sentence(), "label": 0, "part": "sentence"}
    pairs = [
        load_challenge().assign(part="challenge"),
        _name_sides(natural.assign(part=names)),
        _name_sides(easier.rename(columns={"tier": "part"})),
    ]
    samples = load_contrastive().assign(part="contrastive")
    return [*pairs, samples, pd.DataFrame([sentence])]


def _name_sides(pairs: pd.DataFrame) -> pd.DataFrame:
    return pairs.assign(id=pairs["pair"] + "/" + pairs["label"].astype(str))


@dataclass(frozen=True)
class CorpusVectors:
    """The corpus and where an encoder puts its texts, pretrained and fine-tuned.

    `without` has the last [CLS] vectors after fine-tuning without contrastive samples, if there
    are such samples; else `fine_tuned` is just that.
    """

    corpus: Corpus
    pretrained: Vectors
    fine_tuned: Vectors
    logits: dict[str, np.ndarray]  # (n, classes), of the fine-tuned classifier, by part
    without: Vectors | None = None

    @property
    def stages(self) -> dict[str, Vectors]:
        """Both sets of vectors by their names in metrics: `before` and `after` fine-tuning."""
        return {"before": self.pretrained, "after": self.fine_tuned}


def save_corpus_vectors(found: CorpusVectors, store: Store) -> Path:
    """Write down vectors in the store that holds them and their corpus; return where."""
    facts = {
        "corpus": str(found.corpus.folder.relative_to(store.root)),
        "logits": {part: hash_array(logits) for part, logits in found.logits.items()},
        "pretrained": found.pretrained.describe(store.root),
        "fine_tuned": found.fine_tuned.describe(store.root),
        "without": found.without and found.without.describe(store.root),
    }

    def fill(folder: Path) -> None:
        save_arrays(folder, found.logits)
        write_text(folder / "facts.json", json.dumps(facts))

    stages = filter(None, (found.pretrained, found.fine_tuned, found.without))
    rests_on = [found.corpus.folder, *(shard for vectors in stages for shard in vectors.shards)]
    return store.folder("corpus-vectors", facts, fill, rests_on)


def open_corpus_vectors(folder: Path) -> CorpusVectors:
    """Read what `save_corpus_vectors` wrote down; vectors are checked for damage."""
    facts = json.loads((folder / "facts.json").read_text("utf-8"))
    root = folder.parents[1]
    return CorpusVectors(
        corpus=open_corpus(root / facts["corpus"]),
        pretrained=open_vectors(facts["pretrained"], root),
        fine_tuned=open_vectors(facts["fine_tuned"], root),
        without=open_vectors(facts["without"], root) if facts["without"] else None,
        logits={part: load_array(folder / f"{part}.npy") for part in facts["logits"]},
    )
