"""The encoder of deep clustering: texts to shares in clusters, and guesses of hidden tokens."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sentigeo.classifier import encoder_layers
from sentigeo.layers import attend_from_cls, run_layer
from sentigeo.masked_lm import Decoder, attend_from_places
from sentigeo.soft_clusters import assign_softly


class DeepEncoder(nn.Module):
    """A masked-language model with clusters, fed with token ids.

    Args:
        model: The model, of any architecture; its own layers are used, so training this trains it.
        layers: How many of its top layers can be trained.
        centroids: (k, d) where clusters begin.
        words: (v,) token ids that may be guessed, in ascending order.
        alpha: Degrees of freedom of the kernel.
    """

    def __init__(
        self, model: Any, layers: int, centroids: np.ndarray, words: np.ndarray, alpha: float = 1.0
    ) -> None:
        super().__init__()
        stack = encoder_layers(model)
        self.top: list[Any] = list(stack)[len(stack) - layers :]
        self.decoder = Decoder(model, words)
        self.model, self.alpha = model.eval(), alpha
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
            texts: Inputs and (b, w) mask of texts, if their shares are asked for.
            masked: Inputs and (b, w) mask of texts with hidden tokens, and a (b, w) mask of the
                tokens to guess, if guesses are asked for.
        """
        shares = None if texts is None else self.assign(self.embed(*texts))
        return shares, None if masked is None else self.decoder(self.prepare(*masked))

    def assign(self, vectors: Tensor) -> Tensor:
        """Return the (b, k) shares of (b, d) vectors in the clusters."""
        return assign_softly(vectors, self.centroids, self.alpha)

    def embed(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """Return the (b, d) [CLS] vectors of the last layer."""
        found = self.model.base_model(inputs, attention_mask=mask.long())
        return found.last_hidden_state[:, 0]  # type: ignore[no-any-return]

    def prepare(self, inputs: Tensor, mask: Tensor, chosen: Tensor) -> Tensor:
        """Return the (m, d) states of chosen tokens that the decoder starts from."""
        return self.model(inputs, attention_mask=mask.long()).logits[chosen]  # type: ignore[no-any-return]

    def _weights(self, layer: nn.Module) -> list[nn.Parameter]:
        """Return what of a layer is trained."""
        return list(layer.parameters())


class TopDeepEncoder(DeepEncoder):
    """The top layers of a BERT-like model with clusters, fed with a trunk's hidden states.

    The last layer is evaluated for [CLS] and for hidden tokens only.
    """

    def embed(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """Return the (b, d) [CLS] vectors of the last layer."""
        return attend_from_cls(self.top[-1], self._climb(inputs, mask), mask)

    def prepare(self, inputs: Tensor, mask: Tensor, chosen: Tensor) -> Tensor:
        """Return the (m, d) states of chosen tokens that the decoder starts from."""
        states = attend_from_places(self.top[-1], self._climb(inputs, mask), mask, chosen)
        head = self.model.cls if hasattr(self.model, "cls") else self.model.lm_head
        return head(states)  # type: ignore[no-any-return]

    def _climb(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Return the input of the last layer."""
        for layer in self.top[:-1]:
            hidden = run_layer(layer, hidden, mask)
        return hidden

    def _weights(self, layer: nn.Module) -> list[nn.Parameter]:
        # A key's bias moves all scores of a query alike, so it has no gradient.
        unused = self.top[-1].attention.self.key.bias
        return [weight for weight in layer.parameters() if weight is not unused]
