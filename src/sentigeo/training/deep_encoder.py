"""The model of deep clustering: encoder, soft clusters and MLM head; masking of tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import MODEL_FOR_MASKED_LM_MAPPING

from sentigeo.encoder import bert_layers
from sentigeo.encoder.encoder import Encoder
from sentigeo.encoder.tokens import TokenIds
from sentigeo.encoder.vectors import Trunk
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
        stack = bert_layers.encoder_layers(model)
        self.top: list[Any] = list(stack)[len(stack) - layers :]
        self.decoder = Decoder(model, words)
        self.model = model.eval()
        self.centroids = nn.Parameter(torch.tensor(centroids, dtype=torch.float32))

    def train_parts(self, parts: set[str]) -> None:
        """Let some of `layers`, `head` (the MLM head) and `centroids` be trained."""
        below = {id(weight) for weight in self.model.base_model.parameters()}
        head = [weight for weight in self.model.parameters() if id(weight) not in below]
        owners = {
            "layers": [weight for layer in self.top for weight in layer.parameters()],
            "head": [*head, self.decoder.bias],
            "centroids": [self.centroids],
        }
        self.requires_grad_(False)
        for part in parts:
            for weight in owners[part]:
                weight.requires_grad_(True)

    def forward(
        self, texts: Sequence[Tensor] | None, masked: Sequence[Tensor] | None
    ) -> tuple[Tensor | None, Tensor | None]:
        """Return the (b, k) shares of texts in clusters, and the (m, v) scores of hidden tokens.

        Texts are inputs and a (b, w) mask; masked ones have a (b, w) mask of tokens to guess, too.
        """
        shares = None if texts is None else assign_softly(self.embed(*texts), self.centroids)
        return shares, None if masked is None else self.decoder(self.prepare(*masked))

    def embed(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """Return the (b, d) [CLS] vectors of the last layer."""
        found = self.model.base_model(inputs, attention_mask=mask.long())
        return found.last_hidden_state[:, 0]  # type: ignore[no-any-return]

    def prepare(self, inputs: Tensor, mask: Tensor, chosen: Tensor) -> Tensor:
        """Return the (m, d) states of chosen tokens that the decoder starts from."""
        return self.model(inputs, attention_mask=mask.long()).logits[chosen]  # type: ignore[no-any-return]


class TopDeepEncoder(DeepEncoder):
    """The top of a BERT-like model, fed with a trunk; its last layer is run where it is needed."""

    def train_parts(self, parts: set[str]) -> None:
        """Let some parts be trained, but for what has no gradient."""
        super().train_parts(parts)
        # A key's bias moves all scores of a query alike.
        self.top[-1].attention.self.key.bias.requires_grad_(False)

    def embed(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """Return the (b, d) [CLS] vectors of the last layer."""
        return bert_layers.attend_from_cls(self.top[-1], self._climb(inputs, mask), mask)

    def prepare(self, inputs: Tensor, mask: Tensor, chosen: Tensor) -> Tensor:
        """Return the (m, d) states of chosen tokens that the decoder starts from."""
        states = bert_layers.attend_from_places(
            self.top[-1], self._climb(inputs, mask), mask, chosen
        )
        head = self.model.cls if hasattr(self.model, "cls") else self.model.lm_head
        return head(states)  # type: ignore[no-any-return]

    def _climb(self, hidden: Tensor, mask: Tensor) -> Tensor:
        for layer in self.top[:-1]:
            hidden = bert_layers.run_layer(layer, hidden, mask)
        return hidden


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


def _stop_before(model: nn.Module, last: Any) -> None:
    """Let a model give back what its last part would have been given."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if child is last:
                setattr(parent, name, nn.Identity())
        for name, weight in list(parent.named_parameters(recurse=False)):
            if weight is last.bias and parent is not last:  # some heads know it by two names
                setattr(parent, name, None)


def check_masked_lm(encoder: Encoder) -> None:
    """Refuse an encoder that cannot guess hidden tokens."""
    if encoder.tokenizer.mask_token_id is None:
        raise UserError(
            f"The tokenizer of '{encoder.name}' has no mask, so no token can be hidden."
        )
    if type(encoder.model.config) not in MODEL_FOR_MASKED_LM_MAPPING:
        kind = encoder.model.config.model_type
        raise UserError(f"'{encoder.name}' ({kind}) has no masked-language head in transformers.")


@dataclass(frozen=True)
class MaskedTexts:
    """Texts with tokens to be guessed."""

    source: TokenIds | Trunk  # n texts, some tokens replaced; or what a trunk makes of them
    starts: np.ndarray  # (n + 1,) where each text's tokens begin; the last is t
    hidden: np.ndarray  # (t,) whether a token is to be guessed
    answers: np.ndarray  # (t,) what stands there, as a number among the words
    words: np.ndarray  # (v,) token ids that the texts hold, in ascending order

    def count(self, rows: np.ndarray) -> int:
        """Return how many tokens of some texts are to be guessed."""
        return sum(int(self.hidden[part].sum()) for part in self._parts(rows))

    def ask(self, rows: np.ndarray, width: int) -> tuple[Tensor, Tensor]:
        """Return a (b, width) mask that is true at tokens to be guessed, and their (m,) answers.

        If no text has anything to guess, a token is asked for whose answer does not count.
        """
        chosen, parts = torch.zeros(len(rows), width, dtype=torch.bool), self._parts(rows)
        for row, part in zip(chosen, parts, strict=True):
            row[: part.stop - part.start] = torch.tensor(self.hidden[part])
        if not chosen.any():
            chosen[0, 0] = True
            return chosen, torch.tensor([NO_ANSWER])
        answers = [self.answers[part][self.hidden[part]] for part in parts]
        return chosen, torch.from_numpy(np.concatenate(answers))

    def _parts(self, rows: np.ndarray) -> list[slice]:
        return [slice(self.starts[row], self.starts[row + 1]) for row in rows]


def mask_tokens(tokens: TokenIds, tokenizer: Any, seed: int) -> MaskedTexts:
    """Choose tokens to be guessed, never special ones; a short text may have none."""
    rng = np.random.default_rng(seed)
    plain = ~np.isin(tokens.ids, tokenizer.all_special_ids)
    hidden = plain & (rng.random(len(tokens.ids)) < SHARE)
    chosen, ids = np.flatnonzero(hidden), tokens.ids.copy()
    fate = rng.random(len(chosen))
    ids[chosen[fate < HIDDEN]] = tokenizer.mask_token_id
    other = chosen[(fate >= HIDDEN) & (fate < HIDDEN + RANDOM)]
    ids[other] = rng.integers(len(tokenizer), size=len(other))
    words, answers = np.unique(tokens.ids, return_inverse=True)
    source = TokenIds(ids, tokens.starts, tokens.padding)
    return MaskedTexts(source, tokens.starts, hidden, answers.astype(np.int64), words)


def assign_softly(vectors: Tensor, centroids: Tensor) -> Tensor:
    """Return (n, k) shares of (n, d) vectors in clusters around (k, d) centroids; rows sum to 1.

    They come from Student's t kernel with one degree of freedom.
    """
    squares = (vectors[:, None] - centroids).square().sum(dim=-1)
    kernel = (1 + squares).pow(-1.0)
    return kernel / kernel.sum(dim=1, keepdim=True)
