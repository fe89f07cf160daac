"""Does a head look at certain words more than at others that could stand in their place?"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sentigeo.attention.attention import Attention


@dataclass(frozen=True)
class Looks:
    """How much heads look at certain words, and at others that could stand in their place.

    Attributes:
        observed: (n, layers, heads) weights.
        others: n times (layers, heads, k).
    """

    observed: np.ndarray
    others: list[np.ndarray]

    def differences(self) -> np.ndarray:
        """Return the (n, layers, heads) differences to the mean of the others."""
        return np.array([own - others.mean(axis=-1) for own, others in self.pairs()])

    def pairs(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield observed weights and those of the others, text by text."""
        return zip(self.observed, self.others, strict=True)


@dataclass(frozen=True)
class Sources:
    """How much words of two sorts look at a word some distance after them, one pair a text.

    Attributes:
        weights: (n, layers, heads).
        distances: (n,) words between the two, and one.
        marked: (n,) true for the sort in question.
    """

    weights: np.ndarray
    distances: np.ndarray
    marked: np.ndarray


@dataclass(frozen=True)
class LookTest:
    """What became of a comparison for every head.

    Attributes:
        gain: (layers, heads) mean difference of attention; none without texts to compare.
        p_values: (layers, heads), corrected for all heads (Westfall and Young, 1993): a head has to
            beat the largest standardised difference of any head when words are exchanged.
    """

    gain: np.ndarray
    p_values: np.ndarray


def look_as_far(attention: Attention, source: int, target: int) -> tuple[np.ndarray, np.ndarray]:
    """Return how much one word looks at another, and how much others do at the same distance.

    Args:
        attention: The attention of a text.
        source: The word that looks.
        target: The word that it looks at.

    Returns:
        (layers, heads) weights, and (layers, heads, k) weights between all other pairs of words
        that stand as far apart, in the same order.
    """
    words = plain_words(attention)
    starts = words[np.isin(words + target - source, words) & (words != source)]
    others = attention.weights[:, :, starts, starts + target - source]
    return attention.weights[:, :, source, target], others


def look_from_first(attention: Attention, target: int) -> tuple[np.ndarray, np.ndarray]:
    """Return how much the first token looks at a word, and how much at the other words."""
    words = plain_words(attention)
    return attention.weights[:, :, 0, target], attention.weights[:, :, 0, words[words != target]]


def plain_words(attention: Attention) -> np.ndarray:
    """Return the places of words, without signs and special tokens."""
    return np.flatnonzero(~attention.signs & ~attention.special)


def compare_words(looks: Looks, shuffles: int) -> LookTest:
    """Test whether heads look at some words more than at others that could stand in their place.

    In every text the word is drawn at random from itself and the others, as if it did not matter.
    """
    if not len(looks.observed):
        return _nothing(looks.observed.shape[1:])
    rng = np.random.default_rng(0)
    drawn = np.zeros((shuffles, *looks.observed.shape[1:]))
    for observed, others in looks.pairs():
        every = np.concatenate([observed[..., None], others], axis=-1)
        drawn += np.moveaxis(every[:, :, rng.integers(every.shape[-1], size=shuffles)], -1, 0)
    p_values = _correct(looks.observed.mean(axis=0), drawn / len(looks.others))
    return LookTest(looks.differences().mean(axis=0), p_values)


def compare_sources(sources: Sources, shuffles: int) -> LookTest:
    """Test whether marked words look more at words after them than others as far away do.

    Marks are shuffled among pairs of the same distance; distances with one sort only are left out.
    """
    usable = [
        rows
        for distance in np.unique(sources.distances)
        if 0 < sources.marked[rows := np.flatnonzero(sources.distances == distance)].mean() < 1
    ]
    if not usable:
        return _nothing(sources.weights.shape[1:])
    rng = np.random.default_rng(0)
    gain = _difference(sources, usable, [sources.marked[rows] for rows in usable])
    shuffled = [
        _difference(sources, usable, [rng.permutation(sources.marked[rows]) for rows in usable])
        for _ in range(shuffles)
    ]
    return LookTest(gain, _correct(gain, np.stack(shuffled)))


def _difference(sources: Sources, strata: list[np.ndarray], marks: list[np.ndarray]) -> np.ndarray:
    """Return the (layers, heads) difference of marked and other pairs, mean over marked ones."""
    total = np.zeros(sources.weights.shape[1:])
    for rows, marked in zip(strata, marks, strict=True):
        own = sources.weights[rows]
        total += marked.sum() * (own[marked].mean(axis=0) - own[~marked].mean(axis=0))
    return np.asarray(total / sum(marked.sum() for marked in marks))


def _correct(found: np.ndarray, shuffled: np.ndarray) -> np.ndarray:
    """Return the (layers, heads) p-values of a statistic against (shuffles, layers, heads)."""
    mean, deviation = shuffled.mean(axis=0), np.maximum(shuffled.std(axis=0), 1e-12)
    largest = ((shuffled - mean) / deviation).max(axis=(1, 2))
    reached = (found - mean) / deviation
    return np.asarray((1 + (largest[:, None, None] >= reached).sum(axis=0)) / (1 + len(shuffled)))


def _nothing(shape: tuple[int, ...]) -> LookTest:
    return LookTest(np.full(shape, np.nan), np.ones(shape))
