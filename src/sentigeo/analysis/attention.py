"""Attention by word, what an encoder is made of, and whether weights explain a decision."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.stats import spearmanr
from torch import Tensor

from sentigeo.encoder.encoder import Encoder
from sentigeo.encoder.extract import embed_texts
from sentigeo.encoder.tokens import count_tokens, tokenize
from sentigeo.errors import UserError
from sentigeo.text import find_words

MEASURES = ("rollout", "attention x gradient", "masking")  # to be compared with `occlusion`
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

    @property
    def plain(self) -> np.ndarray:
        """Places of words, without signs and special tokens."""
        return np.flatnonzero(~self.signs & ~self.special)


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
            raise UserError(
                f"The encoder '{encoder.name}' does not return attention for every token."
            )
    return found


def recompute_weights(layer: Any, hidden: Tensor, mask: Tensor) -> Tensor:
    """Compute (b, heads, w, w) attention from (b, w, d) states and a `BertLayer`'s projections."""
    module = layer.attention.self
    query, key = (
        part(hidden).unflatten(-1, (module.num_attention_heads, -1)).transpose(1, 2)
        for part in (module.query, module.key)
    )
    scores: Tensor = query @ key.transpose(-1, -2) / query.shape[-1] ** 0.5
    return scores.masked_fill(mask[:, None, None] == 0, float("-inf")).softmax(dim=-1)


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
    """Merge (..., w, w) weights of pieces to words: attention to a word sums, from it is a mean."""
    member = (groups == np.arange(groups.max() + 1)[:, None]).astype(weights.dtype)
    return np.asarray((member / member.sum(axis=1, keepdims=True)) @ weights @ member.T)


def rollout(weights: np.ndarray) -> np.ndarray:
    """Follow (layers, heads, w, w) attention back: (w, w) parts of the input in each last token."""
    # Abnar and Zuidema (2020): the mean of the heads, and half of every token for the residual
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


@dataclass(frozen=True)
class Decision:
    """A linear decision on the last layer's first token."""

    encoder: Encoder
    weights: Tensor  # (classes, d)
    bias: Tensor  # (classes,)

    def log_probabilities(self, vectors: Tensor) -> Tensor:
        """Return the (n, classes) logarithms of probabilities of (n, d) vectors."""
        return (vectors @ self.weights.T + self.bias).log_softmax(dim=-1)


def make_decision(encoder: Encoder, probe: Any) -> Decision:
    """Fold a probe, which standardises vectors first, into one linear decision."""
    scaler, regression = probe[0], probe[-1]
    weights = regression.coef_ / scaler.scale_
    bias = regression.intercept_ - weights @ scaler.mean_
    if len(weights) == 1:  # two classes have one set of weights
        weights, bias = np.vstack([-weights, weights]) / 2, np.concatenate([-bias, bias]) / 2
    return Decision(encoder, torch.tensor(weights).float(), torch.tensor(bias).float())


def decide(texts: list[str], decision: Decision) -> np.ndarray:
    """Return the (n, classes) probabilities that a decision gives texts."""
    vectors = torch.from_numpy(embed_texts(texts, decision.encoder))
    return np.asarray(decision.log_probabilities(vectors).exp().numpy())


def explain(texts: list[str], decision: Decision) -> list[pd.DataFrame]:
    """Rate the words and signs of each text in four ways, for the class that is decided for.

    `occlusion` is how much its probability falls when a word is left out, `masking` when a mask, if
    there is one, stands for it; `rollout` is how much of a word attention brings to the first
    token; `attention x gradient` is what all weights on a word add to the log-probability.
    """
    rated, places = zip(*(_follow_attention(text, decision) for text in texts), strict=True)
    stand_ins = {"occlusion": "", "masking": decision.encoder.tokenizer.mask_token}
    changed = {
        (measure, number): [text[:a] + stand_in + text[b:] for a, b in spans]
        for measure, stand_in in stand_ins.items()
        if stand_in is not None
        for number, (text, spans) in enumerate(zip(texts, places, strict=True))
    }
    every = decide([*texts, *(text for part in changed.values() for text in part)], decision)
    whole, start = every[: len(texts)], len(texts)
    for (measure, number), part in changed.items():
        chosen = whole[number].argmax()
        rated[number][measure] = whole[number, chosen] - every[start : start + len(part), chosen]
        start += len(part)
    return list(rated)


def _follow_attention(text: str, decision: Decision) -> tuple[pd.DataFrame, np.ndarray]:
    batch, places = tokenize([text], decision.encoder)
    found = run_with_attention(decision.encoder, batch)
    scores = decision.log_probabilities(found.last_hidden_state[:, 0])[0]
    gradients = torch.autograd.grad(scores.max(), found.attentions)
    both = zip(found.attentions, gradients, strict=True)
    pulls = sum((weights * gradient).sum(dim=(0, 1, 2)) for weights, gradient in both)
    grouped = group_words(text, places[0])
    plain = np.flatnonzero(~grouped.special)
    mixed = merge_pieces(rollout(torch.cat(found.attentions).detach().numpy()), grouped.groups)
    rated = {
        "word": [grouped.words[place] for place in plain],
        "rollout": mixed[0, plain],
        "attention x gradient": np.bincount(grouped.groups, pulls.detach().numpy())[plain],
    }
    return pd.DataFrame(rated), grouped.spans[plain]


def rank_agreement(explained: list[pd.DataFrame], measure: str) -> np.ndarray:
    """Return (n,) rank correlations, over words, of a measure's size with that of `occlusion`."""
    found = []
    for frame in explained:
        sizes = frame[[measure, "occlusion"]].abs()
        ordered = len(frame) > 2 and (sizes != sizes.iloc[0]).any().all()  # else no agreement
        found.append(spearmanr(*sizes.to_numpy().T).statistic if ordered else 0.0)
    return np.array(found)


def same_first(explained: list[pd.DataFrame], measure: str) -> np.ndarray:
    """Tell for (n,) texts whether a measure and `occlusion` put the same word first, by size."""
    firsts = [frame[[measure, "occlusion"]].abs().idxmax() for frame in explained]
    return np.array([first[measure] == first["occlusion"] for first in firsts])
