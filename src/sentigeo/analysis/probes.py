"""What can be read off vectors: linear probes, a support vector machine, and how layers change."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from sentigeo.cache import Store
from sentigeo.encoder.encoder import Encoder
from sentigeo.encoder.extract import extract, mean_of_windows
from sentigeo.encoder.tokens import encode_texts, window_texts
from sentigeo.encoder.vectors import Kind, Pooling, Vectors
from sentigeo.errors import UserError
from sentigeo.progress import track
from sentigeo.stats import HALVES, Estimate, half_samples, list_estimates, mean_over_runs

STRENGTHS = (0.001, 0.01, 0.1)
# Ways to read a long text, and their names in metrics.
WAYS = {"beginning": "beginning", "first and last": "head_and_tail", "windows": "windows"}
Readings = dict[tuple[Pooling, str], np.ndarray]  # by pooling and way
Parts = Sequence[np.ndarray]  # rows to train on, to validate on and to test on
NO_VARIANCE = 1e-6  # what rounding leaves of equal float32 vectors


def fit_probe(
    train: np.ndarray, labels: np.ndarray, validation: np.ndarray, validation_labels: np.ndarray
) -> Any:
    """Fit logistic regression on standardised (n, d) vectors; validation chooses its strength."""
    _check(train, labels)
    models = [LogisticRegression(C=strength, max_iter=1000) for strength in STRENGTHS]
    probes = [make_pipeline(StandardScaler(), model) for model in models]
    scores = [probe.fit(train, labels).score(validation, validation_labels) for probe in probes]
    return probes[int(np.argmax(scores))]


def fit_on_rows(vectors: np.ndarray, labels: np.ndarray, parts: Parts) -> Any:
    """Fit a probe on the rows of the first part; those of the second choose its strength."""
    train, validation = parts[:2]
    return fit_probe(vectors[train], labels[train], vectors[validation], labels[validation])


def probe_hits(vectors: np.ndarray, labels: np.ndarray, parts: Parts) -> np.ndarray:
    """Fit a probe; tell which (t,) test rows it gets right."""
    test = parts[2]
    return np.asarray(fit_on_rows(vectors, labels, parts).predict(vectors[test]) == labels[test])


def probe_kinds(vectors: Vectors, labels: np.ndarray, parts: Parts) -> dict[Kind, np.ndarray]:
    """Fit a probe on every layer and pooling that was extracted; return the hits of each."""
    kinds = track(vectors.kinds, "probing")
    return {kind: probe_hits(vectors.matrix(*kind), labels, parts) for kind in kinds}


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
    """Draw at most so many rows whose texts have more tokens than a limit."""
    beyond = rows[lengths[rows] > limit]
    return np.sort(np.random.default_rng(0).permutation(beyond)[:most])


def read_long_texts(
    texts: Sequence[str], encoder: Encoder, poolings: Sequence[Pooling], store: Store
) -> Readings:
    """Return the (n, d) last-layer vectors, by pooling, of texts read in the three `WAYS`.

    The beginning is the first window of a text beyond the encoder's limit; windows over all of it
    are averaged by their number of tokens.
    """
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
    """Tell which of m long texts, by their (m, d) readings, a probe gets right.

    The probe knows short texts only, which all ways read alike, so it favours none of them; `parts`
    are the rows of `short` to train and to validate on.
    """
    poolings = dict.fromkeys(pooling for pooling, _ in readings)
    probes = {p: fit_on_rows(short.matrix(-1, p), labels, parts) for p in poolings}
    return {(p, way): probes[p].predict(own) == truth for (p, way), own in readings.items()}


def row_cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the (n,) cosine of each row of one (n, d) array with the same row of another."""
    a, b = first.astype(np.float64), second.astype(np.float64)
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return np.asarray(np.einsum("nd,nd->n", a, b) / norms)


def linear_cka(first: np.ndarray, second: np.ndarray) -> float:
    """Return the linear centred kernel alignment of (n, d) and (n, e) vectors of the same n texts.

    It is 1 if one set is a rotated, shifted and scaled copy of the other (Kornblith et al., 2019).
    Unrelated sets come close to 0 only if n is much larger than d: normal vectors reach about
    d / (n + d). A set without variance has no alignment: the result is not a number.
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
    """Compare the vectors of the same texts in every `layer` and pooling (`name`).

    The `group` is `linear alignment` (none where all vectors are equal) or `mean cosine`.
    """
    found: dict[tuple[str, str, int], Estimate] = {}
    for layer, pooling in pretrained.kinds:
        old, new = (own.matrix(layer, pooling)[rows] for own in (pretrained, fine_tuned))
        halves = HALVES if (layer, pooling) in fine_tuned.kinds else 2  # what did not move is 1
        found["linear alignment", pooling, layer] = estimate_cka(old, new, halves)
        found["mean cosine", pooling, layer] = mean_over_runs(row_cosines(old, new), resamples)
    return list_estimates(found, "group", "name", "layer")


def estimate_cka(first: np.ndarray, second: np.ndarray, halves: int) -> Estimate:
    """Estimate the linear alignment of two sets, its interval from so many halves of the texts."""
    return half_samples(lambda rows: linear_cka(first[rows], second[rows]), len(first), halves)
