"""Which side words are on: how strongly they lean to a class, in texts that chose none of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from sentigeo.errors import UserError
from sentigeo.keywords import count_terms

SMOOTHING = 0.5  # texts added to every count


@dataclass(frozen=True)
class Leans:
    """How strongly terms lean to each class.

    Attributes:
        names: The terms.
        table: (classes, t) log-odds of using a term in texts of a class against all others.
    """

    names: list[str]
    table: np.ndarray

    def of(self, terms: Sequence[str], classes: np.ndarray) -> np.ndarray:
        """Return the (m,) lean of each of m terms to a class each; above 0 it leans that way."""
        places = {name: place for place, name in enumerate(self.names)}
        return np.asarray(self.table[classes, [places[term] for term in terms]])


def measure_leans(
    texts: Sequence[str], labels: np.ndarray, classes: int, terms: Sequence[str]
) -> Leans:
    """Measure how strongly terms lean to each class.

    Args:
        texts: n texts.
        labels: (n,) their classes.
        classes: How many classes there are.
        terms: The terms to look up.
    """
    if not len(terms):
        raise UserError("There are no keywords to look up.")
    found = count_terms(texts, 1, terms)
    used = found.texts_by_cluster(labels, classes)  # (classes, t)
    sizes = np.bincount(labels, minlength=classes)[:, None]
    others, other_sizes = used.sum(axis=0) - used, sizes.sum() - sizes
    inside, outside = (
        np.log((count + SMOOTHING) / (size - count + SMOOTHING))
        for count, size in ((used, sizes), (others, other_sizes))
    )
    return Leans(found.names, inside - outside)


def permute_leans(leans: Leans, keywords: pd.DataFrame, deals: int) -> tuple[float, np.ndarray]:
    """Test whether keywords lean to the classes of their clusters, by dealing them out anew.

    Args:
        leans: How the terms lean.
        keywords: Columns `term` and `label`, the class of its cluster.
        deals: How often the terms are dealt to the clusters at random.

    Returns:
        The two-sided p-value, and the (deals,) mean leans of terms that were dealt.
    """
    terms, classes = keywords["term"].tolist(), keywords["label"].to_numpy()
    found = leans.of(terms, classes).mean()
    rng = np.random.default_rng(0)
    dealt = np.array([leans.of(terms, rng.permutation(classes)).mean() for _ in range(deals)])
    centre = dealt.mean()
    far = np.abs(dealt - centre) >= abs(found - centre) - 1e-12
    return float((1 + far.sum()) / (1 + deals)), dealt
