"""What cosines are good for: treatments of vectors, thresholds, a few labelled texts."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from sklearn.linear_model import LogisticRegression

from sentigeo.analysis.cosines import (
    BINS,
    PairCounts,
    bin_cosines,
    count_pairs,
    estimate_mean_cosine,
    find_span,
    unit_rows,
)
from sentigeo.errors import UserError
from sentigeo.progress import track
from sentigeo.stats import Estimate, half_sample_all, half_samples, list_estimates, mean_over_runs

TOP = 3  # principal components that are removed
FLAT = 1e-9  # share of the largest variance below which a direction is left out
PARTNERS = 5  # texts that each text is paired with
FIFTHS = 5  # groups of texts by length
INVERSE_PENALTY = 100.0  # of logistic regression: vectors of length 1 are close to each other
METHODS = ("nearest text", "nearest class mean", "logistic regression")
Transform = Callable[[np.ndarray], np.ndarray]


def learn_transforms(train: np.ndarray) -> dict[str, Transform]:
    """Return treatments of (n, d) vectors by name, learned from (m, d) training vectors alone."""
    if len(train) < 2 or not np.isfinite(train).all():
        raise UserError("At least two vectors of numbers are needed to learn a transformation.")
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1)
    variances, axes = np.linalg.eigh(np.cov(train.astype(np.float64), rowvar=False))
    variances, axes = variances[::-1], axes[:, ::-1]
    kept = variances > FLAT * max(variances[0], np.finfo(float).tiny)
    top = axes[:, :TOP]
    whiten = axes[:, kept] / np.sqrt(variances[kept])
    return {
        "raw": lambda vectors: vectors,
        "normalised": unit_rows,
        "centred": lambda vectors: vectors - mean,
        "standardised": lambda vectors: (vectors - mean) / deviation,
        f"top {TOP} removed": lambda vectors: (vectors - mean) - (vectors - mean) @ top @ top.T,
        "whitened": lambda vectors: (vectors - mean) @ whiten,
    }


def threshold_curve(counts: PairCounts) -> pd.DataFrame:
    """Rate each threshold, a bin, that takes pairs beyond it for pairs of one class."""
    same = counts.within.sum(axis=0)[::-1].cumsum()[::-1]
    every = same + counts.between[::-1].cumsum()[::-1]
    with np.errstate(invalid="ignore", divide="ignore"):
        precision, recall = same / every, same / same[0]
        f1 = 2 * precision * recall / (precision + recall)
    edges = np.linspace(*counts.span, BINS, endpoint=False)
    return pd.DataFrame({"threshold": edges, "precision": precision, "recall": recall, "f1": f1})


def best_threshold(counts: PairCounts) -> float:
    """Return the threshold with the largest F1."""
    curve = threshold_curve(counts)
    return float(curve["threshold"].iloc[int(curve["f1"].fillna(0).to_numpy().argmax())])


def top_cosines(counts: PairCounts, share: float) -> float:
    """Return the threshold that such a share of all pairs pass."""
    every = counts.within.sum(axis=0) + counts.between
    above = every[::-1].cumsum() / every.sum()
    place = BINS - 1 - int(np.searchsorted(above, share))
    return float(np.linspace(*counts.span, BINS, endpoint=False)[max(place, 0)])


def judge_threshold(
    vectors: np.ndarray, labels: np.ndarray, classes: int, threshold: float
) -> dict[str, Estimate]:
    """Estimate what a threshold is worth on (n, d) vectors that it was not chosen on.

    `gain` is by how much precision surpasses the share of all pairs that are of one class.
    Intervals are over texts; what no pair passes has no precision.
    """
    units = unit_rows(vectors)
    span = find_span(units)
    place = int(bin_cosines(np.array([threshold]), span)[0])

    def measure(rows: np.ndarray) -> dict[str, float]:
        counts = count_pairs(units[rows], labels[rows], classes, span)
        passing = np.array([counts.within[:, place:].sum(), counts.between[place:].sum()])
        same, every = counts.within.sum(), counts.sizes.sum()
        with np.errstate(invalid="ignore", divide="ignore"):
            precision, recall = passing[0] / passing.sum(), passing[0] / same
            f1, gain = 2 * passing[0] / (passing.sum() + same), precision - same / every
        return {"precision": precision, "recall": recall, "f1": f1, "gain": gain}

    return half_sample_all(measure, len(labels), lowest={"gain": -1.0})


def length_effect(vectors: np.ndarray, lengths: np.ndarray) -> Estimate:
    """Estimate the rank correlation of a pair's cosine with the length of its shorter text.

    It is not a number where all n texts, with (n, d) vectors and (n,) lengths, are equally long.
    """
    units = unit_rows(vectors)
    mixed = np.random.default_rng(0).permutation(len(units))  # neighbours in a file may be alike

    def correlation(rows: np.ndarray) -> float:
        texts = mixed[np.sort(rows)]
        shifts = range(1, min(PARTNERS + 1, len(texts)))
        if not shifts or lengths[texts].min() == lengths[texts].max():
            return float("nan")
        pairs = [(texts, np.roll(texts, shift)) for shift in shifts]
        cosines = np.concatenate([np.einsum("nd,nd->n", units[a], units[b]) for a, b in pairs])
        shorter = np.concatenate([np.minimum(lengths[a], lengths[b]) for a, b in pairs])
        return float(spearmanr(cosines, shorter).statistic)

    return half_samples(correlation, len(units), lowest=-1.0)


def cosine_by_length(vectors: np.ndarray, lengths: np.ndarray) -> pd.DataFrame:
    """Estimate the mean cosine within fifths of the texts by length; `words` is the mean length."""
    order = np.argsort(lengths, kind="stable")
    fifths = np.array_split(order, min(FIFTHS, len(order)))
    rows = [(float(lengths[part].mean()), estimate_mean_cosine(vectors[part])) for part in fifths]
    return pd.DataFrame(rows, columns=["words", "estimate"])


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
            reason = f"a class has only {len(members)} texts"
            raise UserError(f"{count} shots are not possible: {reason}.")
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


def nearest_rows(
    query: np.ndarray, vectors: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of the vectors nearest to one by cosine, nearest first, and their cosines."""
    cosines = unit_rows(vectors) @ unit_rows(query[np.newaxis])[0]
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
