"""The masked-language model of an encoder: its head, which guesses tokens that were hidden."""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import MODEL_FOR_MASKED_LM_MAPPING, AutoModelForMaskedLM

from sentigeo.classifier import load_with_head
from sentigeo.encoder import Encoder
from sentigeo.errors import UserError
from sentigeo.layers import feed_forward


class Decoder(nn.Module):
    """The last step of a masked-language head, for the tokens that a set of texts holds.

    It compares a state with the embedding of every token. These embeddings are the input's as well,
    so they stay as they are; and tokens that the texts do not hold are left out, which makes the
    step several times cheaper.

    Args:
        model: A masked-language model; from then on its own head stops before that step.
        words: (v,) token ids that may be the answer, in ascending order.
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
    """Load an encoder with its masked-language head.

    Args:
        source: `packaged`, the path of a model folder, or a hub id.
        revision: Commit, branch or tag of a hub model.

    Returns:
        The model, and whether its head was drawn at random because the checkpoint holds none.
    """
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


def attend_from_places(layer: Any, hidden: Tensor, mask: Tensor, chosen: Tensor) -> Tensor:
    """Evaluate a BERT layer for some of its tokens only, without dropout.

    Args:
        layer: A `BertLayer` or one of the same build.
        hidden: (b, w, d) input of the layer.
        mask: (b, w) true where there is a token.
        chosen: (b, w) true at m tokens, at least one.

    Returns:
        (m, d) output of the layer at these tokens, text by text.
    """
    attention = layer.attention.self
    heads, size = attention.num_attention_heads, attention.attention_head_size
    texts, places = chosen.nonzero(as_tuple=True)
    order = (chosen.cumsum(dim=1) - 1)[texts, places]
    own = hidden[texts, places]
    queries = hidden.new_zeros(len(hidden), int(order.max()) + 1, heads * size)
    queries[texts, order] = attention.query(own)
    query, key, value = (
        part.unflatten(-1, (heads, size)).transpose(1, 2)
        for part in (queries, attention.key(hidden), attention.value(hidden))
    )
    mixed = functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask[:, None, None]
    )
    mixed = mixed.transpose(1, 2).flatten(2)[texts, order]
    return feed_forward(layer, layer.attention.output(mixed, own))


def _stop_before(model: nn.Module, last: Any) -> None:
    """Let a model give back what its last part would have been given."""
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if child is last:
                setattr(parent, name, nn.Identity())
        for name, weight in list(parent.named_parameters(recurse=False)):
            if weight is last.bias and parent is not last:  # some heads know it by two names
                setattr(parent, name, None)
