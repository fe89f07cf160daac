"""Find texts that are copies, or nearly copies, of other texts."""

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import sparse

SHINGLE = 5
FEWEST_SHARED = 3


def near_duplicates(texts: Sequence[str], overlap: float) -> pd.DataFrame:
    """Find the pairs of texts that share much of their wording.

    Overlap is the share of word 5-grams of the shorter text that also stand in the longer one, so
    that a copy with a sentence added is still found. One common phrase is no copy: three 5-grams
    must be shared, unless the texts have the same words.

    Args:
        texts: n texts.
        overlap: Smallest overlap that counts, above 0.

    Returns:
        One row a pair: positions `first` < `second`, and their `overlap`.
    """
    shingles = [_shingles(text) for text in texts]
    sizes = np.array([len(found) for found in shingles])
    ids = np.fromiter((hash(s) for found in shingles for s in found), np.int64, sizes.sum())
    _, columns = np.unique(ids, return_inverse=True)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    table = sparse.csr_array((np.ones(len(columns), np.float32), columns, starts))
    shared = sparse.triu(table @ table.T, k=1, format="coo")
    smaller = np.minimum(sizes[shared.row], sizes[shared.col])
    larger = np.maximum(sizes[shared.row], sizes[shared.col])
    pairs = pd.DataFrame(
        {"first": shared.row, "second": shared.col, "overlap": shared.data / smaller}
    )
    enough = (shared.data >= FEWEST_SHARED) | (shared.data == larger)
    found: pd.DataFrame = pairs[enough & (pairs["overlap"] >= overlap)]
    return found.sort_values(["first", "second"], ignore_index=True)


def words(text: str) -> list[str]:
    """Lower-case words of a text, contractions kept whole."""
    return re.findall(r"[^\W_]+(?:'[^\W_]+)*", text.lower().replace("\u2019", "'"))


def _shingles(text: str) -> set[tuple[str, ...]]:
    tokens = words(text) or [text]
    last = max(1, len(tokens) - SHINGLE + 1)
    return {tuple(tokens[start : start + SHINGLE]) for start in range(last)}
