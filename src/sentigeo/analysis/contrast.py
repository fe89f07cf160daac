"""How well models tell the two sides of contrast pairs apart.

Margins are the logit of positive minus that of negative, so a text is called positive above 0;
texts are a table of pairs with the columns `pair`, `label` and `phenomenon`.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from sentigeo.errors import UserError

OUTCOMES = ("right", "same answer", "reversed")
Scores = Mapping[str, np.ndarray]  # (runs, pairs) by name


def pair_sides(texts: pd.DataFrame) -> np.ndarray:
    """Return (pairs, 2) positions of negative and positive sides, pairs in order of appearance."""
    for pair, labels in texts.groupby("pair", sort=False)["label"]:
        if sorted(labels) != [0, 1]:
            raise UserError(f"Pair '{pair}' must have one negative and one positive text.")
    return np.lexsort((texts["label"], texts["pair"].factorize()[0])).reshape(-1, 2)


def logit_difference(margins: np.ndarray, texts: pd.DataFrame, spread: np.ndarray) -> np.ndarray:
    """Return how far (runs, n) margins rise from the negative to the positive side of each pair.

    The (runs, pairs) differences are in units of the (runs,) spread, the standard deviation of a
    run's margins over the test reviews; equal sides have 0 whatever the spread.
    """
    negative, positive = _split_sides(margins, texts)
    rise = np.asarray(positive - negative, dtype=float)
    np.divide(rise, spread[:, None], out=rise, where=rise != 0)
    return rise


def consistent(margins: np.ndarray, texts: pd.DataFrame) -> np.ndarray:
    """Return (runs, pairs) truth values: both sides are right (0 is negative, as by argmax)."""
    negative, positive = _split_sides(margins, texts)
    return (negative <= 0) & (positive > 0)


def ranked(margins: np.ndarray, texts: pd.DataFrame) -> np.ndarray:
    """Return (runs, pairs) ranks of the positive side: 1 if it is higher, 0.5 if equal, else 0."""
    negative, positive = _split_sides(margins, texts)
    return np.asarray((1 + np.sign(positive - negative)) / 2)


def score_pairs(
    margins: np.ndarray, texts: pd.DataFrame, spread: np.ndarray
) -> dict[str, np.ndarray]:
    """Return the (runs, pairs) values of the three endpoints, by name."""
    return {
        "consistency": consistent(margins, texts).astype(float),
        "logit_difference": logit_difference(margins, texts, spread),
        "rank_accuracy": ranked(margins, texts),
    }


def outcomes(margins: np.ndarray, texts: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return (runs, pairs) truth values by outcome, one of which each pair has.

    A pair is right, gets the same answer on both sides, or is reversed: both sides are wrong.
    """
    negative, positive = (side > 0 for side in _split_sides(margins, texts))
    found = (positive & ~negative, positive == negative, negative & ~positive)
    return dict(zip(OUTCOMES, found, strict=True))


def by_phenomenon(scores: Scores, texts: pd.DataFrame) -> dict[str, dict[str, np.ndarray]]:
    """Split (runs, pairs) scores by the phenomenon of their pair, in order of appearance."""
    kinds = texts.drop_duplicates("pair")["phenomenon"].to_numpy()
    return {
        kind: {name: values[:, kinds == kind] for name, values in scores.items()}
        for kind in dict.fromkeys(kinds)
    }


def list_outcomes(found: Mapping[tuple[str, str], Scores]) -> pd.DataFrame:
    """List the share of each outcome by (group, name): columns `group`, `name`, outcomes, `n`."""
    rows = [
        {"group": group, "name": name}
        | {outcome: float(scores[outcome].mean()) for outcome in OUTCOMES}
        | {"n": scores[OUTCOMES[0]].shape[1]}
        for (group, name), scores in found.items()
    ]
    return pd.DataFrame(rows)


def _split_sides(margins: np.ndarray, texts: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Return the (runs, pairs) margins of the negative and of the positive sides."""
    if margins.shape[1:] != (len(texts),):
        raise ValueError(f"margins are {margins.shape}, not (runs, {len(texts)})")
    negative, positive = pair_sides(texts).T
    return margins[:, negative], margins[:, positive]


def list_phenomena(
    models: Mapping[str, Scores], texts: pd.DataFrame, least: int = 1
) -> pd.DataFrame:
    """List outcomes by model (`group`) and phenomenon (`name`, with its number of pairs)."""
    found = {}
    for model, scores in models.items():
        ended = {outcome: scores[outcome] for outcome in OUTCOMES}
        for kind, own in by_phenomenon(ended, texts).items():
            if (count := own["right"].shape[1]) >= least:
                found[model, f"{kind.replace('_', ' ')} ({count})"] = own
    return list_outcomes(found)
