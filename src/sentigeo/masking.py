"""Masked tokens: some of a text's tokens are hidden, and an encoder has to guess them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sentigeo.tokens import TokenIds
from sentigeo.trunk import Trunk

SHARE = 0.15  # of a text's tokens that are to be guessed
HIDDEN, RANDOM = 0.8, 0.1  # of these, replaced by the mask and by any token; the rest stays
NO_ANSWER = -100  # what a loss leaves out


@dataclass(frozen=True)
class MaskedTexts:
    """Texts with tokens to be guessed.

    Attributes:
        source: Token ids of n texts, some replaced; or what a trunk makes of them.
        starts: (n + 1,) where each text's places begin; the last is m.
        places: (m,) where in its text each token to be guessed stands, text by text.
        answers: (m,) what stood there, as a number among the words.
        words: (v,) token ids that the texts hold, in ascending order.
    """

    source: TokenIds | Trunk
    starts: np.ndarray
    places: np.ndarray
    answers: np.ndarray
    words: np.ndarray

    def count(self, rows: np.ndarray) -> int:
        """Return how many tokens of some texts are to be guessed."""
        return int((self.starts[rows + 1] - self.starts[rows]).sum())

    def ask(self, rows: np.ndarray, width: int) -> tuple[Tensor, Tensor]:
        """Return a (b, width) mask that is true at tokens to be guessed, and their (m,) answers.

        If no text has anything to guess, a token is asked for whose answer does not count.
        """
        chosen = torch.zeros(len(rows), width, dtype=torch.bool)
        if not self.count(rows):
            chosen[0, 0] = True
            return chosen, torch.tensor([NO_ANSWER])
        parts = [slice(self.starts[row], self.starts[row + 1]) for row in rows]
        for position, part in enumerate(parts):
            chosen[position, self.places[part]] = True
        return chosen, torch.from_numpy(np.concatenate([self.answers[part] for part in parts]))


def mask_tokens(tokens: TokenIds, tokenizer: Any, seed: int) -> MaskedTexts:
    """Choose tokens to be guessed; special tokens are never among them.

    Every token has the same chance, so a short text may have none to guess.

    Args:
        tokens: Token ids of n texts.
        tokenizer: Knows its mask, its special tokens and how many tokens there are.
        seed: Random seed.
    """
    rng = np.random.default_rng(seed)
    plain = ~np.isin(tokens.ids, tokenizer.all_special_ids)
    chosen = np.flatnonzero(plain & (rng.random(len(tokens.ids)) < SHARE))
    fate, ids = rng.random(len(chosen)), tokens.ids.copy()
    ids[chosen[fate < HIDDEN]] = tokenizer.mask_token_id
    other = chosen[(fate >= HIDDEN) & (fate < HIDDEN + RANDOM)]
    ids[other] = rng.integers(len(tokenizer), size=len(other))
    starts = np.searchsorted(chosen, tokens.starts)
    begins = np.repeat(tokens.starts[:-1], np.diff(starts))
    words, numbers = np.unique(tokens.ids, return_inverse=True)
    return MaskedTexts(
        source=TokenIds(ids, tokens.starts, tokens.padding),
        starts=starts,
        places=chosen - begins,
        answers=numbers[chosen].astype(np.int64),
        words=words,
    )
