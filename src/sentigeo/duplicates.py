"""Find texts that are copies, or nearly copies, of other texts."""

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.feature_extraction.text import HashingVectorizer

SHINGLE = 5


def near_duplicates(texts: Sequence[str], overlap: float) -> pd.DataFrame:
    """Find the pairs of texts that share much of their wording.

    Overlap is the share of word 5-grams of the shorter text that also stand in the longer one, so
    that a copy with a sentence added is still found. Unrelated reviews stay below 0.15. Texts of
    fewer than five words match only when their words are equal.

    Args:
        texts: n texts.
        overlap: Smallest overlap that counts, above 0.

    Returns:
        One row a pair: positions `first` < `second`, and their `overlap`.
    """
    shingler = HashingVectorizer(
        analyzer=_shingles, n_features=2**24, binary=True, norm=None, alternate_sign=False,
        dtype=np.float32,
    )  # fmt: skip
    found = shingler.transform(texts)
    sizes = found.getnnz(axis=1)
    shared = sparse.triu(found @ found.T, k=1, format="coo")
    pairs = pd.DataFrame({"first": shared.row, "second": shared.col, "overlap": shared.data})
    pairs["overlap"] /= np.minimum(sizes[shared.row], sizes[shared.col])
    return pairs[pairs["overlap"] >= overlap].sort_values(["first", "second"], ignore_index=True)


def words(text: str) -> list[str]:
    """Lower-case words of a text, contractions kept whole."""
    return re.findall(r"[^\W_]+(?:'[^\W_]+)*", text.lower())


def _shingles(text: str) -> list[str]:
    tokens = words(text)
    last = max(1, len(tokens) - SHINGLE + 1)
    return [" ".join(tokens[start : start + SHINGLE]) for start in range(last)]
