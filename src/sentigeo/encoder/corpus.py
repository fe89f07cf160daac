"""The corpus: all texts of a report and their tokens, read, cleaned and tokenised once."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from sentigeo.cache import Store
from sentigeo.code_hash import hash_code
from sentigeo.data.handcrafted import load_challenge, load_contrastive, why_unfit
from sentigeo.data.reviews import Reviews, draw_reviews, identify_source, sample_test_pool
from sentigeo.encoder.tokens import TokenIds, count_tokens, encode_texts
from sentigeo.files import hash_files, load_array, save_arrays, write_text
from sentigeo.paths import DATA
from sentigeo.profile import Profile

COLUMNS = ["id", "text", "label", "part", "pair", "phenomenon"]
READ = {  # settings that decide what the corpus is
    "text_column", "label_column", "labels", "language", "draw_per_label", "draw_seed",
    "validation_share", "contrastive_samples", "test_reviews", "max_length", "truncation",
}  # fmt: skip


@dataclass(frozen=True)
class Corpus:
    """All texts of a report.

    Attributes:
        folder: Where it is kept.
        texts: Columns `id`, `text`, `label`, `part` (`train`, `validation`, `test`, `challenge` or
            `contrastive`), and `pair`, `phenomenon` of the challenge texts.
        classes: Names of the classes by number.
        provenance: Where the reviews come from.
        tokens: Token ids of all texts, each cut to the budget.
        lengths: (n,) tokens of all texts, nothing cut.
    """

    folder: Path
    texts: pd.DataFrame
    classes: list[str]
    provenance: dict[str, Any]
    tokens: TokenIds
    lengths: np.ndarray

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

    def reviews(self) -> pd.DataFrame:
        """Return the drawn reviews and the whole test pool, as `load_reviews` does."""
        return pd.read_parquet(self.folder / "reviews.parquet")

    def source(self) -> pd.DataFrame:
        """Return every review: columns `id`, `found` (as it lies there), `text`, `label`."""
        return pd.read_parquet(self.folder / "source.parquet")


def make_corpus(profile: Profile, encoder: Any, store: Store) -> Corpus:
    """Return a run's corpus from the store; read, clean and tokenise it if it is not there yet."""
    source = identify_source(profile.reviews, profile.reviews_revision)
    reviews = draw_reviews(profile) if source is None else None
    key = {
        "source": source or (reviews and reviews.provenance["sha256"]),
        "handcrafted": hash_files(DATA, "*.csv"),
        "settings": {name: getattr(profile, name) for name in sorted(READ)},
        "tokenizer": encoder.tokenizer_sha256,
        "code": hash_code(__name__),
    }

    def fill(folder: Path) -> None:
        _write(folder, reviews or draw_reviews(profile), profile, encoder.tokenizer)

    return open_corpus(store.folder("corpus", key, fill))


def open_corpus(folder: Path) -> Corpus:
    """Read a corpus from where `make_corpus` put it."""
    facts = json.loads((folder / "facts.json").read_text("utf-8"))
    ids, starts, lengths = (load_array(folder / f"{n}.npy") for n in ("ids", "starts", "lengths"))
    return Corpus(
        folder=folder,
        texts=pd.read_parquet(folder / "texts.parquet"),
        classes=facts["classes"],
        provenance=facts["provenance"],
        tokens=TokenIds(np.array(ids), np.array(starts), facts["padding"]),
        lengths=lengths,
    )


def _write(folder: Path, reviews: Reviews, profile: Profile, tokenizer: Any) -> None:
    texts = join_texts(reviews, profile)
    every = texts["text"].tolist()
    tokens = encode_texts(every, tokenizer, profile.max_length, profile.truncation)
    texts.to_parquet(folder / "texts.parquet", index=False)
    reviews.table.to_parquet(folder / "reviews.parquet", index=False)
    reviews.source.to_parquet(folder / "source.parquet", index=False)
    arrays = {"ids": tokens.ids, "starts": tokens.starts}
    save_arrays(folder, arrays | {"lengths": count_tokens(every, tokenizer)})
    facts = {"classes": reviews.classes, "provenance": reviews.provenance}
    write_text(folder / "facts.json", json.dumps(facts | {"padding": tokens.padding}))


def join_texts(reviews: Reviews, profile: Profile) -> pd.DataFrame:
    """Join all texts that an encoder reads into one frame; see `Corpus.texts`."""
    table = reviews.table
    drawn = table[(table["origin"] != "handcrafted") & (table["split"] != "test")]
    parts = [
        drawn.assign(part=drawn["split"]),
        sample_test_pool(table, profile).assign(part="test"),
    ]
    if not why_unfit(reviews.classes, profile.language):
        parts.append(load_challenge().assign(part="challenge"))
        parts.append(load_contrastive().assign(part="contrastive"))
    return pd.concat(parts, ignore_index=True).reindex(columns=COLUMNS)
