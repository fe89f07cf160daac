"""Word senses: the vector of a word in its sentence, and whether senses lie apart."""

import re
from collections.abc import Sequence
from functools import partial

import numpy as np
import pandas as pd
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics import silhouette_samples

from sentigeo.analysis.cosines import unit_rows
from sentigeo.attention.attention import tokenize
from sentigeo.encoder.encoder import Encoder
from sentigeo.errors import UserError
from sentigeo.stats import half_samples

BATCH = 64  # sentences


@torch.inference_mode()
def word_vectors(
    texts: Sequence[str], words: Sequence[str], encoder: Encoder
) -> tuple[np.ndarray, np.ndarray]:
    """Return the vectors of a word in each of n sentences, and those of its context.

    A word that the tokenizer cuts into pieces has the mean of their vectors; its context, the mean
    of all other tokens but special ones. Both are (layers + 1, n, d).

    Args:
        texts: n sentences.
        words: n words, the first of which in its sentence counts.
        encoder: The encoder.
    """
    spans = [find_word(text, word) for text, word in zip(texts, words, strict=True)]
    found = []
    for start in range(0, len(texts), BATCH):
        batch, places = tokenize(list(texts[start : start + BATCH]), encoder)
        states = torch.stack(encoder.model(**batch, output_hidden_states=True).hidden_states)
        inside, outside = np.zeros((2, *batch["input_ids"].shape), bool)
        for row, tokens in enumerate(places):
            pieces = pieces_of(tokens, spans[start + row])
            inside[row, : len(tokens)] = pieces
            outside[row, : len(tokens)] = ~tokens["special"] & ~pieces
        if not inside.any(axis=1).all():
            place = start + int(inside.any(axis=1).argmin())
            raise UserError(
                f"'{words[place]}' stands beyond what the encoder reads of text {place + 1}."
            )
        found.append([_mean_of_tokens(states, chosen) for chosen in (inside, outside)])
    own, context = (torch.cat(parts, dim=1).numpy() for parts in zip(*found, strict=True))
    return own, context


def find_word(text: str, word: str) -> tuple[int, int]:
    """Return where a word begins and ends in a text, in upper or lower case."""
    match = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE)
    if not match:
        raise UserError(f"The word '{word}' is not in its sentence: {text!r}.")
    return match.span()


def pieces_of(places: pd.DataFrame, span: tuple[int, int]) -> pd.Series:
    """Tell which tokens, with their `begin` and `end`, lie within a span of characters."""
    overlaps = (places["begin"] < span[1]) & (places["end"] > span[0])
    return overlaps & (places["end"] > places["begin"])  # special tokens are empty


def nearest_other_sense(vectors: np.ndarray, senses: np.ndarray) -> np.ndarray:
    """Return (n,) truth values: whether the nearest other vector by cosine has the same sense."""
    units = unit_rows(vectors)
    cosines = units @ units.T
    np.fill_diagonal(cosines, -np.inf)
    return np.asarray(senses[cosines.argmax(axis=1)] == senses)


def study_senses(vectors: np.ndarray, table: pd.DataFrame) -> pd.DataFrame:
    """Measure how far the senses of each word lie apart, in every layer.

    Args:
        vectors: (layers + 1, n, d) vectors of the words.
        table: Columns `word`, `sense`; a row a sentence.

    Returns:
        Columns `word`, `layer`, `row`, `hit` (the nearest other use has the same sense) and
        `silhouette`; a row a sentence and layer.
    """
    parts = []
    for word, rows in table.groupby("word", sort=False).indices.items():
        senses = table["sense"].to_numpy()[rows]
        if len(set(senses)) < 2:
            raise UserError(f"All sentences of '{word}' have one sense; two are needed.")
        for layer, states in enumerate(vectors[:, rows]):
            hit = nearest_other_sense(states, senses)
            width = silhouette_samples(unit_rows(states), senses)
            facts = {"word": word, "layer": layer, "row": rows, "hit": hit, "silhouette": width}
            parts.append(pd.DataFrame(facts))
    return pd.concat(parts, ignore_index=True)


def shared_word_hits(table: pd.DataFrame) -> np.ndarray:
    """Tell which sentences' nearest other one has the same sense, by TF-IDF of their other words.

    Sentences that share words with none count as wrong.

    Args:
        table: Columns `word`, `sense`, `text`.

    Returns:
        (n,) truth values.
    """
    hits = np.zeros(len(table), bool)
    for word, rows in table.groupby("word", sort=False).indices.items():
        counter = TfidfVectorizer(stop_words=[str(word)])
        context = counter.fit_transform(table["text"].to_numpy()[rows]).toarray()
        shares = (context @ context.T > 0).sum(axis=1) > 1
        hits[rows] = shares & nearest_other_sense(context, table["sense"].to_numpy()[rows])
    return hits


def self_similarity(vectors: np.ndarray, table: pd.DataFrame) -> pd.DataFrame:
    """Return mean cosines in every layer, of a word with itself and with other words.

    Returns:
        Columns `layer`, `name` (`same sense`, `other sense`, `other word`), `value`, `low`, `high`
        (interval over sentences), `n`.
    """
    word, sense = table["word"].to_numpy(), table["sense"].to_numpy()
    same_word = word[:, None] == word
    same_sense = same_word & (sense[:, None] == sense)
    kinds = {
        "same sense": same_sense & ~np.eye(len(table), dtype=bool),
        "other sense": same_word & ~same_sense,
        "other word": ~same_word,
    }
    rows = []
    for layer, states in enumerate(vectors):
        units = unit_rows(states)
        cosines = units @ units.T
        for name, pairs in kinds.items():
            found = half_samples(partial(_mean_of, cosines, pairs), len(table), lowest=-1.0)
            rows.append({"layer": layer, "name": name, **vars(found)})
    return pd.DataFrame(rows)


def _mean_of_tokens(states: torch.Tensor, tokens: np.ndarray) -> torch.Tensor:
    """Return the (layers + 1, n, d) means of (layers + 1, n, w, d) states over chosen tokens."""
    weights = torch.from_numpy(tokens).to(states.dtype)
    return torch.einsum("lnwd,nw->lnd", states, weights) / weights.sum(dim=1).clamp(min=1)[:, None]


def _mean_of(cosines: np.ndarray, pairs: np.ndarray, rows: np.ndarray) -> float:
    """Return the mean cosine of those pairs whose two sentences are among some rows."""
    chosen = np.ix_(rows, rows)
    own = cosines[chosen][pairs[chosen]]
    return float(own.mean()) if len(own) else float("nan")
