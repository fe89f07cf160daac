"""Which reviews are about one film: neighbours that share their wording, by a fixed rule."""

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

RUN = 128  # the packaged file holds the release's order in runs of this length, each back to front
LONGEST = 30  # the release has at most so many reviews of a film with one label
FLOOR = 0.0175  # cosine similarity above which two neighbours speak for one film


def group_films(source: pd.DataFrame) -> np.ndarray:
    """Return the number of the film that each row is taken to be about, (n,).

    Rows are those of the packaged file in its order, with `text` and `label` (0 or 1). The release
    lists the reviews of a film one after the other, and the films of both labels in one order. So
    each label's rows are cut into blocks, and blocks of the two labels are matched in order.
    """
    vectorizer = TfidfVectorizer(
        token_pattern=r"[^\W_]{3,}", min_df=2, max_df=0.1, sublinear_tf=True, dtype=np.float32
    )
    vectors = sparse.csr_array(vectorizer.fit_transform(source["text"]))
    labels = source["label"].to_numpy()
    sides = [restore_order(np.flatnonzero(labels == label)) for label in (0, 1)]
    blocks = [cut_blocks(_neighbour_similarity(vectors[side])) for side in sides]
    sums = [_sum_blocks(vectors[side], cut) for side, cut in zip(sides, blocks, strict=True)]
    matched = match_in_order((sums[0] @ sums[1].T).toarray())
    numbers = np.arange(sums[1].shape[0]) + sums[0].shape[0]
    numbers[matched[:, 1]] = matched[:, 0]
    films = np.empty(len(source), int)
    films[sides[0]] = blocks[0]
    films[sides[1]] = numbers[blocks[1]]
    return films


def restore_order(rows: np.ndarray) -> np.ndarray:
    """Return one label's rows of the packaged file in the order of the release, (n,)."""
    return np.concatenate([rows[start : start + RUN][::-1] for start in range(0, len(rows), RUN)])


def cut_blocks(similarity: np.ndarray) -> np.ndarray:
    """Cut a sequence into blocks of at most 30; return each row's block, (n,).

    `similarity` (30, n) holds at [d, j] that of rows j - d and j. The blocks are those with the
    greatest sum, over all pairs within a block, of similarity minus FLOOR.
    """
    n = similarity.shape[1]
    best, length = np.zeros(n + 1), np.ones(n + 1, int)
    scores = np.zeros(LONGEST)  # of blocks of 1, 2, ... rows that end at row j
    for j in range(n):
        gains = np.cumsum(similarity[1:, j] - FLOOR)
        scores[1:] = scores[:-1] + gains
        shortest_first = best[j::-1][:LONGEST]
        totals = shortest_first + scores[: len(shortest_first)]
        length[j + 1] = totals.argmax() + 1
        best[j + 1] = totals.max()
    starts, end = np.zeros(n, int), n
    while end:
        end -= length[end]
        starts[end] = 1
    return np.cumsum(starts) - 1


def match_in_order(similarity: np.ndarray) -> np.ndarray:
    """Match rows with columns, in order and each at most once; return the pairs, (matches, 2).

    They are those with the greatest sum of similarity minus FLOOR.
    """
    gains = np.maximum(similarity - FLOOR, 0)
    best = np.zeros((gains.shape[0] + 1, gains.shape[1] + 1), gains.dtype)
    for row, gain in enumerate(gains):
        best[row + 1, 1:] = np.maximum.accumulate(np.maximum(best[row, 1:], best[row, :-1] + gain))
    pairs, (row, column) = [], gains.shape
    while row and column:
        if best[row, column] == best[row - 1, column]:
            row -= 1
        elif best[row, column] == best[row, column - 1]:
            column -= 1
        else:
            row, column = row - 1, column - 1
            pairs.append((row, column))
    return np.array(pairs, int).reshape(-1, 2)


def _neighbour_similarity(vectors: sparse.csr_array) -> np.ndarray:
    """Return the similarity of rows j - d and j at [d, j], (30, n)."""
    similarity = np.zeros((LONGEST, vectors.shape[0]), np.float32)
    for distance in range(1, min(LONGEST, vectors.shape[0])):
        products = vectors[:-distance].multiply(vectors[distance:])
        similarity[distance, distance:] = products.sum(axis=1)
    return similarity


def _sum_blocks(vectors: sparse.csr_array, blocks: np.ndarray) -> sparse.csr_array:
    """Return the normalised sum of each block's vectors, (blocks, terms)."""
    rows = np.arange(len(blocks))
    members = sparse.csr_array((np.ones(len(blocks), np.float32), (blocks, rows)))
    return sparse.csr_array(normalize(members @ vectors))
