"""Attention: the weights of every head, read from an encoder and merged to words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from sentigeo.encoder.encoder import Encoder
from sentigeo.encoder.tokens import count_tokens
from sentigeo.errors import UserError
from sentigeo.text import find_words

CELLS = 100_000  # tokens squared, all texts of a batch together
_PARTS = {
    "layer norm": ("norm",),
    "embeddings": ("embedding",),
    "attention": ("attention", "attn"),
    "pooler": ("pooler",),
}


@dataclass(frozen=True)
class Words:
    """How tokens of a text make up words.

    Attributes:
        words: v words and signs, special tokens included.
        special: (v,) true for special tokens.
        spans: (v, 2) where each begins and ends in the text.
        groups: (w,) word of each token.
    """

    words: list[str]
    special: np.ndarray
    spans: np.ndarray
    groups: np.ndarray


@dataclass(frozen=True)
class Attention:
    """What every head looks at in one text.

    Attributes:
        words: v words and signs, special tokens included.
        special: (v,) true for special tokens.
        weights: (layers, heads, v, v), how much each row looks at each column; rows sum to 1.
    """

    words: list[str]
    special: np.ndarray
    weights: np.ndarray

    @property
    def signs(self) -> np.ndarray:
        """(v,) true where there is neither a letter nor a digit."""
        return np.array([not any(letter.isalnum() for letter in word) for word in self.words])


def read_attention(texts: Sequence[str], encoder: Encoder) -> Iterator[Attention]:
    """Yield the attention of texts one by one, word pieces merged to words.

    Texts beyond what the encoder reads are cut.
    """
    for rows in _batches(count_tokens(texts, encoder.tokenizer).clip(max=encoder.max_length)):
        chosen = [texts[row] for row in rows]
        batch, places = tokenize(chosen, encoder)
        with torch.inference_mode():
            layers = run_openly(encoder, batch).attentions
        for number, text in enumerate(chosen):
            own = group_words(text, places[number])
            width = len(own.groups)
            weights = np.stack([layer[number, :, :width, :width].numpy() for layer in layers])
            yield Attention(own.words, own.special, merge_pieces(weights, own.groups))


def read_versions(
    texts: Sequence[str], encoders: dict[str, Encoder]
) -> Iterator[dict[str, Attention]]:
    """Yield the attention of texts one by one, by name of the encoder."""
    for found in zip(*(read_attention(texts, own) for own in encoders.values()), strict=True):
        yield dict(zip(encoders, found, strict=True))


def tokenize(texts: list[str], encoder: Encoder) -> tuple[dict[str, Tensor], list[pd.DataFrame]]:
    """Cut texts into tokens.

    Returns:
        A batch for the encoder, padded on the right; and of each text, without padding, columns
        `token`, `begin`, `end` (its place in the text) and `special`.
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


def run_openly(encoder: Encoder, batch: dict[str, Tensor]) -> Any:
    """Run an encoder so that it returns its hidden states and, by layer, (b, heads, w, w) weights.

    Raises:
        UserError: The encoder returns no such weights.
    """
    usual = encoder.model.config._attn_implementation
    encoder.model.set_attn_implementation("eager")  # the fused product returns no weights
    try:
        found = encoder.model(**batch, output_attentions=True, output_hidden_states=True)
    finally:
        encoder.model.set_attn_implementation(usual)
    width = batch["input_ids"].shape[1]
    for weights in found.attentions or [None]:
        if weights is None or tuple(weights.shape[-2:]) != (width, width):
            raise UserError(f"The encoder '{encoder.name}' returns no attention of every token.")
    return found


def recompute_weights(layer: Any, hidden: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Compute scaled dot-product attention from a BERT layer's own projections, step by step.

    Args:
        layer: A `BertLayer` or one of the same build.
        hidden: (b, w, d) input of the layer.
        mask: (b, w) 1 where there is a token.

    Returns:
        (b, heads, w, w) weights softmax(QK' / sqrt(size of a head)), and the (b, w, d) values that
        they mix, heads side by side.
    """
    own = layer.attention.self
    heads = own.num_attention_heads
    query, key, value = (
        part(hidden).unflatten(-1, (heads, -1)).transpose(1, 2)
        for part in (own.query, own.key, own.value)
    )
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    weights = scores.masked_fill(mask[:, None, None] == 0, float("-inf")).softmax(dim=-1)
    return weights, (weights @ value).transpose(1, 2).flatten(2)


def group_words(text: str, places: pd.DataFrame) -> Words:
    """Tell which tokens of a text belong to which word; special tokens are words of their own.

    Args:
        text: The text.
        places: Columns `token`, `begin`, `end`, `special`; a row a token.
    """
    begin, end, special = (places[name].to_numpy() for name in ("begin", "end", "special"))
    ends = np.array([last for _, last in find_words(text)], dtype=int)
    owner = np.searchsorted(ends, begin, side="right")  # the first word that ends after it began
    fresh = np.r_[True, (owner[1:] != owner[:-1]) | special[1:] | special[:-1]]
    first = np.flatnonzero(fresh)
    last = np.r_[first[1:], len(places)] - 1
    spans = np.stack([begin[first], end[last]], axis=1)
    words = [
        token if alone or a >= b else text[a:b].strip()
        for token, alone, (a, b) in zip(places["token"][first], special[first], spans, strict=True)
    ]
    return Words(words, special[first], spans, np.cumsum(fresh) - 1)


def merge_pieces(weights: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Merge word pieces: a word is looked at as much as its pieces together, and looks as they do.

    Args:
        weights: (..., w, w).
        groups: (w,) word of each piece.

    Returns:
        (..., v, v) weights between words; rows sum to what they summed to.
    """
    member = (groups == np.arange(groups.max() + 1)[:, None]).astype(weights.dtype)
    return np.asarray((member / member.sum(axis=1, keepdims=True)) @ weights @ member.T)


def rollout(weights: np.ndarray) -> np.ndarray:
    """Follow attention through all layers (Abnar and Zuidema, 2020).

    Heads are averaged, and half of every token is itself, which is the residual connection.

    Args:
        weights: (layers, heads, w, w).

    Returns:
        (w, w) how much of each token of the input is in each token of the last layer.
    """
    mixed = 0.5 * weights.mean(axis=1) + 0.5 * np.eye(weights.shape[-1])
    found = np.eye(weights.shape[-1])
    for layer in mixed:
        found = layer @ found
    return found


def _batches(lengths: np.ndarray) -> Iterator[list[int]]:
    """Yield rows in order, so many together that their weights stay small."""
    start = 0
    for stop in range(1, len(lengths) + 1):
        following = lengths[start : stop + 1]  # with one text more
        if stop == len(lengths) or len(following) * int(following.max()) ** 2 > CELLS:
            yield list(range(start, stop))
            start = stop


def list_tokens(text: str, encoder: Encoder) -> pd.DataFrame:
    """List the tokens of a text as the encoder reads it, special tokens included.

    Returns:
        Columns `position`, `token`, `id`, `kind` (`special`, `word`, or `piece`: it continues the
        word before).
    """
    encoded = encoder.tokenizer(text, truncation=True, return_special_tokens_mask=True)
    words = encoded.word_ids()
    rows = []
    for place, number in enumerate(encoded["input_ids"]):
        goes_on = place > 0 and words[place] is not None and words[place] == words[place - 1]
        special = encoded["special_tokens_mask"][place]
        kind = "special" if special else "piece" if goes_on else "word"
        token = encoder.tokenizer.convert_ids_to_tokens(number)
        rows.append({"position": place, "token": token, "id": number, "kind": kind})
    return pd.DataFrame(rows)


def state_shapes(text: str, encoder: Encoder) -> list[tuple[int, ...]]:
    """Return the shape of every hidden state, (1, tokens, width), that the encoder returns."""
    batch = encoder.tokenizer(text, truncation=True, return_tensors="pt")
    with torch.inference_mode():
        found = encoder.model(**batch, output_hidden_states=True)
    return [tuple(states.shape) for states in found.hidden_states]


def count_parameters(encoder: Encoder) -> pd.DataFrame:
    """Count an encoder's weights by what they are for, told from their names.

    Returns:
        Columns `part`, `weights`, `share`; largest first.
    """
    counts: dict[str, int] = {}
    for name, weight in encoder.model.named_parameters():
        part = next((part for part, words in _PARTS.items() if _has(name, words)), "feed-forward")
        counts[part] = counts.get(part, 0) + weight.numel()
    found = pd.DataFrame({"part": list(counts), "weights": list(counts.values())})
    found["share"] = found["weights"] / found["weights"].sum()
    return found.sort_values("weights", ascending=False, ignore_index=True)


def _has(name: str, words: tuple[str, ...]) -> bool:
    return any(word in name.lower() for word in words)
