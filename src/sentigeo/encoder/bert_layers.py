"""Texts as batches, the layers of an encoder for all tokens or for [CLS] alone, and their pooling.

For BERT-like encoders both kinds of layer give what the layer itself gives, with less work. All
tokens: one matrix product instead of three yields queries, keys and values. [CLS] alone, where
nothing else of a last layer is read: not even keys and values are projected, since
q'(W_k x) = (W_k'q)'x, and a weighted sum of W_v x is W_v applied to the weighted sum of x.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from sentigeo.encoder.tokens import TokenIds
from sentigeo.encoder.vectors import Pooling, Trunk
from sentigeo.errors import UserError

# Models whose layers are BERT's own; all others are run as they are, without a cached trunk.
BERT_LIKE = {"bert", "roberta", "xlm-roberta", "camembert"}


def make_batch(source: TokenIds | Trunk, rows: np.ndarray) -> tuple[Tensor, Tensor]:
    """Stack rows into (b, w) token ids or (b, w, d) hidden states, and a (b, w) mask of tokens."""
    if isinstance(source, TokenIds):
        texts, padding = [source[row].astype(np.int64) for row in rows], source.padding
    else:
        texts, padding = [np.array(source[row]) for row in rows], 0
    tensors = [torch.from_numpy(text) for text in texts]
    batch = pad_sequence(tensors, batch_first=True, padding_value=padding)
    return batch, torch.arange(batch.shape[1]) < torch.tensor([[len(text)] for text in texts])


def run_layer(layer: Any, hidden: Tensor, mask: Tensor) -> Tensor:
    """Return the (b, w, d) output of a BERT layer for (b, w, d) states with a (b, w) mask."""
    return feed_forward(layer, attend(layer, hidden, mask))


def attend(layer: Any, hidden: Tensor, mask: Tensor) -> Tensor:
    """Evaluate the attention half of a BERT layer for all tokens."""
    attention = layer.attention.self
    parts = (attention.query, attention.key, attention.value)
    weight = torch.cat([part.weight for part in parts])
    bias = torch.cat([part.bias for part in parts])
    joined = functional.linear(hidden, weight, bias)
    joined = joined.unflatten(-1, (3, attention.num_attention_heads, -1))
    wide = None if bool(mask.all()) else mask[:, None, None]
    dropout = attention.dropout.p if layer.training else 0.0
    query, key, value = joined.permute(2, 0, 3, 1, 4)
    mixed = functional.scaled_dot_product_attention(query, key, value, wide, dropout)
    return layer.attention.output(mixed.transpose(1, 2).flatten(2), hidden)  # type: ignore[no-any-return]


def feed_forward(layer: Any, attended: Tensor) -> Tensor:
    """Evaluate the feed-forward half of a BERT layer, which knows each token by itself."""
    return layer.output(layer.intermediate(attended), attended)  # type: ignore[no-any-return]


def attend_from_cls(layer: Any, hidden: Tensor, mask: Tensor) -> Tensor:
    """Return the (b, d) output of a BERT layer at the first token only."""
    attention = layer.attention.self
    heads, size = attention.num_attention_heads, attention.attention_head_size
    first = hidden[:, 0]
    query = attention.query(first).view(-1, heads, size) * size**-0.5
    key = attention.key.weight.view(heads, size, -1)
    value = attention.value.weight.view(heads, size, -1)
    scores = torch.einsum("bhs,hsd->bhd", query, key) @ hidden.transpose(1, 2)
    weights = scores.masked_fill(~mask[:, None], float("-inf")).softmax(dim=-1)
    weights = functional.dropout(weights, attention.dropout.p, layer.training)
    mixed = torch.einsum("bhd,hsd->bhs", weights @ hidden, value)
    mixed = mixed + weights.sum(-1, keepdim=True) * attention.value.bias.view(heads, size)
    return feed_forward(layer, layer.attention.output(mixed.flatten(1), first))


def hidden_states(
    model: Any, inputs: Tensor, mask: Tensor, start: int, top: int, cls_at_top: bool
) -> Iterator[tuple[int, Tensor]]:
    """Yield the hidden states of each layer up to `top`, of that for the first token if so asked.

    Inputs are (b, w) token ids, or the (b, w, d) states of layer `start` to go on from. A model
    that is not BERT-like is run whole.
    """
    if model.config.model_type not in BERT_LIKE:
        found = model(inputs, attention_mask=mask.long(), output_hidden_states=True)
        yield from enumerate(found.hidden_states)
        return
    states = inputs
    if inputs.ndim == 2:
        states = model.embeddings(inputs)
        yield 0, states
    for number in range(start, top):
        layer = model.encoder.layer[number]
        if cls_at_top and number == top - 1:
            yield top, attend_from_cls(layer, states, mask)[:, None]
            return
        states = run_layer(layer, states, mask)
        yield number + 1, states


def pool(states: Tensor, mask: Tensor, pooling: Pooling) -> Tensor:
    """Reduce (b, w, d) hidden states with a (b, w) mask to (b, d) vectors."""
    if pooling == "cls":
        return states[:, 0]
    if pooling == "max":
        return states.masked_fill(~mask[..., None], float("-inf")).amax(dim=1)
    weights = mask.to(states.dtype)
    return torch.einsum("bwd,bw->bd", states, weights) / weights.sum(dim=1, keepdim=True)


def encoder_layers(model: Any) -> nn.ModuleList:
    """Return the transformer layers of a model, whatever its architecture calls them."""
    count = model.config.num_hidden_layers
    for module in model.base_model.modules():
        if isinstance(module, nn.ModuleList) and len(module) == count:
            return module
    raise UserError(f"The layers of a {model.config.model_type} model cannot be found.")


def attend_from_places(layer: Any, hidden: Tensor, mask: Tensor, chosen: Tensor) -> Tensor:
    """Return the (m, d) output of a BERT layer, without dropout, at m tokens, text by text.

    At least one token of the (b, w) mask `chosen` is true.
    """
    attention = layer.attention.self
    heads, size = attention.num_attention_heads, attention.attention_head_size
    texts, places = chosen.nonzero(as_tuple=True)
    order = (chosen.cumsum(dim=1) - 1)[texts, places]
    states = hidden[texts, places]
    queries = hidden.new_zeros(len(hidden), int(order.max()) + 1, heads * size)
    queries[texts, order] = attention.query(states)
    parts = (queries, attention.key(hidden), attention.value(hidden))
    query, key, value = (part.unflatten(-1, (heads, size)).transpose(1, 2) for part in parts)
    mixed = functional.scaled_dot_product_attention(query, key, value, mask[:, None, None])
    mixed = mixed.transpose(1, 2).flatten(2)[texts, order]
    return feed_forward(layer, layer.attention.output(mixed, states))
