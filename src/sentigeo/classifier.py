"""A sequence classifier cut in two: a frozen trunk below, trained layers above.

The trained part of a BERT-like classifier can start from the hidden states of any layer. Where only
[CLS] is read in the end, the last layer is evaluated for the [CLS] query alone, and without
projecting every token to a key and a value: q'(W_k x) = (W_k'q)'x, and a weighted sum of W_v x is
W_v applied to the weighted sum of x. The result is the same for a small part of the work.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoConfig, AutoModelForSequenceClassification

from sentigeo.encoder import LOAD_ERRORS, explain_failure, find_encoder, hush_transformers
from sentigeo.errors import UserError

# Models whose layers are BERT's own; all others are run as they are, without a cached trunk.
BERT_LIKE = {"bert", "roberta", "xlm-roberta", "camembert"}


def load_classifier(
    source: str, revision: str | None, classes: list[str], seed: int = 0
) -> nn.Module:
    """Load an encoder with a new classification head, drawn with a seed.

    Attention dropout is off: it costs more time than everything else in attention on a CPU.
    """
    location, _ = find_encoder(source)
    hush_transformers()
    torch.manual_seed(seed)
    try:
        origin = {"revision": revision, "trust_remote_code": False}
        config = AutoConfig.from_pretrained(
            location,
            **origin,
            id2label=dict(enumerate(classes)),
            label2id={name: number for number, name in enumerate(classes)},
        )
        for name in ("attention_probs_dropout_prob", "attention_dropout"):
            if hasattr(config, name):
                setattr(config, name, 0.0)
        model: nn.Module = AutoModelForSequenceClassification.from_pretrained(
            location, **origin, config=config, dtype=torch.float32, use_safetensors=True
        )
    except LOAD_ERRORS as error:
        raise UserError(explain_failure(source, error)) from None
    return model


def encoder_layers(model: Any) -> nn.ModuleList:
    """Return the transformer layers of a model, whatever its architecture calls them."""
    count = model.config.num_hidden_layers
    for module in model.base_model.modules():
        if isinstance(module, nn.ModuleList) and len(module) == count:
            return module
    raise UserError(f"The layers of a {model.config.model_type} model cannot be found.")


class TopClassifier(nn.Module):
    """The top layers and the head of a BERT-like classifier, fed with a trunk's hidden states.

    Args:
        model: The whole classifier; its own layers are used, so training this trains it.
        layers: How many layers are trained; with none, only pooler and classifier are.
    """

    def __init__(self, model: Any, layers: int) -> None:
        super().__init__()
        if model.config.model_type not in BERT_LIKE:
            raise UserError(f"A {model.config.model_type} model has no cached trunk.")
        stack = encoder_layers(model)
        self.layers = nn.ModuleList(stack[len(stack) - layers :])
        self.pooler = getattr(model.base_model, "pooler", None)
        self.dropout = nn.Dropout(model.config.hidden_dropout_prob)
        self.classifier = model.classifier
        if layers:  # a key's bias moves all scores of a query alike, so it has no gradient
            last: Any = self.layers[-1]
            last.attention.self.key.bias.requires_grad_(False)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Return the (b, classes) logits of (b, w, d) hidden states with a (b, w) mask."""
        bias = None if bool(mask.all()) else mask[:, None, None, :]
        for layer in self.layers[:-1]:
            hidden = layer(hidden, attention_mask=bias)
            hidden = hidden[0] if isinstance(hidden, tuple) else hidden
        cls = attend_from_cls(self.layers[-1], hidden, mask) if self.layers else hidden[:, 0]
        if self.pooler is None:
            return self.classifier(cls[:, None])  # type: ignore[no-any-return]
        return self.classifier(self.dropout(self.pooler(cls[:, None])))  # type: ignore[no-any-return]


class WholeClassifier(nn.Module):
    """A whole classifier fed with token ids; the layers below the trained ones are frozen.

    Args:
        model: The classifier, of any architecture.
        layers: How many layers are trained; all of them train the embeddings too.
    """

    def __init__(self, model: Any, layers: int) -> None:
        super().__init__()
        self.model = model
        stack = encoder_layers(model)
        self.frozen: list[nn.Module] = []
        if layers < len(stack):
            kept = [*stack[len(stack) - layers :], getattr(model.base_model, "pooler", None)]
            model.base_model.requires_grad_(False)
            for module in filter(None, kept):
                module.requires_grad_(True)
            others = [m for m in model.base_model.children() if stack not in m.modules()]
            self.frozen = [*stack[: len(stack) - layers], *others]

    def train(self, mode: bool = True) -> "WholeClassifier":
        """Set the mode of the trained part; what is frozen stays in evaluation mode."""
        super().train(mode)
        for module in self.frozen:
            module.eval()
        return self

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the (b, classes) logits of (b, w) token ids with a (b, w) mask."""
        return self.model(ids, attention_mask=mask.long()).logits  # type: ignore[no-any-return]


class FastWholeClassifier(TopClassifier):
    """All layers of a BERT-like classifier, the last one for [CLS] only, fed with token ids."""

    def __init__(self, model: Any, layers: int) -> None:
        super().__init__(model, layers)
        self.embeddings = model.base_model.embeddings

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the (b, classes) logits of (b, w) token ids with a (b, w) mask."""
        return super().forward(self.embeddings(ids), mask)


def attend_from_cls(layer: Any, hidden: Tensor, mask: Tensor) -> Tensor:
    """Evaluate a BERT layer for its first token only.

    Args:
        layer: A `BertLayer` or one of the same build.
        hidden: (b, w, d) input of the layer.
        mask: (b, w) true where there is a token.

    Returns:
        (b, d) output of the layer at the first token.
    """
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
    after = layer.attention.output(mixed.flatten(1), first)
    return layer.output(layer.intermediate(after), after)  # type: ignore[no-any-return]
