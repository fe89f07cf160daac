"""The encoder of deep clustering: texts to shares in clusters, and guesses of hidden tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import MODEL_FOR_MASKED_LM_MAPPING, AutoModelForMaskedLM

from sentigeo.encoder.bert_layers import (
    attend_from_cls,
    attend_from_places,
    encoder_layers,
    run_layer,
)
from sentigeo.encoder.encoder import Encoder, load_with_head
from sentigeo.encoder.tokens import TokenIds
from sentigeo.encoder.trunk import Trunk
from sentigeo.errors import UserError

SHARE = 0.15  # of a text's tokens that are to be guessed
HIDDEN, RANDOM = 0.8, 0.1  # of these, replaced by the mask and by any token; the rest stays
NO_ANSWER = -100  # what a loss leaves out


class DeepEncoder(nn.Module):
    """A masked-language model of any architecture with clusters, fed with token ids.

    Its top `layers` can be trained. Clusters begin at (k, d) centroids; the (v,) token ids `words`,
    in ascending order, may be guessed.
    """

    def __init__(self, model: Any, layers: int, centroids: np.ndarray, words: np.ndarray) -> None:
        super().__init__()
        stack = encoder_layers(model)
        self.top: list[Any] = list(stack)[len(stack) - layers :]
        self.decoder = Decoder(model, words)
        self.model = model.eval()
        self.centroids = nn.Parameter(torch.tensor(centroids, dtype=torch.float32))

    def train_parts(self, parts: set[str]) -> dict[str, nn.Parameter]:
        """Let some of `layers`, `head` and `centroids` be trained; return their weights by name."""
        below = {id(weight) for weight in self.model.base_model.parameters()}
        head = [weight for weight in self.model.parameters() if id(weight) not in below]
        owners = {
            "layers": [weight for layer in self.top for weight in self._weights(layer)],
            "head": [*head, self.decoder.bias],
            "centroids": [self.centroids],
        }
        self.requires_grad_(False)
        for part in parts:
            for weight in owners[part]:
                weight.requires_grad_(True)
        return {name: weight for name, weight in self.named_parameters() if weight.requires_grad}

    def forward(
        self, texts: Sequence[Tensor] | None, masked: Sequence[Tensor] | None
    ) -> tuple[Tensor | None, Tensor | None]:
        """Return the (b, k) shares of texts in clusters, and the (m, v) scores of hidden tokens.

        Args:
            texts: Inputs and (b, w) mask, if shares are asked for.
            masked: Inputs, (b, w) mask and a (b, w) mask of the tokens to guess, if guesses are.
        """
        shares = None if texts is None else self.assign(self.embed(*texts))
        return shares, None if masked is None else self.decoder(self.prepare(*masked))

    def assign(self, vectors: Tensor) -> Tensor:
        """Return the (b, k) shares of (b, d) vectors in the clusters."""
        return assign_softly(vectors, self.centroids)

    def embed(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """Return the (b, d) [CLS] vectors of the last layer."""
        found = self.model.base_model(inputs, attention_mask=mask.long())
        return found.last_hidden_state[:, 0]  # type: ignore[no-any-return]

    def prepare(self, inputs: Tensor, mask: Tensor, chosen: Tensor) -> Tensor:
        """Return the (m, d) states of chosen tokens that the decoder starts from."""
        return self.model(inputs, attention_mask=mask.long()).logits[chosen]  # type: ignore[no-any-return]

    def _weights(self, layer: nn.Module) -> list[nn.Parameter]:
        return list(layer.parameters())


class TopDeepEncoder(DeepEncoder):
    """The top of a BERT-like model, fed with a trunk; its last layer is run where it is needed."""

    def embed(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """Return the (b, d) [CLS] vectors of the last layer."""
        return attend_from_cls(self.top[-1], self._climb(inputs, mask), mask)

    def prepare(self, inputs: Tensor, mask: Tensor, chosen: Tensor) -> Tensor:
        """Return the (m, d) states of chosen tokens that the decoder starts from."""
        states = attend_from_places(self.top[-1], self._climb(inputs, mask), mask, chosen)
        head = self.model.cls if hasattr(self.model, "cls") else self.model.lm_head
        return head(states)  # type: ignore[no-any-return]

    def _climb(self, hidden: Tensor, mask: Tensor) -> Tensor:
        for layer in self.top[:-1]:
            hidden = run_layer(layer, hidden, mask)
        return hidden

    def _weights(self, layer: nn.Module) -> list[nn.Parameter]:
        # A key's bias moves all scores of a query alike, so it has no gradient.
        unused = self.top[-1].attention.self.key.bias
        return [weight for weight in layer.parameters() if weight is not unused]


class Decoder(nn.Module):
    """The last step of a model's MLM head, for the (v,) token ids `words`; its own stops before it.

    It compares a state with the embedding of every token. These embeddings are the input's as well,
    so they stay as they are; and tokens that the texts do not hold are left out, which makes the
    step several times cheaper.
    """

    embeddings: Tensor

    def __init__(self, model: Any, words: np.ndarray) -> None:
        super().__init__()
        whole, chosen = model.get_output_embeddings(), torch.from_numpy(words.astype(np.int64))
        self.register_buffer("embeddings", whole.weight.detach()[chosen], persistent=False)
        bias = torch.zeros(len(words)) if whole.bias is None else whole.bias.detach()[chosen]
        self.bias = nn.Parameter(bias.clone())
        _stop_before(model, whole)

    def forward(self, states: Tensor) -> Tensor:
        """Return the (m, v) scores of (m, d) states."""
        return functional.linear(states, self.embeddings, self.bias)


def load_masked_lm(source: str, revision: str | None) -> tuple[Any, bool]:
    """Load an encoder with its MLM head; say if that is new because the checkpoint holds none."""
    model, drawn = load_with_head(AutoModelForMaskedLM, source, revision, seed=0)
    return model, bool(drawn)


def check_masked_lm(encoder: Encoder) -> None:
    """Refuse an encoder that cannot guess hidden tokens."""
    if encoder.tokenizer.mask_token_id is None:
        raise UserError(
            f"The tokenizer of '{encoder.name}' has no mask, so no token can be hidden."
        )
    if type(encoder.model.config) not in MODEL_FOR_MASKED_LM_MAPPING:
        kind = encoder.model.config.model_type
        raise UserError(f"'{encoder.name}' ({kind}) has no masked-language head in transformers.")


def _stop_before(model: nn.Module, last: Any) -> None:
    """Let a model give back what its last part would have been given."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if child is last:
                setattr(parent, name, nn.Identity())
        for name, weight in list(parent.named_parameters(recurse=False)):
            if weight is last.bias and parent is not last:  # some heads know it by two names
                setattr(parent, name, None)


@dataclass(frozen=True)
class MaskedTexts:
    """Texts with tokens to be guessed."""

    source: TokenIds | Trunk  # n texts, some tokens replaced; or what a trunk makes of them
    starts: np.ndarray  # (n + 1,) where each text's places begin; the last is m
    places: np.ndarray  # (m,) where in its text each token to be guessed stands, text by text
    answers: np.ndarray  # (m,) what stood there, as a number among the words
    words: np.ndarray  # (v,) token ids that the texts hold, in ascending order

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
    """Choose tokens to be guessed, never special ones; a short text may have none."""
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
    source, answers = TokenIds(ids, tokens.starts, tokens.padding), numbers[chosen].astype(np.int64)
    return MaskedTexts(source, starts, chosen - begins, answers, words)


def assign_softly(vectors: Tensor, centroids: Tensor, alpha: float = 1.0) -> Tensor:
    """Return (n, k) shares of (n, d) vectors in clusters around (k, d) centroids; rows sum to 1.

    They come from Student's t kernel; fewer degrees of freedom, `alpha`, favour far clusters.
    """
    squares = (vectors[:, None] - centroids).square().sum(dim=-1)
    kernel = (1 + squares / alpha).pow(-(alpha + 1) / 2)
    return kernel / kernel.sum(dim=1, keepdim=True)


def sharpen(shares: Tensor, balance: bool = True) -> Tensor:
    """Return the (n, k) shares that training aims at, given those of all texts: the sure get surer.

    With `balance` they are divided by the clusters' sizes, which keeps large ones from growing.
    """
    weights = shares.square()
    if balance:
        weights = weights / shares.sum(dim=0).clamp(min=torch.finfo(shares.dtype).tiny)
    return weights / weights.sum(dim=1, keepdim=True)


def divergence_loss(targets: Tensor, shares: Tensor) -> Tensor:
    """Return the mean Kullback-Leibler divergence of (n, k) shares from their targets."""
    tiny = torch.finfo(shares.dtype).tiny
    logs = targets.clamp(min=tiny).log() - shares.clamp(min=tiny).log()
    return (targets * logs).sum(dim=1).mean()
