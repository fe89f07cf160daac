"""What can be read off vectors: linear probes, and a support vector machine."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from sentigeo.errors import UserError
from sentigeo.progress import track
from sentigeo.vectors import Kind, Vectors

STRENGTHS = (0.001, 0.01, 0.1)


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
