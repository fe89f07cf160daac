"""Does a head attend to certain words more than to others that could stand in their place?"""

from dataclasses import dataclass

import numpy as np

from sentigeo.attention.attention import Attention

Pair = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Lookups:
    """Attention to certain words, and to others that could stand in their place."""

    observed: np.ndarray  # (n, layers, heads)
    others: list[np.ndarray]  # n times (layers, heads, k)

    def differences(self) -> np.ndarray:
        """Return the (n, layers, heads) differences to the mean of the others."""
        both = zip(self.observed, self.others, strict=True)
        return np.array([observed - others.mean(axis=-1) for observed, others in both])


@dataclass(frozen=True)
class StratifiedLookups:
    """Attention from words of two sorts to a word some distance after them, one pair per text."""

    weights: np.ndarray  # (n, layers, heads)
    distances: np.ndarray  # (n,) words between the two, and one
    marked: np.ndarray  # (n,) true for the sort in question


@dataclass(frozen=True)
class LookupTest:
    """What became of a comparison for every head.

    Attributes:
        gain: (layers, heads) mean difference of attention; none without texts to compare.
        p_values: (layers, heads), corrected for all heads (Westfall and Young, 1993): a head has to
            beat the largest standardised difference of any head when words are exchanged.
    """

    gain: np.ndarray
    p_values: np.ndarray


def collect_lookups(found: list[Pair], shape: tuple[int, int]) -> Lookups:
    """Join (layers, heads) lookups and their others; those without others are left out."""
    usable = [(observed, others) for observed, others in found if others.shape[-1]]
    observed = np.array([own for own, _ in usable]).reshape(-1, *shape)
    return Lookups(observed, [others for _, others in usable])


def lookup_at_distance(attention: Attention, source: int, target: int) -> Pair:
    """Return the (layers, heads) attention from one word to another, and that of other pairs.

    The (layers, heads, k) others are all pairs of words as far apart, in the same order.
    """
    words = plain_words(attention)
    starts = words[np.isin(words + target - source, words) & (words != source)]
    others = attention.weights[:, :, starts, starts + target - source]
    return attention.weights[:, :, source, target], others


def lookup_from_first(attention: Attention, target: int) -> Pair:
    """Return the attention from the first token to a word, and to the other words."""
    words = plain_words(attention)
    return attention.weights[:, :, 0, target], attention.weights[:, :, 0, words[words != target]]


def plain_words(attention: Attention) -> np.ndarray:
    """Return the places of words, without signs and special tokens."""
    return np.flatnonzero(~attention.signs & ~attention.special)


def compare_targets(lookups: Lookups, shuffles: int) -> LookupTest:
    """Test whether heads attend to some words more than to others that could stand there.

    In every text the word is drawn at random from itself and the others, as if it did not matter.
    """
    if not len(lookups.observed):
        return _nothing(lookups.observed.shape[1:])
    rng = np.random.default_rng(0)
    drawn = np.zeros((shuffles, *lookups.observed.shape[1:]))
    for observed, others in zip(lookups.observed, lookups.others, strict=True):
        every = np.concatenate([observed[..., None], others], axis=-1)
        drawn += np.moveaxis(every[:, :, rng.integers(every.shape[-1], size=shuffles)], -1, 0)
    p_values = _correct(lookups.observed.mean(axis=0), drawn / len(lookups.others))
    return LookupTest(lookups.differences().mean(axis=0), p_values)


def compare_starts(lookups: StratifiedLookups, shuffles: int) -> LookupTest:
    """Test whether marked words attend more to words after them than others as far away do.

    Marks are shuffled among pairs of the same distance; distances with one sort only are left out.
    """
    strata = [np.flatnonzero(lookups.distances == d) for d in np.unique(lookups.distances)]
    strata = [rows for rows in strata if 0 < lookups.marked[rows].mean() < 1]
    if not strata:
        return _nothing(lookups.weights.shape[1:])
    rng, marks = np.random.default_rng(0), [lookups.marked[rows] for rows in strata]
    weights = [lookups.weights[rows] for rows in strata]
    gain = _difference(weights, marks)
    shuffled = [_difference(weights, [rng.permutation(m) for m in marks]) for _ in range(shuffles)]
    return LookupTest(gain, _correct(gain, np.stack(shuffled)))


def _difference(weights: list[np.ndarray], marks: list[np.ndarray]) -> np.ndarray:
    """Return the (layers, heads) difference of marked and other pairs, mean over marked ones."""
    total = np.zeros(weights[0].shape[1:])
    for stratum, marked in zip(weights, marks, strict=True):
        total += marked.sum() * (stratum[marked].mean(axis=0) - stratum[~marked].mean(axis=0))
    return np.asarray(total / sum(marked.sum() for marked in marks))


def _correct(found: np.ndarray, shuffled: np.ndarray) -> np.ndarray:
    """Return the (layers, heads) p-values of a statistic against (shuffles, layers, heads)."""
    mean, deviation = shuffled.mean(axis=0), np.maximum(shuffled.std(axis=0), 1e-12)
    largest = ((shuffled - mean) / deviation).max(axis=(1, 2))
    reached = (found - mean) / deviation
    return np.asarray((1 + (largest[:, None, None] >= reached).sum(axis=0)) / (1 + len(shuffled)))


def _nothing(shape: tuple[int, ...]) -> LookupTest:
    return LookupTest(np.full(shape, np.nan), np.ones(shape))
