"""A sequence classifier cut in two: a frozen trunk below, trained layers above.

The trained part of a BERT-like classifier can start from the hidden states of any layer, or in the
middle of one. The depth 1.5 trains the last layer and the feed-forward half of the one below: that
half holds two thirds of a layer's weights, and it treats each token by itself, so training on some
tokens of a text takes nothing from the others' context.
"""

import math
from typing import Any

from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification

from sentigeo.encoder.bert_layers import (
    BERT_LIKE,
    attend_from_cls,
    encoder_layers,
    feed_forward,
    run_layer,
)
from sentigeo.encoder.encoder import load_with_head
from sentigeo.errors import UserError


def load_classifier(
    source: str, revision: str | None, classes: list[str], seed: int = 0
) -> nn.Module:
    """Load an encoder with a new classification head, drawn with a seed."""
    names = dict(enumerate(classes))
    labels = {"id2label": names, "label2id": {name: number for number, name in names.items()}}
    model, _ = load_with_head(AutoModelForSequenceClassification, source, revision, seed, **labels)
    return model


def trained_part(model: Any, layers: float) -> nn.Module:
    """Return what is trained of a classifier, in the quickest form that its architecture allows."""
    if model.config.model_type not in BERT_LIKE:
        return WholeClassifier(model, int(layers))
    if layers == model.config.num_hidden_layers:
        return FastWholeClassifier(model, int(layers))
    return TopClassifier(model, layers)


class TopClassifier(nn.Module):
    """The top of a BERT-like classifier, fed with a trunk's hidden states.

    Args:
        model: The whole classifier; its layers are used, so training this trains it.
        layers: How many layers are trained; with none, only the classification head (pooler and
            classifier) is. A half stands for the feed-forward half of the lowest one.
    """

    def __init__(self, model: Any, layers: float) -> None:
        super().__init__()
        if model.config.model_type not in BERT_LIKE:
            raise UserError(f"A {model.config.model_type} model has no cached trunk.")
        stack: Any = encoder_layers(model)
        whole = math.floor(layers)
        self.layers = nn.ModuleList(stack[len(stack) - whole :])
        self.lowest_half = None
        if layers > whole:
            below = stack[len(stack) - whole - 1]
            halves = {"intermediate": below.intermediate, "output": below.output}
            self.lowest_half = nn.ModuleDict(halves)
        self.pooler = getattr(model.base_model, "pooler", None)
        self.dropout = nn.Dropout(model.config.hidden_dropout_prob)
        self.classifier = model.classifier
        self.classes: int = model.config.num_labels
        if whole:  # a key's bias moves all scores of a query alike, so it has no gradient
            last: Any = self.layers[-1]
            last.attention.self.key.bias.requires_grad_(False)

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Return the (b, classes) logits of (b, w, d) hidden states with a (b, w) mask."""
        if self.lowest_half is not None:
            hidden = feed_forward(self.lowest_half, hidden)
        for layer in self.layers[:-1]:
            hidden = run_layer(layer, hidden, mask)
        cls = attend_from_cls(self.layers[-1], hidden, mask) if self.layers else hidden[:, 0]
        states = cls[:, None] if self.pooler is None else self.dropout(self.pooler(cls[:, None]))
        return self.classifier(states)  # type: ignore[no-any-return]


class WholeClassifier(nn.Module):
    """A whole classifier fed with token ids; the layers below the trained ones are frozen.

    Args:
        model: The classifier, of any architecture.
        layers: How many layers are trained; all of them train the embeddings too.
    """

    def __init__(self, model: Any, layers: int) -> None:
        super().__init__()
        self.model = model
        self.classes: int = model.config.num_labels
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
