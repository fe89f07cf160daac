"""Dose and response: what extra training texts do to logistic regression on cached vectors."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from sentigeo.analysis.predictions import crossed_difference, rate_sides
from sentigeo.cores import run_in_processes
from sentigeo.encoder.corpus import TIERS
from sentigeo.errors import UserError
from sentigeo.stats import list_estimates

STRENGTHS = (0.001, 0.003, 0.01, 0.03, 0.1)
ENDPOINTS = ["logit_difference", "consistency", "rank_accuracy", "test_accuracy"]
# At scikit-learn's own tolerance a fit that starts from that of dose 0 may stop 5% short of what a
# dose of 8 does; at this one half a percent. Newton's method (newton-cholesky) is exact but takes
# three times as long.
TOLERANCE = 1e-5


@dataclass(frozen=True)
class Kind:
    """A kind of dose: the part that its texts are drawn from, and how they are used."""

    part: str
    texts: int  # for each unit of the dose
    weight: float = 1.0
    shuffled: bool = False  # whether labels are permuted among the texts of a dose


# Ordinary reviews are those of validation. They chose the strength at dose 0; nothing is scored on
# them. An edited pair is two texts, so its control is twice as many ordinary reviews.
KINDS = {
    "handcrafted": Kind("contrastive", 1),
    "edited": Kind("natural_train", 2),
    "edited, weighted": Kind("natural_train", 2, weight=5.0),
    "shuffled": Kind("natural_train", 2, shuffled=True),
    "ordinary": Kind("validation", 1),
    "ordinary, twice": Kind("validation", 2),
}


@dataclass(frozen=True)
class Task:
    """What all fits share."""

    vectors: np.ndarray  # (n, d) of all texts, standardised by the training reviews
    texts: pd.DataFrame  # columns `part`, `label`, `pair`
    start: LogisticRegression  # the fit of dose 0, which others start from
    sides: Mapping[str, np.ndarray]  # (pairs, 2) rows of negative and positive sides, by tier


def dose_response(
    vectors: np.ndarray,
    texts: pd.DataFrame,
    *,
    kinds: Mapping[str, Kind] = KINDS,
    doses: Sequence[int],
    draws: int,
    tiers: Sequence[str] = tuple(TIERS),
) -> pd.DataFrame:
    """Return the endpoints by `kind`, `dose`, `draw` and `tier`; dose 0 is of the kind `none`.

    Vectors are (n, d), texts a frame as of a corpus. The training reviews are always the same, only
    the dose is drawn; in one draw a smaller dose is part of a larger one, and doses of one part
    have the same texts.
    """
    texts = texts[["part", "label", "pair"]].reset_index(drop=True)
    for kind in kinds.values():
        _check_doses(texts, kind, doses)
    task = _prepare(vectors, texts, tiers)
    frames = [_score(task.start, task).assign(kind="none", dose=0, draw=0)]
    jobs = [(task, kinds, doses, draw) for draw in range(draws)]
    frames += run_in_processes(score_draw, jobs, "fitting doses")
    return pd.concat(frames, ignore_index=True)[["kind", "dose", "draw", "tier", *ENDPOINTS]]


def score_draw(
    task: Task, kinds: Mapping[str, Kind], doses: Sequence[int], draw: int
) -> pd.DataFrame:
    """Fit one draw of every kind and dose; return their endpoints by `kind`, `dose` and `tier`."""
    train, found = np.flatnonzero(task.texts["part"] == "train"), []
    known = task.texts["label"].to_numpy(int)
    for name, kind in kinds.items():
        for dose in doses:
            rows = draw_rows(task.texts, kind.part, dose * kind.texts, draw)
            labels = known[rows]
            if kind.shuffled:
                labels = np.random.default_rng([draw, 1]).permutation(labels)
            weights = np.repeat([1.0, kind.weight], [len(train), len(rows)])
            texts = task.vectors[np.concatenate([train, rows])]
            truth = np.concatenate([known[train], labels])
            model = deepcopy(task.start).fit(texts, truth, weights)
            found.append(_score(model, task).assign(kind=name, dose=dose, draw=draw))
    return pd.concat(found)


def draw_rows(texts: pd.DataFrame, part: str, count: int, draw: int) -> np.ndarray:
    """Return the (count,) rows of texts drawn from a part: whole pairs if it has pairs.

    Half of them are of each class, and a smaller draw is part of a larger one.
    """
    rows = np.flatnonzero(texts["part"] == part)
    if texts["pair"].iloc[rows].isna().any():
        shots = draw_shots(texts["label"].to_numpy(int)[rows], count // 2, draw)
        return np.asarray(rows[shots])
    pairs = np.random.default_rng(draw).permutation(_find_sides(texts, part))
    return np.asarray(pairs[: count // 2].ravel())


def draw_shots(labels: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Draw rows, `count` of each class; a smaller draw is part of a larger one."""
    rng, rows = np.random.default_rng(seed), []
    for number in np.unique(labels):
        members = rng.permutation(np.flatnonzero(labels == number))
        if len(members) < count:
            few = f"a class has only {len(members)} texts"
            raise UserError(f"{count} shots are not possible: {few}.")
        rows.append(members[:count])
    return np.concatenate(rows)


def dose_effects(frame: pd.DataFrame) -> pd.DataFrame:
    """Estimate the change of each `endpoint` against dose 0 by `kind`, `dose` and `tier`.

    Intervals are Student's over draws. They speak of other draws from the same texts, scored on the
    same pairs: a dose that nearly empties its part has a narrow one.
    """
    start = frame[frame["dose"] == 0].set_index("tier")
    found = {}
    drawn = frame[frame["dose"] > 0].groupby(["kind", "dose", "tier"], sort=False)
    for (kind, dose, tier), rows in drawn:
        for endpoint in ENDPOINTS:
            both = rows[endpoint], rows["tier"].map(start[endpoint])
            change = crossed_difference(*(values.to_numpy()[None] for values in both))
            found[kind, dose, tier, endpoint] = change
    return list_estimates(found, "kind", "dose", "tier", "endpoint")


def _check_doses(texts: pd.DataFrame, kind: Kind, doses: Sequence[int]) -> None:
    labels = texts.loc[texts["part"] == kind.part, "label"]
    most = 2 * min((labels == 0).sum(), (labels == 1).sum())
    for dose in doses:
        count = dose * kind.texts
        if count % 2:
            raise UserError(f"A dose of {count} texts cannot be half of each class.")
        if count > most:
            there = f"only {most} of part '{kind.part}', half of each class, are available"
            raise UserError(f"A dose of {count} texts is too large: {there}.")


def _prepare(vectors: np.ndarray, texts: pd.DataFrame, tiers: Sequence[str]) -> Task:
    """Standardise all vectors by the training reviews; fit dose 0, its strength by validation."""
    train, validation = (np.flatnonzero(texts["part"] == p) for p in ("train", "validation"))
    scaler = StandardScaler().fit(vectors[train].astype(np.float64))
    every, labels = scaler.transform(vectors.astype(np.float64)), texts["label"].to_numpy(int)
    given = {"tol": TOLERANCE, "max_iter": 5000, "warm_start": True}  # later fits start from these
    jobs = [(LogisticRegression(C=c, **given), every[train], labels[train]) for c in STRENGTHS]
    fits = list(run_in_processes(LogisticRegression.fit, jobs, "fitting without a dose"))
    scores = [fit.score(every[validation], labels[validation]) for fit in fits]
    sides = {tier: _find_sides(texts, tier) for tier in tiers}
    return Task(every, texts, fits[int(np.argmax(scores))], sides)


def _find_sides(texts: pd.DataFrame, part: str) -> np.ndarray:
    """Return the (pairs, 2) rows of the negative and the positive side of each pair of a part."""
    members = texts[texts["part"] == part].sort_values(["pair", "label"])
    if members.empty:
        raise UserError(f"There are no pairs of part '{part}'.")
    return members.index.to_numpy().reshape(-1, 2)


def _score(model: LogisticRegression, task: Task) -> pd.DataFrame:
    """Return the endpoints of a fit, one row for each `tier`."""
    margins = model.decision_function(task.vectors)
    test = task.texts["part"] == "test"
    accuracy = ((margins > 0) == (task.texts["label"] == 1))[test].mean()
    rows = []
    for tier, sides in task.sides.items():
        negative, positive = margins[sides].T
        scores = rate_sides(negative, positive, margins[test].std())
        means = {name: values.mean() for name, values in scores.items()}
        rows.append({"tier": tier, **means, "test_accuracy": accuracy})
    return pd.DataFrame(rows)
