"""Does attention explain a decision? Word by word, beside the occlusion of the word."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.stats import spearmanr
from torch import Tensor

from sentigeo.attention.attention import group_words, merge_pieces, rollout, run_with_attention
from sentigeo.encoder.encoder import Encoder
from sentigeo.encoder.extract import embed_texts
from sentigeo.encoder.tokens import tokenize

MEASURES = ("rollout", "attention x gradient", "masking")  # to be compared with `occlusion`


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

    `occlusion` is how much its probability falls when a word is left out, `masking` when a mask
    stands for it (if the encoder has one); `rollout` is how much of a word attention brings to the
    first token; `attention x gradient` is what all weights on a word add to the logarithm of the
    probability.
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
    """Return the (n,) rank correlations, over words, of a measure's size with that of `occlusion`.

    It is 0 for fewer than three words and where all values are equal: no order, no agreement.
    """
    found = []
    for frame in explained:
        sizes = frame[[measure, "occlusion"]].abs()
        ordered = len(frame) > 2 and (sizes != sizes.iloc[0]).any().all()
        found.append(spearmanr(*sizes.to_numpy().T).statistic if ordered else 0.0)
    return np.array(found)


def same_first(explained: list[pd.DataFrame], measure: str) -> np.ndarray:
    """Tell for (n,) texts whether a measure and `occlusion` put the same word first, by size."""
    firsts = [frame[[measure, "occlusion"]].abs().idxmax() for frame in explained]
    return np.array([first[measure] == first["occlusion"] for first in firsts])
