"""What can be read off vectors: probes by layer, an SVM on a map, long texts, layers that move."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from sentigeo.cache import Store
from sentigeo.cores import track
from sentigeo.encoder.corpus import Corpus
from sentigeo.encoder.encoder import Encoder, forget_training
from sentigeo.encoder.extract import embed_texts, extract, mean_of_windows
from sentigeo.encoder.tokens import encode_texts, window_texts
from sentigeo.encoder.vectors import Kind, Pooling, Vectors
from sentigeo.errors import UserError
from sentigeo.profile import Profile
from sentigeo.stats import HALVES, Estimate, half_samples, list_estimates, mean_over_runs, share

STRENGTHS = (0.001, 0.01, 0.1)
# Ways to read a long text, and their names in metrics.
WAYS = {"beginning": "beginning", "first and last": "first_and_last", "windows": "windows"}
Readings = dict[tuple[Pooling, str], np.ndarray]  # by pooling and way
Parts = Sequence[np.ndarray]  # rows to train on, to validate on and to test on
SHORT = 128  # tokens that an untrained encoder reads of a review
NO_VARIANCE = 1e-6  # what rounding leaves of equal float32 vectors


def fit_probe(vectors: np.ndarray, labels: np.ndarray, parts: Parts) -> Any:
    """Fit logistic regression on standardised (n, d) vectors; validation chooses its strength."""
    (known, answers), (new, truth) = ((vectors[rows], labels[rows]) for rows in parts[:2])
    _check(known, answers)
    models = [LogisticRegression(C=strength, max_iter=1000) for strength in STRENGTHS]
    probes = [make_pipeline(StandardScaler(), model).fit(known, answers) for model in models]
    return max(probes, key=lambda probe: probe.score(new, truth))  # the first of equals


def best_probe(
    vectors: Vectors, pooling: Pooling, labels: np.ndarray, parts: Parts
) -> tuple[int, Any]:
    """Fit a probe on every layer; return the layer that validation prefers, and its probe."""
    validation, found = parts[1], {}
    for layer in range(vectors.layers + 1):
        matrix = vectors.matrix(layer, pooling)
        probe = fit_probe(matrix, labels, parts)
        found[layer] = probe.score(matrix[validation], labels[validation]), probe
    layer = max(found, key=lambda number: found[number][0])
    return layer, found[layer][1]


def probe_hits(vectors: np.ndarray, labels: np.ndarray, parts: Parts) -> np.ndarray:
    """Fit a probe; tell which (t,) test rows it gets right."""
    test = parts[2]
    return np.asarray(fit_probe(vectors, labels, parts).predict(vectors[test]) == labels[test])


def probe_kinds(vectors: Vectors, labels: np.ndarray, parts: Parts) -> dict[Kind, np.ndarray]:
    """Fit a probe on every layer and pooling that was extracted; return the hits of each."""
    kinds = track(vectors.kinds, "probing")
    return {kind: probe_hits(vectors.matrix(*kind), labels, parts) for kind in kinds}


def score_untrained(corpus: Corpus, encoder: Encoder, profile: Profile, store: Store) -> Estimate:
    """Estimate the test accuracy of a probe on an encoder of the same build with random weights.

    It reads the beginnings of some reviews, mean pooled: what it reaches owes nothing to training.
    """
    rng, most = np.random.default_rng(0), profile.untrained_reviews
    counts = {"train": most, "validation": most // 4, "test": most}
    rows = [rng.permutation(corpus.rows(part))[:count] for part, count in counts.items()]
    texts = corpus.texts["text"].iloc[np.concatenate(rows)].tolist()
    length, labels = min(SHORT, profile.max_length), corpus.labels[np.concatenate(rows)]
    untrained = forget_training(encoder)
    vectors = embed_texts(texts, untrained, pooling="mean", max_length=length, store=store)
    parts = np.split(np.arange(len(texts)), np.cumsum([len(part) for part in rows])[:-1])
    return share(probe_hits(vectors, labels, parts))


def svm_hits(
    train: np.ndarray, labels: np.ndarray, test: np.ndarray, truth: np.ndarray
) -> np.ndarray:
    """Fit an SVM, radial kernel, on standardised vectors; tell which test rows it gets right."""
    _check(train, labels)
    machine = make_pipeline(StandardScaler(), SVC()).fit(train, labels)
    return np.asarray(machine.predict(test) == truth)


def _check(vectors: np.ndarray, labels: np.ndarray) -> None:
    if not np.isfinite(vectors).all():
        raise UserError("The vectors hold values that are not numbers.")
    if len(np.unique(labels)) < 2:
        raise UserError("A classifier needs vectors of at least two classes.")


def pick_long_rows(lengths: np.ndarray, rows: np.ndarray, limit: int, most: int) -> np.ndarray:
    """Draw at most `most` rows whose texts have more tokens than a limit."""
    beyond = rows[lengths[rows] > limit]
    return np.sort(np.random.default_rng(0).permutation(beyond)[:most])


def read_long_texts(
    texts: Sequence[str], encoder: Encoder, poolings: Sequence[Pooling], store: Store
) -> Readings:
    """Return (n, d) last-layer vectors of texts beyond the limit, by pooling and way to read."""
    limit, kinds = encoder.max_length, [(encoder.layers, pooling) for pooling in poolings]
    windows, owners = window_texts(texts, encoder.tokenizer, limit, limit // 8)
    ends = encode_texts(texts, encoder.tokenizer, limit, "first+last")
    in_windows, of_ends = (extract(t, encoder, store, kinds)[0] for t in (windows, ends))
    first = np.flatnonzero(np.diff(owners, prepend=-1))
    found: Readings = {}
    for pooling in poolings:
        vectors = in_windows.matrix(-1, pooling)
        found[pooling, "beginning"] = vectors[first]
        found[pooling, "first and last"] = of_ends.matrix(-1, pooling)
        found[pooling, "windows"] = mean_of_windows(vectors, owners, windows.lengths)
    return found


def score_readings(
    readings: Readings, truth: np.ndarray, short: Vectors, labels: np.ndarray, parts: Parts
) -> Readings:
    """Tell which long texts a probe of short ones, which all ways read alike, gets right."""
    poolings = dict.fromkeys(pooling for pooling, _ in readings)
    probes = {p: fit_probe(short.matrix(-1, p), labels, parts) for p in poolings}
    return {(p, way): probes[p].predict(read) == truth for (p, way), read in readings.items()}


def row_cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the (n,) cosine of each row of one (n, d) array with the same row of another."""
    a, b = first.astype(np.float64), second.astype(np.float64)
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return np.asarray(np.einsum("nd,nd->n", a, b) / norms)


def linear_cka(first: np.ndarray, second: np.ndarray) -> float:
    """Return the linear centred kernel alignment of (n, d) and (n, e) vectors of the same n texts.

    It is 1 if one set is a rotated, shifted and scaled copy of the other (Kornblith et al., 2019),
    about d / (n + d) for unrelated normal vectors, and not a number for a set without variance.
    """
    a, b = (v.astype(np.float64) for v in (first, second))
    a, b = a - a.mean(axis=0), b - b.mean(axis=0)
    if min(np.abs(a).max(), np.abs(b).max()) < NO_VARIANCE:
        return float("nan")
    shared = np.linalg.norm(a.T @ b) ** 2
    return min(1.0, float(shared / (np.linalg.norm(a.T @ a) * np.linalg.norm(b.T @ b))))


def shuffled_cka(first: np.ndarray, second: np.ndarray) -> float:
    """Return the alignment that two sets have by chance: that of one with the other shuffled."""
    return linear_cka(first, np.random.default_rng(0).permutation(second))


def compare_layers(
    pretrained: Vectors, fine_tuned: Vectors, rows: np.ndarray, resamples: int
) -> pd.DataFrame:
    """Compare the vectors of the same texts in every `layer` and pooling (`name`), in two ways."""
    found: dict[tuple[str, str, int], Estimate] = {}
    for layer, pooling in fine_tuned.readable:
        old, new = (stage.matrix(layer, pooling)[rows] for stage in (pretrained, fine_tuned))
        halves = HALVES if (layer, pooling) in fine_tuned.kinds else 2  # what did not move is 1
        found["linear alignment", pooling, layer] = _estimate_cka(old, new, halves)
        found["mean cosine", pooling, layer] = mean_over_runs(row_cosines(old, new), resamples)
    return list_estimates(found, "group", "name", "layer")


def _estimate_cka(first: np.ndarray, second: np.ndarray, halves: int) -> Estimate:
    return half_samples(lambda rows: linear_cka(first[rows], second[rows]), len(first), halves)
