"""What the heads of an encoder do: their habits, what they look up, and how far they moved."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.spatial.distance import jensenshannon
from scipy.stats import norm

from sentigeo.analysis.opinion_words import REACH, find_negated, find_opinion
from sentigeo.attention.attention import Attention, read_attention, read_versions
from sentigeo.attention.lookups import (
    Looks,
    LookTest,
    Sources,
    compare_sources,
    compare_words,
    look_as_far,
    look_from_first,
    plain_words,
)
from sentigeo.encoder.encoder import Encoder
from sentigeo.progress import track
from sentigeo.stats import CONFIDENCE, Estimate, bootstrap, mean_over_runs

# Every target of a word belongs to one of these, the first that fits.
TARGETS = (
    "first token",
    "separator",
    "same word",
    "previous",
    "next",
    "punctuation",
    "other words",
)


@dataclass(frozen=True)
class HeadStudy:
    """What the heads of an encoder do in n texts.

    Attributes:
        shares: (n, layers, heads, kinds) attention that words give each kind of target.
        spread: (n, layers, heads) entropy of words' attention, 0 to 1.
        turning: Looks from a negation or a word of contrast at the opinion word that it turns,
            beside those between other words as far apart in the same text.
        sources: The same looks, beside those from other words as far before an opinion word.
        opinion: Looks from the first token at an opinion word, beside those at other words.
    """

    shares: np.ndarray
    spread: np.ndarray
    turning: Looks
    sources: Sources
    opinion: Looks


def study_heads(texts: Sequence[str], encoder: Encoder, opinions: Collection[str]) -> HeadStudy:
    """Measure what every head does; the attention of one batch at a time is in memory.

    Args:
        texts: n texts.
        encoder: The encoder.
        opinions: Words that speak for a class, in lower case.
    """
    reading, rng = read_attention(texts, encoder), np.random.default_rng(0)
    turning, opinion, pairs, shares, spreads = [], [], [], [], []
    for _ in track(range(len(texts)), "reading attention"):
        attention = next(reading)
        shares.append(target_shares(attention))
        spreads.append(spread(attention))
        flip = find_negated(attention.words, opinions)
        target = find_opinion(attention.words, opinions)
        if flip:
            turning.append(look_as_far(attention, *flip))
        if target is not None and attention.special[0]:
            opinion.append(look_from_first(attention, target))
        pairs += _source_of(attention, flip, target, int(rng.integers(1, REACH + 1)))
    shape = shares[0].shape[:2]
    return HeadStudy(
        np.stack(shares),
        np.stack(spreads),
        _collect(turning, shape),
        Sources(
            _stack([weights for weights, _, _ in pairs], shape),
            np.array([distance for _, distance, _ in pairs]),
            np.array([marked for _, _, marked in pairs], bool),
        ),
        _collect(opinion, shape),
    )


def compare_looks(study: HeadStudy, shuffles: int) -> dict[str, LookTest]:
    """Make every comparison of a study.

    Returns:
        `as far apart`: from words that turn an opinion round to it, against words as far apart;
        `other starting words`: against other words before opinion words; `first token`: from it to
        opinion words, against other words.
    """
    return {
        "as far apart": compare_words(study.turning, shuffles),
        "other starting words": compare_sources(study.sources, shuffles),
        "first token": compare_words(study.opinion, shuffles),
    }


def measure_moves(texts: Sequence[str], before: Encoder, after: Encoder) -> np.ndarray:
    """Return the (n, layers, heads) divergences of two encoders' attention in n texts."""
    both = read_versions(texts, {"before": before, "after": after})
    return np.stack([divergence(**versions) for versions in both])


def rank_heads(values: np.ndarray, count: int, resamples: int) -> pd.DataFrame:
    """Return the heads with the largest means of (n, layers, heads) values, largest first.

    Returns:
        Columns `layer` and `head` (counted from 1), `value`, `low`, `high`, `n`.
    """
    means = values.mean(axis=0)
    rows = []
    for place in np.argsort(-means, axis=None, kind="stable")[:count]:
        layer, head = np.unravel_index(place, means.shape)
        found = mean_over_runs(values[:, layer, head][None], resamples)
        rows.append({"layer": layer + 1, "head": head + 1, **vars(found)})
    return pd.DataFrame(rows)


def find_habits(shares: np.ndarray, threshold: float) -> np.ndarray:
    """Tell which heads give more than so much of their attention to one kind of target.

    Other words are no kind that a head could be in the habit of. Intervals hold for all heads and
    kinds at once (Bonferroni).

    Args:
        shares: (n, layers, heads, kinds).
        threshold: The share of attention.

    Returns:
        (layers, heads, kinds - 1) truth values.
    """
    own = shares[..., :-1]
    z = norm.ppf(1 - (1 - CONFIDENCE) / (2 * own[0].size))
    margins = z * own.std(axis=0, ddof=1) / np.sqrt(len(own))
    return np.asarray(own.mean(axis=0) - margins > threshold)


def estimate_habits(shares: np.ndarray, threshold: float, resamples: int) -> Estimate:
    """Estimate the share of heads with a habit, with an interval over texts; see `find_habits`."""

    def statistic(rows: np.ndarray) -> float:
        return float(find_habits(shares[rows], threshold).any(axis=-1).mean())

    return bootstrap(statistic, len(shares), resamples)


def target_kinds(attention: Attention) -> np.ndarray:
    """Return the (w, w) kind of every column as seen from every row, as a place in `TARGETS`."""
    places = np.arange(len(attention.words))
    offset = places - places[:, None]
    rules = [
        np.broadcast_to(attention.special & (places == 0), offset.shape),
        np.broadcast_to(attention.special, offset.shape),
        offset == 0,
        offset == -1,
        offset == 1,
        np.broadcast_to(attention.signs, offset.shape),
    ]
    return np.select(rules, np.arange(len(rules)), len(rules))


def target_shares(attention: Attention) -> np.ndarray:
    """Return the (layers, heads, kinds) shares of attention that words give each kind of target.

    Special tokens look at others too, but are not asked.
    """
    weights, kinds = attention.weights[:, :, ~attention.special], target_kinds(attention)
    rows = kinds[~attention.special]
    found = [(weights * (rows == kind)).sum(axis=-1).mean(axis=-1) for kind in range(len(TARGETS))]
    return np.stack(found, axis=-1)


def spread(attention: Attention) -> np.ndarray:
    """Return the (layers, heads) mean entropy of words' attention: 0 for one target, 1 if even."""
    weights = attention.weights[:, :, ~attention.special].astype(np.float64)
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0)
    entropy = -(weights * logs).sum(axis=-1).mean(axis=-1)
    return np.asarray(entropy / np.log(max(2, len(attention.words))))


def divergence(before: Attention, after: Attention) -> np.ndarray:
    """Return the (layers, heads) mean Jensen-Shannon divergence of all rows, in bits: 0 to 1."""
    both = (np.moveaxis(own.weights.astype(np.float64), -1, 0) for own in (before, after))
    return np.asarray((jensenshannon(*both, base=2, axis=0) ** 2).mean(axis=-1))


def _source_of(
    attention: Attention, flip: tuple[int, int] | None, target: int | None, distance: int
) -> list[tuple[np.ndarray, int, bool]]:
    """Return how much a word looks at an opinion word after it, how far that is, and if it turns.

    Without a word that turns it round, the word that stands some distance before it is taken.
    """
    if flip:
        source, target = flip
    elif target is not None and target - distance in plain_words(attention):
        source = target - distance
    else:
        return []
    return [(attention.weights[:, :, source, target], target - source, flip is not None)]


def _collect(found: list[tuple[np.ndarray, np.ndarray]], shape: tuple[int, int]) -> Looks:
    """Join looks of (layers, heads); those with nothing to compare with are left out."""
    usable = [(observed, others) for observed, others in found if others.shape[-1]]
    return Looks(_stack([own for own, _ in usable], shape), [others for _, others in usable])


def _stack(weights: Sequence[np.ndarray], shape: tuple[int, int]) -> np.ndarray:
    """Join n times (layers, heads) weights, also if there are none."""
    return np.array(weights).reshape(-1, *shape)
