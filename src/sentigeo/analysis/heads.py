"""What the heads of an encoder attend to, what they look up, and how far fine-tuning shifts it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.spatial.distance import jensenshannon
from scipy.stats import norm

from sentigeo.analysis.attention import Attention, read_attention, read_versions
from sentigeo.analysis.opinion_words import REACH, find_negated, find_opinion
from sentigeo.cores import track
from sentigeo.encoder.encoder import Encoder
from sentigeo.stats import CONFIDENCE, Estimate, bootstrap, list_estimates, mean_over_runs

# Every target of a word belongs to one of these, the first that fits.
TARGETS = ("first token", "separator", "same word", "previous", "next", "punctuation",
           "other words")  # fmt: skip
SINKS = 2  # of these targets, the first, are attention sinks
Pair = tuple[np.ndarray, np.ndarray]  # attention to a word, and to others in its place


@dataclass(frozen=True)
class Lookups:
    """Attention to certain words, and to others that could stand in their place."""

    observed: np.ndarray  # (n, layers, heads)
    others: list[np.ndarray]  # n times (layers, heads, k)

    def differences(self) -> np.ndarray:
        """Return the (n, layers, heads) differences from the mean of the others."""
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
    """The result of a comparison for every head; p-values are corrected for all of them."""

    gain: np.ndarray  # (layers, heads) mean difference of attention; none without texts to compare
    p_values: np.ndarray  # (layers, heads), see `_correct`


@dataclass(frozen=True)
class HeadStudy:
    """What the heads of an encoder do in n texts."""

    shares: np.ndarray  # (n, layers, heads, kinds) attention that words give each kind of target
    entropy: np.ndarray  # (n, layers, heads) of words' attention: 0 for one target, 1 if even
    # `as far apart`: from a negation or a word of contrast to the opinion word after it, beside
    # other words as far apart in the same text; `first token`: from there to an opinion word.
    lookups: dict[str, Lookups]
    starts: StratifiedLookups  # the former, beside those from other words as far before

    def compare(self, shuffles: int) -> dict[str, LookupTest]:
        """Compare lookups with what could stand in their place, by permutation."""
        return {
            "as far apart": compare_targets(self.lookups["as far apart"], shuffles),
            "other starting words": compare_starts(self.starts, shuffles),
            "first token": compare_targets(self.lookups["first token"], shuffles),
        }


def study_heads(texts: Sequence[str], encoder: Encoder, opinions: Collection[str]) -> HeadStudy:
    """Measure what every head does in n texts; opinion words, in lower case, speak for a class."""
    reading, rng = read_attention(texts, encoder), np.random.default_rng(0)
    pairs: dict[str, list[Pair]] = {"as far apart": [], "first token": []}
    shares, entropies, starts = [], [], []
    for _, attention in zip(track(texts, "reading attention"), reading, strict=True):
        shares.append(target_shares(attention))
        entropies.append(entropy(attention))
        flip = find_negated(attention.words, opinions)
        target = find_opinion(attention.words, opinions)
        distance = int(rng.integers(1, REACH + 1))  # drawn for every text
        if flip:
            pairs["as far apart"].append(lookup_at_distance(attention, *flip))
            starts.append((attention.weights[:, :, *flip], flip[1] - flip[0], True))
        elif target is not None and target - distance in attention.plain:
            starts.append((attention.weights[:, :, target - distance, target], distance, False))
        if target is not None and attention.special[0]:
            pairs["first token"].append(lookup_from_first(attention, target))
    shape = shares[0].shape[:2]
    lookups = {name: _collect_lookups(found, shape) for name, found in pairs.items()}
    weights, apart, marked = (np.array([start[place] for start in starts]) for place in range(3))
    lined_up = StratifiedLookups(weights.reshape(-1, *shape), apart, marked.astype(bool))
    return HeadStudy(np.stack(shares), np.stack(entropies), lookups, lined_up)


def target_shares(attention: Attention) -> np.ndarray:
    """Return the (layers, heads, kinds) shares of attention that words give each of `TARGETS`."""
    special, places = attention.special, np.arange(len(attention.words))
    offset = places - places[:, None]  # of every column as seen from every row
    rules = [special & (places == 0), special, offset == 0, offset == -1, offset == 1,
             attention.signs]  # fmt: skip
    rows = np.select(rules, np.arange(len(rules)), len(rules))[~special]
    weights = attention.weights[:, :, ~special]
    found = [(weights * (rows == kind)).sum(axis=-1).mean(axis=-1) for kind in range(len(TARGETS))]
    return np.stack(found, axis=-1)


def entropy(attention: Attention) -> np.ndarray:
    """Return the (layers, heads) mean entropy of words' attention, as a share of the largest."""
    weights = attention.weights[:, :, ~attention.special].astype(np.float64)
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    found = -(weights * logs).sum(axis=-1).mean(axis=-1)
    return np.asarray(found / np.log(max(2, len(attention.words))))


def find_specialised(shares: np.ndarray, threshold: float) -> np.ndarray:
    """Tell which (layers, heads, kinds - 1) heads give one kind more attention than a threshold."""
    kinds = shares[..., :-1]  # other words are no kind to specialise in
    z = norm.ppf(1 - (1 - CONFIDENCE) / (2 * kinds[0].size))  # Bonferroni: all heads and kinds
    margins = z * kinds.std(axis=0, ddof=1) / np.sqrt(len(kinds))
    return np.asarray(kinds.mean(axis=0) - margins > threshold)


def estimate_specialised(shares: np.ndarray, threshold: float, resamples: int) -> Estimate:
    """Estimate the share of specialised heads over texts; see `find_specialised`."""

    def statistic(rows: np.ndarray) -> float:
        return float(find_specialised(shares[rows], threshold).any(axis=-1).mean())

    return bootstrap(statistic, len(shares), resamples)


def rank_heads(
    values: np.ndarray, count: int, resamples: int, *, signed: bool = False
) -> pd.DataFrame:
    """Return the heads, counted from 1, with the largest means of (n, layers, heads) values."""
    means, found = values.mean(axis=0), {}
    for place in np.argsort(-means, axis=None, kind="stable")[:count]:
        layer, head = (int(number) for number in np.unravel_index(place, means.shape))
        mean = mean_over_runs(values[:, layer, head], resamples)
        found[layer + 1, head + 1] = replace(mean, signed=signed)
    return list_estimates(found, "layer", "head")


def measure_divergence(texts: Sequence[str], before: Encoder, after: Encoder) -> np.ndarray:
    """Return the (n, layers, heads) divergences of two encoders' attention in n texts."""
    both = read_versions(texts, {"before": before, "after": after})
    return np.stack([divergence(**versions) for versions in both])


def divergence(before: Attention, after: Attention) -> np.ndarray:
    """Return the mean Jensen-Shannon divergence of all rows in bits, 0 to 1.

    It is (layers, heads), of the layers that both encoders have.
    """
    layers = min(len(before.weights), len(after.weights))
    read = (found.weights[:layers].astype(np.float64) for found in (before, after))
    both = (np.moveaxis(weights, -1, 0) for weights in read)
    return np.asarray((jensenshannon(*both, base=2, axis=0) ** 2).mean(axis=-1))


def _collect_lookups(found: list[Pair], shape: tuple[int, int]) -> Lookups:
    usable = [(observed, others) for observed, others in found if others.shape[-1]]
    observed = np.array([observed for observed, _ in usable]).reshape(-1, *shape)
    return Lookups(observed, [others for _, others in usable])


def lookup_at_distance(attention: Attention, source: int, target: int) -> Pair:
    """Return attention from one word to another, and that of the k pairs of others as far apart."""
    words = attention.plain
    starts = words[np.isin(words + target - source, words) & (words != source)]
    others = attention.weights[:, :, starts, starts + target - source]
    return attention.weights[:, :, source, target], others


def lookup_from_first(attention: Attention, target: int) -> Pair:
    """Return the attention from the first token to a word, and to the other words."""
    words = attention.plain
    return attention.weights[:, :, 0, target], attention.weights[:, :, 0, words[words != target]]


def compare_targets(lookups: Lookups, shuffles: int) -> LookupTest:
    """Test whether heads attend to words more than to any that could stand there, drawn instead."""
    shape = lookups.observed.shape[1:]
    if not len(lookups.observed):
        return LookupTest(np.full(shape, np.nan), np.ones(shape))
    rng, drawn = np.random.default_rng(0), np.zeros((shuffles, *shape))
    for observed, others in zip(lookups.observed, lookups.others, strict=True):
        every = np.concatenate([observed[..., None], others], axis=-1)
        drawn += np.moveaxis(every[:, :, rng.integers(every.shape[-1], size=shuffles)], -1, 0)
    p_values = _correct(lookups.observed.mean(axis=0), drawn / len(lookups.others))
    return LookupTest(lookups.differences().mean(axis=0), p_values)


def compare_starts(lookups: StratifiedLookups, shuffles: int) -> LookupTest:
    """Test whether marked words attend more to words after them than others as far away do."""
    # Marks are shuffled within a distance; those with one sort only are left out.
    strata = [np.flatnonzero(lookups.distances == d) for d in np.unique(lookups.distances)]
    strata = [rows for rows in strata if 0 < lookups.marked[rows].mean() < 1]
    if not strata:
        shape = lookups.weights.shape[1:]
        return LookupTest(np.full(shape, np.nan), np.ones(shape))
    rng, marks = np.random.default_rng(0), [lookups.marked[rows] for rows in strata]
    weights = [lookups.weights[rows] for rows in strata]
    gain = _difference(weights, marks)
    shuffled = [_difference(weights, [rng.permutation(m) for m in marks]) for _ in range(shuffles)]
    return LookupTest(gain, _correct(gain, np.stack(shuffled)))


def _difference(weights: list[np.ndarray], marks: list[np.ndarray]) -> np.ndarray:
    total = np.zeros(weights[0].shape[1:])
    for stratum, marked in zip(weights, marks, strict=True):
        total += marked.sum() * (stratum[marked].mean(axis=0) - stratum[~marked].mean(axis=0))
    return np.asarray(total / sum(marked.sum() for marked in marks))


def _correct(found: np.ndarray, shuffled: np.ndarray) -> np.ndarray:
    # Westfall and Young (1993): a head has to beat the largest standardised one of any head.
    mean, deviation = shuffled.mean(axis=0), np.maximum(shuffled.std(axis=0), 1e-12)
    largest = ((shuffled - mean) / deviation).max(axis=(1, 2))
    reached = (found - mean) / deviation
    return np.asarray((1 + (largest[:, None, None] >= reached).sum(axis=0)) / (1 + len(shuffled)))
