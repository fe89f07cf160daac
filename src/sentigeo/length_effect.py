"""Does the cosine of two texts depend on how long they are?"""

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from sentigeo.cosine import estimate_mean_cosine, unit_rows
from sentigeo.stats import Estimate, half_samples

PARTNERS = 5  # texts that each text is paired with
FIFTHS = 5  # groups of texts by length


def length_effect(vectors: np.ndarray, lengths: np.ndarray) -> Estimate:
    """Estimate the rank correlation of a pair's cosine with the length of its shorter text.

    It is not a number where all texts are equally long.

    Args:
        vectors: (n, d).
        lengths: (n,) words or tokens of each text.
    """
    units = unit_rows(vectors)
    mixed = np.random.default_rng(0).permutation(len(units))  # neighbours in a file may be alike

    def correlation(rows: np.ndarray) -> float:
        own = mixed[np.sort(rows)]
        pairs = [(own, np.roll(own, shift)) for shift in range(1, min(PARTNERS + 1, len(own)))]
        if not pairs or lengths[own].min() == lengths[own].max():
            return float("nan")
        cosines = np.concatenate([np.einsum("nd,nd->n", units[a], units[b]) for a, b in pairs])
        shorter = np.concatenate([np.minimum(lengths[a], lengths[b]) for a, b in pairs])
        return float(spearmanr(cosines, shorter).statistic)

    return half_samples(correlation, len(units), lowest=-1.0)


def cosine_by_length(vectors: np.ndarray, lengths: np.ndarray) -> pd.DataFrame:
    """Estimate the mean cosine of pairs of texts that are about equally long.

    Returns:
        Columns `words` (mean length), `value`, `low`, `high`, `n`; from short to long fifths.
    """
    order = np.argsort(lengths, kind="stable")
    rows = []
    for part in np.array_split(order, min(FIFTHS, len(order))):
        found = estimate_mean_cosine(vectors[part])
        rows.append({"words": float(lengths[part].mean()), **vars(found)})
    return pd.DataFrame(rows)
