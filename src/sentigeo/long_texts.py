"""Texts beyond an encoder's limit: three ways to read them, and what each is worth."""

from collections.abc import Sequence

import numpy as np

from sentigeo.embed import mean_of_windows
from sentigeo.encoder import Encoder
from sentigeo.extract import extract
from sentigeo.probe import fit_probe
from sentigeo.store import Store
from sentigeo.tokens import encode_texts, window_texts
from sentigeo.vectors import Pooling, Vectors

WAYS = ("beginning", "head and tail", "windows")
Reading = tuple[Pooling, str]


def read_long_texts(
    texts: Sequence[str], encoder: Encoder, poolings: Sequence[Pooling], store: Store
) -> dict[Reading, np.ndarray]:
    """Read texts beyond the encoder's limit in three ways.

    Returns:
        (n, d) vectors of the last layer by pooling and way: of the text's `beginning`, of its `head
        and tail`, and of `windows` over all of it. The beginning is the first window of a text.
    """
    limit, kinds = encoder.max_length, [(encoder.layers, pooling) for pooling in poolings]
    windows, owners = window_texts(texts, encoder.tokenizer, limit, limit // 8)
    ends = encode_texts(texts, encoder.tokenizer, limit, "head+tail")
    in_windows, of_ends = (extract(t, encoder, store, kinds)[0] for t in (windows, ends))
    first = np.flatnonzero(np.diff(owners, prepend=-1))
    found: dict[Reading, np.ndarray] = {}
    for pooling in poolings:
        vectors = in_windows.matrix(-1, pooling)
        found[pooling, "beginning"] = vectors[first]
        found[pooling, "head and tail"] = of_ends.matrix(-1, pooling)
        found[pooling, "windows"] = mean_of_windows(vectors, owners, windows.lengths)
    return found


def pick_long_rows(counts: np.ndarray, rows: np.ndarray, limit: int, most: int) -> np.ndarray:
    """Draw rows whose texts are longer than a limit.

    Args:
        counts: (n,) tokens of every text.
        rows: Rows to draw from.
        limit: Tokens that a text must pass.
        most: How many to draw at most.
    """
    beyond = rows[counts[rows] > limit]
    return np.sort(np.random.default_rng(0).permutation(beyond)[:most])


def score_readings(
    readings: dict[Reading, np.ndarray],
    truth: np.ndarray,
    short: Vectors,
    labels: np.ndarray,
    parts: Sequence[np.ndarray],
) -> dict[Reading, np.ndarray]:
    """Tell which long texts a probe gets right, read in each way.

    The probe knows short texts only, which all ways read alike, so it favours none of them.

    Args:
        readings: (m, d) vectors of the long texts by pooling and way.
        truth: (m,) their classes.
        short: Vectors of all texts as the study reads them.
        labels: (n,) classes of all texts.
        parts: Rows of short texts to train on and to validate on.

    Returns:
        (m,) truth values for each reading.
    """
    train, validation = parts
    hits: dict[Reading, np.ndarray] = {}
    for pooling in dict.fromkeys(pooling for pooling, _ in readings):
        known = short.matrix(-1, pooling)
        probe = fit_probe(known[train], labels[train], known[validation], labels[validation])
        for way in WAYS:
            hits[pooling, way] = probe.predict(readings[pooling, way]) == truth
    return hits
