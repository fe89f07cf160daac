"""Does attention explain a decision? Word by word, beside what happens when a word is gone."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.stats import spearmanr
from torch import Tensor

from sentigeo.attention.attention import group_words, merge_pieces, rollout, run_openly, tokenize
from sentigeo.encoder.encoder import Encoder
from sentigeo.encoder.extract import embed_texts

MEASURES = ("rollout", "attention x gradient", "masking")  # to be compared with `removal`


@dataclass(frozen=True)
class Decision:
    """A linear decision on the last layer's first token.

    Attributes:
        encoder: Gives the vectors.
        weights: (classes, d).
        bias: (classes,).
    """

    encoder: Encoder
    weights: Tensor
    bias: Tensor

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
    """Rate the words of each text in four ways, for the class that is decided for.

    `removal` is how much its probability falls when a word is taken out, `masking` when a mask
    stands for it; `rollout` is how much of a word attention brings to the first token;
    `attention x gradient` is what all weights on a word add to the logarithm of the probability.

    Returns:
        Columns `word` and the four measures, `masking` only if the encoder has a mask; a row a word
        or sign that it reads.
    """
    found = [_follow_attention(text, decision) for text in texts]
    stand_ins = {"removal": "", "masking": decision.encoder.tokenizer.mask_token}
    changed = {
        (measure, place): [text[:a] + stand_in + text[b:] for a, b in spans]
        for measure, stand_in in stand_ins.items()
        if stand_in is not None
        for place, (text, (_, spans)) in enumerate(zip(texts, found, strict=True))
    }
    every = decide([*texts, *(text for own in changed.values() for text in own)], decision)
    whole, start = every[: len(texts)], len(texts)
    for (measure, place), own in changed.items():
        chosen = whole[place].argmax()
        falls = whole[place, chosen] - every[start : start + len(own), chosen]
        found[place][0][measure] = falls
        start += len(own)
    return [frame for frame, _ in found]


def _follow_attention(text: str, decision: Decision) -> tuple[pd.DataFrame, np.ndarray]:
    """Return columns `word`, `rollout`, `attention x gradient`, and where the words stand."""
    batch, places = tokenize([text], decision.encoder)
    found = run_openly(decision.encoder, batch)
    scores = decision.log_probabilities(found.last_hidden_state[:, 0])[0]
    gradients = torch.autograd.grad(scores.max(), found.attentions)
    pulls = sum(
        (w * g).sum(dim=(0, 1, 2)) for w, g in zip(found.attentions, gradients, strict=True)
    )
    own = group_words(text, places[0])
    plain = np.flatnonzero(~own.special)
    mixed = merge_pieces(rollout(torch.cat(found.attentions).detach().numpy()), own.groups)
    rated = {
        "word": [own.words[place] for place in plain],
        "rollout": mixed[0, plain],
        "attention x gradient": np.bincount(own.groups, pulls.detach().numpy())[plain],
    }
    return pd.DataFrame(rated), own.spans[plain]


def rank_agreement(explained: list[pd.DataFrame], measure: str) -> np.ndarray:
    """Return the (n,) rank correlations, over words, of a measure's size with that of `removal`.

    It is 0 for texts of fewer than three words and where all values are equal: no order, no
    agreement.
    """
    found = []
    for frame in explained:
        sizes = frame[[measure, "removal"]].abs()
        ordered = len(frame) > 2 and (sizes != sizes.iloc[0]).any().all()
        found.append(spearmanr(*sizes.to_numpy().T).statistic if ordered else 0.0)
    return np.array(found)


def same_first(explained: list[pd.DataFrame], measure: str) -> np.ndarray:
    """Tell for (n,) texts whether a measure and `removal` put the same word first, by size."""
    firsts = [frame[[measure, "removal"]].abs().idxmax() for frame in explained]
    return np.array([first[measure] == first["removal"] for first in firsts])
