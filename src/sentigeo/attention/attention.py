"""Attention: the weights of every head, read from an encoder and merged to words."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from sentigeo.encoder.encoder import Encoder
from sentigeo.encoder.tokens import count_tokens, tokenize
from sentigeo.errors import UserError
from sentigeo.text import find_words

CELLS = 100_000  # tokens squared, all texts of a batch together
_PARTS = {"norm": "layer norm", "embedding": "embeddings", "attention": "attention",
          "attn": "attention", "pooler": "pooler"}  # fmt: skip


@dataclass(frozen=True)
class Words:
    """How the w tokens of a text make up its v words and signs, special tokens included."""

    words: list[str]
    special: np.ndarray  # (v,) true for special tokens
    spans: np.ndarray  # (v, 2) where each begins and ends in the text
    groups: np.ndarray  # (w,) word of each token


@dataclass(frozen=True)
class Attention:
    """What every head attends to in one text of v words and signs, special tokens included."""

    words: list[str]
    special: np.ndarray  # (v,) true for special tokens
    weights: np.ndarray  # (layers, heads, v, v) of each row to each column; rows sum to 1

    @property
    def signs(self) -> np.ndarray:
        """(v,) true where there is neither a letter nor a digit."""
        return np.array([not any(letter.isalnum() for letter in word) for word in self.words])


def read_attention(texts: Sequence[str], encoder: Encoder) -> Iterator[Attention]:
    """Yield the attention of texts one by one, word pieces merged to words; long texts are cut."""
    for rows in _batches(count_tokens(texts, encoder.tokenizer).clip(max=encoder.max_length)):
        chosen = [texts[row] for row in rows]
        batch, places = tokenize(chosen, encoder)
        with torch.inference_mode():
            layers = run_with_attention(encoder, batch).attentions
        for number, text in enumerate(chosen):
            found = group_words(text, places[number])
            width = len(found.groups)
            weights = np.stack([layer[number, :, :width, :width].numpy() for layer in layers])
            yield Attention(found.words, found.special, merge_pieces(weights, found.groups))


def read_versions(
    texts: Sequence[str], encoders: dict[str, Encoder]
) -> Iterator[dict[str, Attention]]:
    """Yield the attention of texts one by one, by name of the encoder."""
    readers = (read_attention(texts, encoder) for encoder in encoders.values())
    for found in zip(*readers, strict=True):
        yield dict(zip(encoders, found, strict=True))


def _batches(lengths: np.ndarray) -> Iterator[list[int]]:
    start = 0  # in order, so many together that their weights stay small
    for stop in range(1, len(lengths) + 1):
        following = lengths[start : stop + 1]  # with one text more
        if stop == len(lengths) or len(following) * int(following.max()) ** 2 > CELLS:
            yield list(range(start, stop))
            start = stop


def run_with_attention(encoder: Encoder, batch: dict[str, Tensor]) -> Any:
    """Run an encoder so that it returns hidden states and, by layer, (b, heads, w, w) weights."""
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
    """Compute scaled dot-product attention from a `BertLayer`'s own projections, step by step.

    From (b, w, d) states and a (b, w) mask to (b, heads, w, w) weights softmax(QK' / sqrt(size of a
    head)), and the (b, w, d) values that they mix, heads side by side.
    """
    module = layer.attention.self
    query, key, value = (
        part(hidden).unflatten(-1, (module.num_attention_heads, -1)).transpose(1, 2)
        for part in (module.query, module.key, module.value)
    )
    scores = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    weights = scores.masked_fill(mask[:, None, None] == 0, float("-inf")).softmax(dim=-1)
    return weights, (weights @ value).transpose(1, 2).flatten(2)


def group_words(text: str, places: pd.DataFrame) -> Words:
    """Tell which tokens, as `tokenize` lists them, belong to which word; special ones to none."""
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
    """Merge (..., w, w) weights of word pieces to (..., v, v) of words, given each piece's word.

    Attention to a word is the sum, attention from it the mean of its pieces; rows keep their sums.
    """
    member = (groups == np.arange(groups.max() + 1)[:, None]).astype(weights.dtype)
    return np.asarray((member / member.sum(axis=1, keepdims=True)) @ weights @ member.T)


def rollout(weights: np.ndarray) -> np.ndarray:
    """Follow (layers, heads, w, w) attention through all layers (Abnar and Zuidema, 2020).

    Heads are averaged, and half of every token is itself, which is the residual connection. Returns
    (w, w): how much of each token of the input is in each token of the last layer.
    """
    found = np.eye(weights.shape[-1])
    for layer in 0.5 * weights.mean(axis=1) + 0.5 * np.eye(weights.shape[-1]):
        found = layer @ found
    return found


def list_tokens(text: str, encoder: Encoder) -> pd.DataFrame:
    """List a text's tokens as the encoder reads them; a `piece` continues the word before."""
    encoded = encoder.tokenizer(text, truncation=True, return_special_tokens_mask=True)
    ids, words = encoded["input_ids"], pd.Series(encoded.word_ids(), dtype=float)
    special = np.array(encoded["special_tokens_mask"]) > 0
    kind = np.select([special, words == words.shift()], ["special", "piece"], "word")
    tokens = encoder.tokenizer.convert_ids_to_tokens(ids)
    return pd.DataFrame({"position": range(len(ids)), "token": tokens, "id": ids, "kind": kind})


def state_shapes(text: str, encoder: Encoder) -> list[tuple[int, ...]]:
    """Return the shape of every hidden state, (1, tokens, width), that the encoder returns."""
    batch = encoder.tokenizer(text, truncation=True, return_tensors="pt")
    with torch.inference_mode():
        found = encoder.model(**batch, output_hidden_states=True)
    return [tuple(states.shape) for states in found.hidden_states]


def count_parameters(encoder: Encoder) -> pd.DataFrame:
    """Count weights by what they are for, told from their names; largest part first."""
    counts: Counter[str] = Counter()
    for name, weight in encoder.model.named_parameters():
        parts = (part for word, part in _PARTS.items() if word in name.lower())
        counts[next(parts, "feed-forward")] += weight.numel()
    found = pd.DataFrame(counts.most_common(), columns=["part", "weights"])
    return found.assign(share=found["weights"] / found["weights"].sum())
