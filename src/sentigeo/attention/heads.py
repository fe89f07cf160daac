"""What the heads of an encoder attend to, what they look up, and how far fine-tuning shifts it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from scipy.spatial.distance import jensenshannon
from scipy.stats import norm

from sentigeo.analysis.opinion_words import REACH, find_negated, find_opinion
from sentigeo.attention.attention import Attention, read_attention, read_versions
from sentigeo.attention.lookups import (
    Lookups,
    LookupTest,
    StratifiedLookups,
    collect_lookups,
    compare_starts,
    compare_targets,
    lookup_at_distance,
    lookup_from_first,
    plain_words,
)
from sentigeo.encoder.encoder import Encoder
from sentigeo.progress import track
from sentigeo.stats import CONFIDENCE, Estimate, bootstrap, list_estimates, mean_over_runs

# Every target of a word belongs to one of these, the first that fits.
TARGETS = ("first token", "separator", "same word", "previous", "next", "punctuation",
           "other words")  # fmt: skip
SINKS = 2  # of these targets, the first, are attention sinks


@dataclass(frozen=True)
class HeadStudy:
    """What the heads of an encoder do in n texts.

    Attributes:
        shares: (n, layers, heads, kinds) attention that words give each kind of target.
        entropy: (n, layers, heads) of words' attention: 0 for one target, 1 if even.
        lookups: `as far apart`: from a negation or a word of contrast to the opinion word after it,
            beside other words as far apart in the same text; `first token`: from the first token to
            an opinion word, beside other words.
        starts: The former, beside those from other words as far before an opinion word.
    """

    shares: np.ndarray
    entropy: np.ndarray
    lookups: dict[str, Lookups]
    starts: StratifiedLookups

    @property
    def negated(self) -> int:
        """Texts in which a negation or a word of contrast can be compared with other words."""
        return len(self.lookups["as far apart"].observed)

    def compare(self, shuffles: int) -> dict[str, LookupTest]:
        """Compare lookups with what could stand in their place, by permutation."""
        return {
            "as far apart": compare_targets(self.lookups["as far apart"], shuffles),
            "other starting words": compare_starts(self.starts, shuffles),
            "first token": compare_targets(self.lookups["first token"], shuffles),
        }


def study_heads(texts: Sequence[str], encoder: Encoder, opinions: Collection[str]) -> HeadStudy:
    """Measure what every head does in n texts; one batch's attention at a time is in memory.

    Opinion words, in lower case, speak for a class.
    """
    reading, rng = read_attention(texts, encoder), np.random.default_rng(0)
    negated, opinion, starts, shares, entropies = [], [], [], [], []
    for _ in track(range(len(texts)), "reading attention"):
        attention = next(reading)
        shares.append(target_shares(attention))
        entropies.append(entropy(attention))
        flip = find_negated(attention.words, opinions)
        target = find_opinion(attention.words, opinions)
        if flip:
            negated.append(lookup_at_distance(attention, *flip))
        if target is not None and attention.special[0]:
            opinion.append(lookup_from_first(attention, target))
        distance = int(rng.integers(1, REACH + 1))  # drawn for every text
        pair = flip or _pair_before(attention, target, distance)
        if pair:
            weights = attention.weights[:, :, pair[0], pair[1]]
            starts.append((weights, pair[1] - pair[0], flip is not None))
    shape = shares[0].shape[:2]
    return HeadStudy(
        np.stack(shares),
        np.stack(entropies),
        {
            "as far apart": collect_lookups(negated, shape),
            "first token": collect_lookups(opinion, shape),
        },
        StratifiedLookups(
            np.array([own for own, _, _ in starts]).reshape(-1, *shape),
            np.array([apart for _, apart, _ in starts]),
            np.array([marked for _, _, marked in starts], bool),
        ),
    )


def _pair_before(attention: Attention, target: int | None, distance: int) -> tuple[int, int] | None:
    """Return the places of the word some distance before an opinion word, and of that word."""
    if target is None or target - distance not in plain_words(attention):
        return None
    return target - distance, target


def target_shares(attention: Attention) -> np.ndarray:
    """Return the (layers, heads, kinds) shares of attention that words give each of `TARGETS`."""
    weights, kinds = attention.weights[:, :, ~attention.special], target_kinds(attention)
    rows = kinds[~attention.special]
    found = [(weights * (rows == kind)).sum(axis=-1).mean(axis=-1) for kind in range(len(TARGETS))]
    return np.stack(found, axis=-1)


def target_kinds(attention: Attention) -> np.ndarray:
    """Return the (v, v) kind of every column as seen from every row, as a place in `TARGETS`."""
    places = np.arange(len(attention.words))
    offset = places - places[:, None]
    rules = [attention.special & (places == 0), attention.special, offset == 0, offset == -1,
             offset == 1, attention.signs]  # fmt: skip
    return np.select(rules, np.arange(len(rules)), len(rules))


def entropy(attention: Attention) -> np.ndarray:
    """Return the (layers, heads) mean entropy of words' attention, as a share of the largest."""
    weights = attention.weights[:, :, ~attention.special].astype(np.float64)
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    found = -(weights * logs).sum(axis=-1).mean(axis=-1)
    return np.asarray(found / np.log(max(2, len(attention.words))))


def find_specialised(shares: np.ndarray, threshold: float) -> np.ndarray:
    """Tell which heads give more than so much of their attention to one kind of target.

    Other words are no kind that a head could specialise in. Intervals hold for all heads and kinds
    at once (Bonferroni). From (n, layers, heads, kinds) to (layers, heads, kinds - 1) truth values.
    """
    kinds = shares[..., :-1]
    z = norm.ppf(1 - (1 - CONFIDENCE) / (2 * kinds[0].size))
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
    """Return the heads with the largest means of (n, layers, heads) values, largest first.

    Returns:
        Columns `layer` and `head` (counted from 1) and `estimate`, written with its sign if asked.
    """
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
    """Return the (layers, heads) mean Jensen-Shannon divergence of all rows, in bits: 0 to 1."""
    both = (np.moveaxis(own.weights.astype(np.float64), -1, 0) for own in (before, after))
    return np.asarray((jensenshannon(*both, base=2, axis=0) ** 2).mean(axis=-1))
