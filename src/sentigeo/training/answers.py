"""What trained classifiers answered, and where they put the texts."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sentigeo.analysis.predictions import pair_consistency
from sentigeo.cache import Store
from sentigeo.encoder.corpus import Corpus
from sentigeo.encoder.corpus_vectors import CorpusVectors
from sentigeo.encoder.encoder import Encoder, load_encoder
from sentigeo.encoder.extract import extract
from sentigeo.encoder.trunk import Trunk
from sentigeo.encoder.vectors import POOLINGS, Vectors
from sentigeo.training.runs import Result, all_kinds, unchanged_texts


def predictions(results: Sequence[Result], name: str, part: str) -> np.ndarray:
    """Return the (runs, n) predicted classes of a condition, in the order of its seeds."""
    return np.stack([r.logits[part].argmax(1) for r in results if r.run.name == name])


def hits(results: Sequence[Result], name: str, part: str) -> np.ndarray:
    """Return (runs, n) truth values: which texts of a part a condition classifies correctly."""
    truth = next(r.labels[part] for r in results if r.run.name == name)
    return np.asarray(predictions(results, name, part) == truth)


def consistent(results: Sequence[Result], name: str, corpus: Corpus) -> np.ndarray:
    """Return (runs, pairs) truth values: which challenge pairs are right on both sides."""
    challenge = corpus.texts.iloc[corpus.rows("challenge")]
    answers = predictions(results, name, "challenge")
    return np.stack([pair_consistency(challenge, run).to_numpy() for run in answers])


def kept_models(results: Sequence[Result]) -> dict[str, Result]:
    """Return the models that were kept, by condition: `without` and, if there is one, `with`."""
    kept = {result.run.name: result for result in results if result.run.keep}
    return {name: kept[name] for name in ("without", "with") if name in kept}


def pick_tuned(results: Sequence[Result]) -> Result:
    """Return the model that stands for fine-tuning in later chapters.

    That is the first one with contrastive samples, or without where there are none.
    """
    kept = kept_models(results)
    return kept.get("with", kept["without"])


def read_stages(
    results: Sequence[Result], corpus: Corpus, encoder: Encoder, store: Store
) -> CorpusVectors:
    """Read all texts with the pretrained and the fine-tuned encoder."""
    tuned, without = pick_tuned(results), kept_models(results)["without"]
    return CorpusVectors(
        corpus,
        pretrained=extract(corpus.tokens, encoder, store, all_kinds(encoder.layers))[0],
        fine_tuned=tuned_vectors(tuned, corpus, encoder, store),
        logits=tuned.logits,
        without=None if tuned is without else tuned_cls(without, corpus, encoder, store),
    )


def tuned_vectors(result: Result, corpus: Corpus, encoder: Encoder, store: Store) -> Vectors:
    """Return the vectors of all texts after fine-tuning; only changed layers are computed."""
    texts = unchanged_texts(result.run.layers, corpus, encoder, store)
    lowest = math.floor(texts.layer) + 1 if isinstance(texts, Trunk) else 0
    tuned, kinds = load_encoder(str(result.folder)), all_kinds(encoder.layers, lowest)
    pretrained, _ = extract(corpus.tokens, encoder, store, all_kinds(encoder.layers))
    return replace(extract(texts, tuned, store, kinds)[0], below=pretrained)


def tuned_cls(result: Result, corpus: Corpus, encoder: Encoder, store: Store) -> Vectors:
    """Return the last [CLS] vectors of all texts after fine-tuning, and no others."""
    texts = unchanged_texts(result.run.layers, corpus, encoder, store)
    tuned, kinds = load_encoder(str(result.folder)), [(encoder.layers, POOLINGS[0])]
    return extract(texts, tuned, store, kinds)[0]
