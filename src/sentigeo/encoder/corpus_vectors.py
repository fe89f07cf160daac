"""What chapter 3 leaves to the chapters after it: texts and their vectors, without torch."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sentigeo.cache import Store
from sentigeo.encoder.corpus import Corpus, open_corpus
from sentigeo.encoder.vectors import Vectors, open_vectors
from sentigeo.files import hash_array, load_array, save_arrays, write_text

CORPUS_VECTORS = "corpus-vectors"  # of an entry in the store


@dataclass(frozen=True)
class CorpusVectors:
    """The corpus and where an encoder puts its texts, pretrained and fine-tuned.

    Attributes:
        corpus: The texts.
        pretrained: Vectors of every text before fine-tuning.
        fine_tuned: Vectors of every text after it.
        logits: (n, classes) answers of the fine-tuned classifier, by part of the corpus.
        without: Last [CLS] vectors after fine-tuning without contrastive samples; none where there
            are no such samples, so that `fine_tuned` is just that.
    """

    corpus: Corpus
    pretrained: Vectors
    fine_tuned: Vectors
    logits: dict[str, np.ndarray]
    without: Vectors | None = None

    @property
    def stages(self) -> dict[str, Vectors]:
        """Both sets of vectors by their names in metrics: `before` and `after` fine-tuning."""
        return {"before": self.pretrained, "after": self.fine_tuned}


def save_corpus_vectors(found: CorpusVectors, store: Store) -> Path:
    """Write down vectors in the store that holds them and their corpus; return where."""
    facts = {
        "corpus": str(found.corpus.folder.relative_to(store.root)),
        "logits": {part: hash_array(own) for part, own in found.logits.items()},
        "pretrained": found.pretrained.describe(store.root),
        "fine_tuned": found.fine_tuned.describe(store.root),
        "without": found.without and found.without.describe(store.root),
    }

    def fill(folder: Path) -> None:
        save_arrays(folder, found.logits)
        write_text(folder / "facts.json", json.dumps(facts))

    stages = filter(None, (found.pretrained, found.fine_tuned, found.without))
    rests_on = [found.corpus.folder, *(shard for own in stages for shard in own.shards)]
    return store.folder(CORPUS_VECTORS, facts, fill, rests_on)


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
