"""Texts to token ids, whole, cut or in windows; and rows to batches of similar length."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from sentigeo.errors import UserError
from sentigeo.text import repair

Truncation = Literal["first", "first+last"]
FIRST_SHARE = 0.25  # of the budget, where the middle of a long text is left out
TOKENIZED_AT_ONCE = 1000  # texts; their ids take much more memory as lists than as an array


@dataclass(frozen=True)
class TokenIds:
    """The token ids of n texts, end to end."""

    ids: np.ndarray  # (t,), special tokens included
    starts: np.ndarray  # (n + 1,) where each text begins; the last is t
    padding: int  # the id that fills up a batch

    @property
    def lengths(self) -> np.ndarray:
        """(n,) tokens of each text."""
        return np.diff(self.starts)

    @cached_property
    def sha256(self) -> str:
        """Hash over all ids and where texts begin."""
        return hashlib.sha256(self.ids.tobytes() + self.starts.tobytes()).hexdigest()

    def __getitem__(self, row: int) -> np.ndarray:
        return self.ids[self.starts[row] : self.starts[row + 1]]


def encode_texts(
    texts: Sequence[str], tokenizer: Any, max_length: int, truncation: Truncation = "first+last"
) -> TokenIds:
    """Tokenise texts, each cut to a budget; see `encode_and_count`."""
    return encode_and_count(texts, tokenizer, max_length, truncation)[0]


def encode_and_count(
    texts: Sequence[str], tokenizer: Any, max_length: int, truncation: Truncation = "first+last"
) -> tuple[TokenIds, np.ndarray]:
    """Tokenise texts, each cut to a budget, and return the (n,) tokens that each has uncut.

    A review's verdict tends to stand at its end, so `first+last` keeps the first quarter of the
    budget, special tokens included, and fills the rest from the end of the text.
    """
    before, after, room = _frame(tokenizer, max_length, "max_length")
    first = int(room * FIRST_SHARE) if truncation == "first+last" else room
    kept, lengths = [], []
    for ids in _tokenize(texts, tokenizer):
        lengths.append(len(before) + len(ids) + len(after))
        cut = ids if len(ids) <= room else ids[:first] + ids[len(ids) - (room - first) :]
        kept.append(np.array(before + cut + after, np.int32))
    return _join(kept, tokenizer), np.array(lengths, dtype=np.int32)


def window_texts(
    texts: Sequence[str], tokenizer: Any, window: int, overlap: int
) -> tuple[TokenIds, np.ndarray]:
    """Tokenise texts, each cut into windows; return all, and the (windows,) text each belongs to.

    A window has its own special tokens and shares `overlap` tokens with the one before.
    """
    before, after, room = _frame(tokenizer, window, "window")
    if not 0 <= overlap < room:
        raise UserError(
            f"The overlap of {overlap} tokens does not fit a window with room for {room}."
        )
    windows, owners = [], []
    for text, ids in enumerate(_tokenize(texts, tokenizer)):
        for start in range(0, max(1, len(ids) - overlap), room - overlap):
            windows.append(np.array(before + ids[start : start + room] + after, np.int32))
            owners.append(text)
    return _join(windows, tokenizer), np.array(owners, dtype=np.int64)


def count_tokens(texts: Sequence[str], tokenizer: Any) -> np.ndarray:
    """Return the (n,) number of tokens of each text, special tokens included, nothing cut."""
    special = tokenizer.num_special_tokens_to_add()
    return np.array([len(ids) + special for ids in _tokenize(texts, tokenizer)], dtype=np.int32)


def tokenize(texts: list[str], encoder: Any) -> tuple[dict[str, Any], list[pd.DataFrame]]:
    """Return a batch of tensors for the encoder, padded on the right, and each text's tokens.

    Their columns are `token`, `begin`, `end` (its place in the text) and `special`.
    """
    batch = encoder.tokenizer(
        texts, padding=True, padding_side="right", truncation=True, max_length=encoder.max_length,
        return_offsets_mapping=True, return_special_tokens_mask=True, return_tensors="pt",
    )  # fmt: skip
    offsets, special = batch.pop("offset_mapping").numpy(), batch.pop("special_tokens_mask").numpy()
    places = []
    for row, width in enumerate(batch["attention_mask"].sum(dim=1).tolist()):
        tokens = encoder.tokenizer.convert_ids_to_tokens(batch["input_ids"][row, :width])
        begin, end = offsets[row, :width].T
        facts = {"token": tokens, "begin": begin, "end": end}
        places.append(pd.DataFrame(facts | {"special": special[row, :width] > 0}))
    return batch, places


def token_batches(
    rows: np.ndarray,
    lengths: np.ndarray,
    budget: int,
    most: int | None = None,  # rows of a batch
    rng: np.random.Generator | None = None,
) -> list[np.ndarray]:
    """Group rows of a corpus, whose (n,) lengths are given, into batches of similar length.

    The budget is the most tokens of a batch, padding included; a longer row is a batch of its own.
    `rng` mixes rows of equal length and the order of the batches; without it both are fixed.
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


def _frame(tokenizer: Any, length: int, name: str) -> tuple[list[int], list[int], int]:
    """Return the special tokens before and after a text, and the room that a length leaves it."""
    if length > tokenizer.model_max_length:
        most = tokenizer.model_max_length
        raise UserError(f"{name} is {length}, but the encoder reads at most {most} tokens.")
    probe = tokenizer("a", add_special_tokens=False)["input_ids"]
    whole = tokenizer("a")["input_ids"]
    begin = next(i for i in range(len(whole)) if whole[i : i + len(probe)] == probe)
    before, after = whole[:begin], whole[begin + len(probe) :]
    room = length - len(before) - len(after)
    if room < 1:
        raise UserError(f"{name} is {length}, which leaves no room between the special tokens.")
    return before, after, room


def _tokenize(texts: Sequence[str], tokenizer: Any) -> Iterator[list[int]]:
    """Yield the token ids of each text, without special tokens, nothing cut."""
    texts = list(texts)
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise UserError(f"Text {number + 1} is not a text but {text!r}.")
    for start in range(0, len(texts), TOKENIZED_AT_ONCE):
        part = [repair(text) for text in texts[start : start + TOKENIZED_AT_ONCE]]
        yield from tokenizer(
            part, add_special_tokens=False, truncation=False, padding=False, verbose=False,
            return_attention_mask=False, return_token_type_ids=False,
        )["input_ids"]  # fmt: skip


def _join(rows: list[np.ndarray], tokenizer: Any) -> TokenIds:
    starts = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    ids = np.concatenate([np.empty(0, np.int32), *rows])
    return TokenIds(ids, starts, tokenizer.pad_token_id)
