"""Few-shot classification by cosine: a few labelled texts, and the texts nearest to one."""

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from sentigeo.analysis.cosines import unit_rows
from sentigeo.cores import track
from sentigeo.errors import UserError
from sentigeo.stats import list_estimates, mean_over_runs

INVERSE_PENALTY = 100.0  # of logistic regression: vectors of length 1 are close to each other
METHODS = ("nearest text", "nearest class mean", "logistic regression")


def classify_by_cosine(
    shots: np.ndarray, labels: np.ndarray, vectors: np.ndarray, method: str
) -> np.ndarray:
    """Classify (n, d) vectors by a few (s, d) labelled ones, with one of `METHODS`."""
    return _classify(unit_rows(shots), labels, unit_rows(vectors), method)


def draw_shots(labels: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Draw the rows of so many texts of each class; a smaller draw is part of a larger one."""
    rng, rows = np.random.default_rng(seed), []
    for number in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == number))
        if len(members) < count:
            few = f"a class has only {len(members)} texts"
            raise UserError(f"{count} shots are not possible: {few}.")
        rows.append(members[:count])
    return np.concatenate(rows)


def few_shot_hits(
    train: np.ndarray, known: np.ndarray, test: np.ndarray, truth: np.ndarray,
    *, counts: list[int], draws: int,
) -> dict[tuple[str, int], np.ndarray]:  # fmt: skip
    """Return (draws, n) weighted hits among test texts by method and drawn shots of each class."""
    hits: dict[tuple[str, int], list[np.ndarray]] = {}
    units, new = unit_rows(train), unit_rows(test)
    for seed in track(range(draws), "drawing shots"):
        for count in counts:
            rows = draw_shots(known, count, seed)
            for method in METHODS:
                found = _classify(units[rows], known[rows], new, method)
                hits.setdefault((method, count), []).append(found == truth)
    return {key: balance_hits(np.stack(found), truth) for key, found in hits.items()}


def balance_hits(hits: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Weigh (draws, n) hits so that every class counts as much, as it does among the shots."""
    sizes = np.bincount(truth)
    return np.asarray(hits * (len(truth) / (sizes > 0).sum() / np.maximum(sizes, 1))[truth])


def learning_curve(hits: dict[tuple[str, int], np.ndarray], resamples: int) -> pd.DataFrame:
    """Summarise (draws, n) weighted hits; `bottom` and `top` are the range of 95% of the draws."""
    means = {key: mean_over_runs(found, resamples) for key, found in hits.items()}
    ranges = [np.quantile(found.mean(axis=1), [0.025, 0.975]) for found in hits.values()]
    bottom, top = zip(*ranges, strict=True)
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
