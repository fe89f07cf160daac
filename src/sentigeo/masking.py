"""Masked tokens: some of a text's tokens are hidden, and an encoder has to guess them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from sentigeo.tokens import TokenIds

SHARE = 0.15  # of a text's tokens that are to be guessed
HIDDEN, RANDOM = 0.8, 0.1  # of these, replaced by the mask and by any token; the rest stays


@dataclass(frozen=True)
class Masked:
    """Texts with tokens to be guessed.

    Attributes:
        tokens: Token ids of n texts, some replaced.
        places: (m,) where the tokens to be guessed stand among all ids.
        answers: (m,) what stood there.
    """

    tokens: TokenIds
    places: np.ndarray
    answers: np.ndarray


def mask_tokens(tokens: TokenIds, tokenizer: Any, seed: int) -> Masked:
    """Choose tokens to be guessed; special tokens are never among them.

    Every token has the same chance, so a short text may have none to guess.

    Args:
        tokens: Token ids of n texts.
        tokenizer: Knows its mask, its special tokens and how many tokens there are.
        seed: Random seed.
    """
    rng = np.random.default_rng(seed)
    plain = ~np.isin(tokens.ids, tokenizer.all_special_ids)
    places = np.flatnonzero(plain & (rng.random(len(tokens.ids)) < SHARE))
    fate, ids = rng.random(len(places)), tokens.ids.copy()
    ids[places[fate < HIDDEN]] = tokenizer.mask_token_id
    other = places[(fate >= HIDDEN) & (fate < HIDDEN + RANDOM)]
    ids[other] = rng.integers(len(tokenizer), size=len(other))
    return Masked(TokenIds(ids, tokens.starts, tokens.padding), places, tokens.ids[places])
