"""What can be read off vectors: linear probes, and a support vector machine."""

from collections.abc import Sequence
from functools import partial
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
from sentigeo.stats import HALVES, half_samples, mean_over_runs

STRENGTHS = (0.001, 0.01, 0.1)
WAYS = ("beginning", "head and tail", "windows")
Reading = tuple[Pooling, str]
NO_VARIANCE = 1e-6  # what rounding leaves of equal float32 vectors


def fit_probe(
    train: np.ndarray, labels: np.ndarray, validation: np.ndarray, validation_labels: np.ndarray
) -> Any:
    """Fit logistic regression on standardised vectors; validation chooses its strength.

    Args:
        train: (n, d) vectors.
        labels: (n,) classes.
        validation: (m, d) vectors that choose among inverse regularisation strengths; the first
            of equally good ones is taken.
        validation_labels: (m,) their classes.
    """
    _check(train, labels)
    probes = [
        make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=1000))
        for strength in STRENGTHS
    ]
    scores = [probe.fit(train, labels).score(validation, validation_labels) for probe in probes]
    return probes[int(np.argmax(scores))]


def probe_hits(
    vectors: np.ndarray,
    labels: np.ndarray,
    train: np.ndarray,
    validation: np.ndarray,
    test: np.ndarray,
) -> np.ndarray:
    """Fit a probe on some rows; return (t,) truth values: which test rows it gets right.

    Args:
        vectors: (n, d) vectors.
        labels: (n,) classes.
        train: Rows to fit on.
        validation: Rows that choose the probe's strength.
        test: Rows to score.
    """
    probe = fit_probe(vectors[train], labels[train], vectors[validation], labels[validation])
    return np.asarray(probe.predict(vectors[test]) == labels[test])


def probe_kinds(
    vectors: Vectors, labels: np.ndarray, parts: Sequence[np.ndarray]
) -> dict[Kind, np.ndarray]:
    """Fit a probe on every layer and pooling that was extracted; return the hits of each.

    Args:
        vectors: Vectors of n texts.
        labels: (n,) classes.
        parts: Rows to train on, to validate on and to test on.
    """
    return {
        kind: probe_hits(vectors.matrix(*kind), labels, *parts)
        for kind in track(vectors.kinds, "probing")
    }


def fit_svm(train: np.ndarray, labels: np.ndarray) -> Any:
    """Fit a support vector machine with a radial kernel on standardised vectors."""
    _check(train, labels)
    return make_pipeline(StandardScaler(), SVC()).fit(train, labels)


def svm_hits(
    train: np.ndarray, labels: np.ndarray, test: np.ndarray, truth: np.ndarray
) -> np.ndarray:
    """Fit a support vector machine; return (t,) truth values: which test rows it gets right."""
    return np.asarray(fit_svm(train, labels).predict(test) == truth)


def _check(vectors: np.ndarray, labels: np.ndarray) -> None:
    if not np.isfinite(vectors).all():
        raise UserError("The vectors hold values that are not numbers.")
    if len(np.unique(labels)) < 2:
        raise UserError("A classifier needs vectors of at least two classes.")


def read_long_texts(
    texts: Sequence[str], encoder: Encoder, poolings: Sequence[Pooling], store: Store
) -> dict[Reading, np.ndarray]:
    """Read texts beyond the encoder's limit in three ways.

    Returns:
        (n, d) vectors of the last layer by pooling and way: of the text's `beginning`, of its `head
        and tail`, and of `windows` over all of it. The beginning is the first window of a text.
    """
    limit, kinds = encoder.max_length, [(encoder.layers, pooling) for pooling in poolings]
    windows, owners = window_texts(texts, encoder.tokenizer, limit, limit // 8)
    ends = encode_texts(texts, encoder.tokenizer, limit, "first+last")
    in_windows, of_ends = (extract(t, encoder, store, kinds)[0] for t in (windows, ends))
    first = np.flatnonzero(np.diff(owners, prepend=-1))
    found: dict[Reading, np.ndarray] = {}
    for pooling in poolings:
        vectors = in_windows.matrix(-1, pooling)
        found[pooling, "beginning"] = vectors[first]
        found[pooling, "head and tail"] = of_ends.matrix(-1, pooling)
        found[pooling, "windows"] = mean_of_windows(vectors, owners, windows.lengths)
    return found


def pick_long_rows(counts: np.ndarray, rows: np.ndarray, limit: int, most: int) -> np.ndarray:
    """Draw rows whose texts are longer than a limit.

    Args:
        counts: (n,) tokens of every text.
        rows: Rows to draw from.
        limit: Tokens that a text must pass.
        most: How many to draw at most.
    """
    beyond = rows[counts[rows] > limit]
    return np.sort(np.random.default_rng(0).permutation(beyond)[:most])


def score_readings(
    readings: dict[Reading, np.ndarray],
    truth: np.ndarray,
    short: Vectors,
    labels: np.ndarray,
    parts: Sequence[np.ndarray],
) -> dict[Reading, np.ndarray]:
    """Tell which long texts a probe gets right, read in each way.

    The probe knows short texts only, which all ways read alike, so it favours none of them.

    Args:
        readings: (m, d) vectors of the long texts by pooling and way.
        truth: (m,) their classes.
        short: Vectors of all texts as the study reads them.
        labels: (n,) classes of all texts.
        parts: Rows of short texts to train on and to validate on.

    Returns:
        (m,) truth values for each reading.
    """
    train, validation = parts
    hits: dict[Reading, np.ndarray] = {}
    for pooling in dict.fromkeys(pooling for pooling, _ in readings):
        known = short.matrix(-1, pooling)
        probe = fit_probe(known[train], labels[train], known[validation], labels[validation])
        for way in WAYS:
            hits[pooling, way] = probe.predict(readings[pooling, way]) == truth
    return hits


def row_cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the (n,) cosine of each row of one (n, d) array with the same row of another."""
    a, b = first.astype(np.float64), second.astype(np.float64)
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return np.asarray(np.einsum("nd,nd->n", a, b) / norms)


def linear_cka(first: np.ndarray, second: np.ndarray) -> float:
    """Return the linear centred kernel alignment of two sets of vectors of the same n texts.

    It is 1 if one set is a rotated, shifted and scaled copy of the other (Kornblith et al., 2019).
    Unrelated sets come close to 0 only if n is much larger than d: normal vectors reach about
    d / (n + d). A set without variance has no alignment: the result is not a number.

    Args:
        first: (n, d) vectors.
        second: (n, e) vectors.
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
    before: Vectors, after: Vectors, rows: np.ndarray, resamples: int
) -> pd.DataFrame:
    """Compare the vectors of the same texts before and after, in every layer and pooling.

    Args:
        before: Vectors of all texts.
        after: Vectors of the same texts.
        rows: Texts to compare.
        resamples: Bootstrap resamples behind the interval of a mean cosine.

    Returns:
        Columns `group` (`linear alignment` or `mean cosine`), `name` (pooling), `layer`, `value`,
        `low`, `high`, `n`. Where all vectors are equal there is no alignment.
    """
    found = []
    for layer, pooling in before.kinds:
        old, new = (vectors.matrix(layer, pooling)[rows] for vectors in (before, after))
        cosine = mean_over_runs(row_cosines(old, new)[None], resamples)
        halves = HALVES if (layer, pooling) in after.kinds else 2  # what did not move does not vary
        cka = half_samples(partial(_cka_of, old, new), len(rows), halves)
        measures = {"linear alignment": cka, "mean cosine": cosine}
        found += [
            {"group": group, "name": pooling, "layer": layer, **vars(estimate)}
            for group, estimate in measures.items()
        ]
    return pd.DataFrame(found)


def _cka_of(first: np.ndarray, second: np.ndarray, rows: np.ndarray) -> float:
    return linear_cka(first[rows], second[rows])
