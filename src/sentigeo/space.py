"""What chapter 3 leaves to the chapters after it: texts and their vectors, without torch."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from sentigeo.errors import UserError
from sentigeo.store import Store, hash_array, hash_json, load_array, save_arrays, write_text
from sentigeo.vectors import Vectors, open_vectors

SPACE = "space"  # of an entry in the store


@dataclass(frozen=True)
class Space:
    """Texts and where an encoder puts them, before and after fine-tuning.

    Attributes:
        corpus: Columns `id`, `text`, `label`, `part`, `pair`, `phenomenon`, one row a text.
        classes: Names of the classes by number.
        before: Vectors of every row before fine-tuning.
        after: Vectors of every row after it.
        logits: (n, classes) answers of the fine-tuned classifier, by part of the corpus.
        without: Last [CLS] vectors after fine-tuning without contrastive samples; none where there
            are no such samples, so that `after` is just that.
    """

    corpus: pd.DataFrame
    classes: list[str]
    before: Vectors
    after: Vectors
    logits: dict[str, np.ndarray]
    without: Vectors | None = None

    @property
    def times(self) -> dict[str, Vectors]:
        """Both sets of vectors by name."""
        return {"before": self.before, "after": self.after}

    def rows(self, part: str) -> np.ndarray:
        """Return the rows of a part of the corpus."""
        return np.flatnonzero(self.corpus["part"] == part)

    def labels(self, part: str) -> np.ndarray:
        """Return the (n,) classes of a part."""
        return np.asarray(self.corpus["label"].to_numpy(np.int64)[self.rows(part)])


def save_space(space: Space, store: Store) -> Path:
    """Write down a space in the store that holds its vectors; return where."""
    facts = {
        "classes": space.classes,
        "logits": {part: hash_array(own) for part, own in space.logits.items()},
        "before": space.before.describe(store.root),
        "after": space.after.describe(store.root),
        "without": space.without and space.without.describe(store.root),
    }

    def fill(folder: Path) -> None:
        space.corpus.to_parquet(folder / "corpus.parquet", index=False)
        save_arrays(folder, space.logits)
        write_text(folder / "space.json", json.dumps(facts))

    return store.folder(SPACE, {**facts, "corpus": hash_json(space.corpus.to_json())}, fill)


def load_space(folder: Path) -> Space:
    """Read a space from where `save_space` put it; vectors are checked for damage."""
    facts = json.loads((folder / "space.json").read_text("utf-8"))
    root = folder.parents[1]
    return Space(
        corpus=pd.read_parquet(folder / "corpus.parquet"),
        classes=facts["classes"],
        before=open_vectors(facts["before"], root),
        after=open_vectors(facts["after"], root),
        without=open_vectors(facts["without"], root) if facts["without"] else None,
        logits={part: load_array(folder / f"{part}.npy") for part in facts["logits"]},
    )


def is_whole_space(folder: Path) -> bool:
    """Tell whether the vectors of a space are still there, whole."""
    try:
        load_space(folder)
    except UserError:
        return False
    return True
