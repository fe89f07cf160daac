"""Nearest by cosine: few-shot classification, and the vectors of words whose senses lie apart."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import silhouette_samples

from sentigeo.analysis.cosines import unit_rows
from sentigeo.analysis.doses import draw_shots
from sentigeo.cores import track
from sentigeo.encoder.tokens import tokenize
from sentigeo.errors import UserError
from sentigeo.stats import balanced_mean_over_runs, half_samples, list_estimates

INVERSE_PENALTY = 100.0  # of logistic regression: vectors of length 1 are close to each other
METHODS = ("nearest text", "nearest class mean", "logistic regression")
BATCH = 64  # sentences


def classify_by_cosine(
    shots: np.ndarray, labels: np.ndarray, vectors: np.ndarray, method: str
) -> np.ndarray:
    """Classify (n, d) vectors by a few (s, d) labelled ones, with one of `METHODS`."""
    return _classify(unit_rows(shots), labels, unit_rows(vectors), method)


def few_shot_hits(
    train: np.ndarray, known: np.ndarray, test: np.ndarray, truth: np.ndarray,
    *, counts: list[int], draws: int,
) -> dict[tuple[str, int], np.ndarray]:  # fmt: skip
    """Return (draws, n) hits, 0 or 1, by method and number of shots of each class."""
    hits: dict[tuple[str, int], list[np.ndarray]] = {}
    units, new = unit_rows(train), unit_rows(test)
    for seed in track(range(draws), "drawing shots"):
        for count in counts:
            rows = draw_shots(known, count, seed)
            for method in METHODS:
                found = _classify(units[rows], known[rows], new, method)
                hits.setdefault((method, count), []).append(found == truth)
    return {key: np.stack(found).astype(float) for key, found in hits.items()}


def learning_curve(
    hits: dict[tuple[str, int], np.ndarray], truth: np.ndarray, resamples: int
) -> pd.DataFrame:
    """Estimate balanced accuracy from (draws, n) hits; 95% of draws lie in `bottom` to `top`."""
    means = {key: balanced_mean_over_runs(own, truth, resamples) for key, own in hits.items()}
    members = [truth == label for label in np.unique(truth)]
    of_draws = [np.mean([own[:, m].mean(axis=1) for m in members], 0) for own in hits.values()]
    bottom, top = np.quantile(of_draws, [0.025, 0.975], axis=1)
    return list_estimates(means, "method", "shots").assign(bottom=bottom, top=top)


def nearest_rows(one: np.ndarray, vectors: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of the vectors nearest to one by cosine, nearest first, and their cosines."""
    cosines = unit_rows(vectors) @ unit_rows(one[np.newaxis])[0]
    rows = np.argsort(-cosines, kind="stable")[:count]
    return rows, cosines[rows]


def _classify(shots: np.ndarray, labels: np.ndarray, new: np.ndarray, method: str) -> np.ndarray:
    if method == "logistic regression":
        regression = LogisticRegression(C=INVERSE_PENALTY, max_iter=500)
        return np.asarray(regression.fit(shots, labels).predict(new))
    if method == "nearest class mean":
        classes = np.unique(labels)
        shots = unit_rows(np.stack([shots[labels == number].mean(axis=0) for number in classes]))
        labels = classes
    return np.asarray(labels[(new @ shots.T).argmax(axis=1)])


def word_vectors(
    texts: Sequence[str], words: Sequence[str], encoder: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Return the (layers + 1, n, d) vectors of a word in each of n sentences, and of its context.

    They are means over the word's pieces, where it first stands, and over others but special ones.
    """
    import torch  # slow to import, and only needed here

    spans = [find_word(text, word) for text, word in zip(texts, words, strict=True)]
    found = []
    for start in range(0, len(texts), BATCH):
        batch, places = tokenize(list(texts[start : start + BATCH]), encoder)
        with torch.inference_mode():
            states = torch.stack(encoder.model(**batch, output_hidden_states=True).hidden_states)
        chosen = np.zeros((2, *batch["input_ids"].shape), bool)  # pieces of the word, the others
        for row, tokens in enumerate(places):
            begin, end = spans[start + row]
            pieces = (tokens["begin"] < end) & (tokens["end"] > begin)
            pieces &= tokens["end"] > tokens["begin"]  # special tokens are empty
            if not pieces.any():
                word, text = words[start + row], start + row + 1
                raise UserError(f"'{word}' stands beyond what the encoder reads of text {text}.")
            chosen[:, row, : len(tokens)] = pieces, ~tokens["special"] & ~pieces
        sums = [(torch.einsum("lnwd,nw->lnd", states, w), w) for w in states.new_tensor(chosen)]
        found.append([total / w.sum(dim=1).clamp(min=1)[:, None] for total, w in sums])
    vectors, context = (torch.cat(parts, dim=1).numpy() for parts in zip(*found, strict=True))
    return vectors, context


def find_word(text: str, word: str) -> tuple[int, int]:
    """Return where a word begins and ends in a text, in upper or lower case."""
    match = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE)
    if not match:
        raise UserError(f"The word '{word}' is not in its sentence: {text!r}.")
    return match.span()


def nearest_has_sense(vectors: np.ndarray, senses: np.ndarray) -> np.ndarray:
    """Return (n,) truth values: whether the nearest other vector by cosine has the same sense."""
    units = unit_rows(vectors)
    cosines = units @ units.T
    np.fill_diagonal(cosines, -np.inf)
    return np.asarray(senses[cosines.argmax(axis=1)] == senses)


def study_senses(vectors: np.ndarray, table: pd.DataFrame) -> pd.DataFrame:
    """Measure how far senses lie apart in (layers + 1, n, d) vectors, by sentence and layer."""
    parts = []
    for word, rows in table.groupby("word", sort=False).indices.items():
        senses = table["sense"].to_numpy()[rows]
        if len(set(senses)) < 2:
            raise UserError(f"All sentences of '{word}' have one sense; two are needed.")
        for layer, states in enumerate(vectors[:, rows]):
            hit = nearest_has_sense(states, senses)
            width = silhouette_samples(unit_rows(states), senses)
            facts = {"word": word, "layer": layer, "row": rows, "hit": hit, "silhouette": width}
            parts.append(pd.DataFrame(facts))
    return pd.concat(parts, ignore_index=True)


def shared_word_hits(table: pd.DataFrame) -> np.ndarray:
    """Tell which sentences' nearest other one, by TF-IDF of other words, has the same sense."""
    hits = np.zeros(len(table), bool)
    for word, rows in table.groupby("word", sort=False).indices.items():
        counter = TfidfVectorizer(stop_words=[str(word)])
        context = counter.fit_transform(table["text"].to_numpy()[rows]).toarray()
        shares = (context @ context.T > 0).sum(axis=1) > 1  # no words with any other is no hit
        hits[rows] = shares & nearest_has_sense(context, table["sense"].to_numpy()[rows])
    return hits


def compare_controls(study: pd.DataFrame, around: pd.DataFrame, uses: pd.DataFrame) -> pd.DataFrame:
    """Put what else gives senses away beside the last layer of a study, sentence by sentence."""
    last = study["layer"].max()
    found: pd.DataFrame = study[study["layer"] == last].set_index("row").sort_index()
    found["sense"] = uses["sense"].to_numpy()[found.index]
    found["embeddings"] = study[study["layer"] == 0].set_index("row")["hit"]
    found["context"] = around[around["layer"] == last].set_index("row")["hit"]
    found["shared words"] = shared_word_hits(uses)[found.index]
    return found


def self_similarity(vectors: np.ndarray, table: pd.DataFrame) -> pd.DataFrame:
    """Estimate mean cosines of a word with itself and with other words, over sentences."""
    word, sense = table["word"].to_numpy(), table["sense"].to_numpy()
    same_word = word[:, None] == word
    same_sense = same_word & (sense[:, None] == sense)
    kinds = {
        "same sense": same_sense & ~np.eye(len(table), dtype=bool),
        "other sense": same_word & ~same_sense,
        "other word": ~same_word,
    }
    found = {}
    for layer, states in enumerate(vectors):
        units = unit_rows(states)
        cosines = units @ units.T
        for name, pairs in kinds.items():
            mean = partial(_mean_of_pairs, cosines, pairs)
            found[layer, name] = half_samples(mean, len(table), lowest=-1.0)
    return list_estimates(found, "layer", "name")


def _mean_of_pairs(cosines: np.ndarray, pairs: np.ndarray, rows: np.ndarray) -> float:
    chosen = np.ix_(rows, rows)
    kept = cosines[chosen][pairs[chosen]]
    return float(kept.mean()) if len(kept) else float("nan")
