"""Texts to token ids, and rows to batches of similar length."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from sentigeo.errors import UserError

Truncation = Literal["head", "head+tail"]
HEAD_SHARE = 0.25  # of the budget, where the middle of a long text is left out


@dataclass(frozen=True)
class TokenIds:
    """The token ids of n texts, end to end.

    Attributes:
        ids: (t,) token ids, special tokens included.
        starts: (n + 1,) where each text begins; the last is t.
        padding: The id that fills up a batch.
    """

    ids: np.ndarray
    starts: np.ndarray
    padding: int

    @property
    def lengths(self) -> np.ndarray:
        """(n,) tokens of each text."""
        return np.diff(self.starts)

    def __getitem__(self, row: int) -> np.ndarray:
        return self.ids[self.starts[row] : self.starts[row + 1]]


def encode_texts(
    texts: Sequence[str], tokenizer: Any, max_length: int, truncation: Truncation = "head+tail"
) -> TokenIds:
    """Tokenize texts once, each cut to a budget.

    A review's verdict tends to stand at its end, so `head+tail` keeps the first quarter of the
    budget and fills the rest from the end of the text.

    Args:
        texts: n texts.
        tokenizer: A fast tokenizer.
        max_length: Token budget of a text, special tokens included.
        truncation: What to keep of a text beyond its budget.
    """
    if max_length > tokenizer.model_max_length:
        raise UserError(
            f"max_length is {max_length}, but the encoder reads at most "
            f"{tokenizer.model_max_length} tokens."
        )
    before, after = _special_tokens(tokenizer)
    room = max_length - len(before) - len(after)
    encoded = tokenizer(
        list(texts), add_special_tokens=False, truncation=False, padding=False, verbose=False,
        return_attention_mask=False, return_token_type_ids=False,
    )["input_ids"]  # fmt: skip
    head = int(room * HEAD_SHARE) if truncation == "head+tail" else room
    cut = [i if len(i) <= room else i[:head] + i[len(i) - (room - head) :] for i in encoded]
    rows = [before + ids + after for ids in cut]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    flat = np.fromiter((i for row in rows for i in row), np.int32, starts[-1])
    return TokenIds(flat, starts, tokenizer.pad_token_id)


def token_batches(
    rows: np.ndarray,
    lengths: np.ndarray,
    budget: int,
    most: int | None = None,
    rng: np.random.Generator | None = None,
) -> list[np.ndarray]:
    """Group rows of similar length into batches that stay within a token budget.

    Args:
        rows: Rows to batch.
        lengths: (n,) tokens of every row of the corpus.
        budget: Most tokens of a batch, padding included; a longer row is a batch of its own.
        most: Most rows of a batch.
        rng: Mixes rows of equal length and the order of the batches; without it both are fixed.
    """
    rows = np.asarray(rows) if rng is None else rng.permutation(rows)
    rows = rows[np.argsort(lengths[rows], kind="stable")]
    batches, begin = [], 0
    for end in range(1, len(rows) + 1):
        size = end + 1 - begin
        full = end == len(rows) or size * lengths[rows[end]] > budget or (most and size > most)
        if full:
            batches.append(rows[begin:end])
            begin = end
    return batches if rng is None else [batches[i] for i in rng.permutation(len(batches))]


def _special_tokens(tokenizer: Any) -> tuple[list[int], list[int]]:
    """Return the special tokens that this tokenizer puts before and after a text."""
    probe = tokenizer("a", add_special_tokens=False)["input_ids"]
    whole = tokenizer("a")["input_ids"]
    begin = next(i for i in range(len(whole)) if whole[i : i + len(probe)] == probe)
    return whole[:begin], whole[begin + len(probe) :]
