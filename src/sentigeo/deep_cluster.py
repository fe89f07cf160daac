"""Deep clustering: an encoder and its clusters are trained together.

Source 003 re-implements "Unsupervised Fine-tuning for Text Clustering" (COLING 2020): a clustering
loss pulls texts towards surer clusters, a masked-language loss keeps the encoder a language model.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from sentigeo.classifier import encoder_layers
from sentigeo.errors import UserError
from sentigeo.layers import BERT_LIKE, run_layer
from sentigeo.soft_clusters import assign_softly, divergence_loss, sharpen
from sentigeo.tokens import token_batches
from sentigeo.trunk import Trunk, make_batch

EVALUATION_TOKENS = 6144


@dataclass(frozen=True)
class DeepRecipe:
    """How encoder and clusters are trained together.

    Attributes:
        epochs: Times every text is seen; the targets are computed anew before each.
        learning_rate: Highest rate, after a linear warm-up.
        batch_size: Texts of a step.
        clustering: Weight of the clustering loss.
        masked: Weight of the masked-language loss.
        alpha: Degrees of freedom of the kernel.
        balance: Whether targets are divided by the size of clusters.
        tolerance: Training stops when fewer texts than this share change their cluster.
        seed: Draws order and dropout.
        warmup: Share of the steps in which the rate rises.
        clip: Largest norm of a gradient.
    """

    epochs: int
    learning_rate: float
    batch_size: int
    clustering: float
    masked: float
    alpha: float = 1.0
    balance: bool = True
    tolerance: float = 0.0
    seed: int = 0
    warmup: float = 0.1
    clip: float = 1.0


@dataclass(frozen=True)
class MaskedCopy:
    """Texts with hidden tokens, run through the trunk.

    Attributes:
        trunk: Hidden states of the copy.
        places: For each text, the tokens to be guessed.
        answers: For each text, what they were.
    """

    trunk: Trunk
    places: list[np.ndarray]
    answers: list[np.ndarray]


class DeepEncoder(nn.Module):
    """The top layers of an encoder with its clusters and its masked-language head.

    Args:
        model: A masked-language model; its own layers are used, so training this trains it.
        layers: How many layers are trained.
        centroids: (k, d) where clusters begin.
    """

    def __init__(self, model: Any, layers: int, centroids: np.ndarray) -> None:
        super().__init__()
        if model.config.model_type not in BERT_LIKE:
            raise UserError(f"A {model.config.model_type} model has no cached trunk.")
        self.layers = nn.ModuleList(encoder_layers(model)[-layers:])  # type: ignore[arg-type]
        self.guesser = model.cls if hasattr(model, "cls") else model.lm_head
        self.centroids = nn.Parameter(torch.tensor(centroids, dtype=torch.float32))

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Return the (b, d) mean vectors of (b, w, d) hidden states with a (b, w) mask."""
        states = self.run(hidden, mask) * mask[..., None]
        return states.sum(dim=1) / mask.sum(dim=1, keepdim=True)

    def run(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Return the (b, w, d) states of the last layer."""
        for layer in self.layers:
            hidden = run_layer(layer, hidden, mask)
        return hidden

    def guess(self, hidden: Tensor, mask: Tensor, chosen: Tensor) -> Tensor:
        """Return the (m, vocabulary) scores of m chosen tokens, (b, w) true, and of no others."""
        return self.guesser(self.run(hidden, mask)[chosen])  # type: ignore[no-any-return]


def embed_all(body: DeepEncoder, documents: Trunk) -> np.ndarray:
    """Return the (n, d) vectors of all texts."""
    body.eval()
    rows = np.arange(len(documents.lengths))
    found = np.zeros((len(rows), body.centroids.shape[1]), np.float32)
    with torch.inference_mode():
        for batch in token_batches(rows, documents.lengths, EVALUATION_TOKENS):
            found[batch] = body(*make_batch(documents, batch)).numpy()
    return found


def train_clusters(
    body: DeepEncoder,
    documents: Trunk,
    copies: list[MaskedCopy],
    recipe: DeepRecipe,
    on_refresh: Callable[[int, np.ndarray, np.ndarray, dict[str, float]], None],
) -> None:
    """Train encoder and clusters in place.

    Args:
        body: What is trained.
        documents: Hidden states of n texts.
        copies: The same texts with hidden tokens; epochs take turns. None are needed without the
            masked-language loss.
        recipe: How to train.
        on_refresh: Told, whenever the targets are computed anew and at the end: the epochs done,
            (n, d) vectors, (n, k) shares, and the mean losses of the last epoch.
    """
    weights = [weight for weight in body.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(weights, lr=recipe.learning_rate, weight_decay=0.01)
    members, losses = None, dict[str, float]()
    for epoch in range(recipe.epochs + 1):
        vectors = embed_all(body, documents)
        with torch.no_grad():
            shares = assign_softly(torch.from_numpy(vectors), body.centroids, recipe.alpha)
        on_refresh(epoch, vectors, shares.numpy(), losses)
        before, members = members, shares.argmax(dim=1)
        changed = 1.0 if before is None else float((members != before).float().mean())
        if epoch == recipe.epochs or changed < recipe.tolerance:
            return
        copy = copies[epoch % len(copies)] if copies else None
        targets = sharpen(shares, recipe.balance)
        losses = _train_epoch(body, optimizer, documents, targets, copy, recipe, epoch)


def _train_epoch(
    body: DeepEncoder,
    optimizer: torch.optim.Optimizer,
    documents: Trunk,
    targets: Tensor,
    copy: MaskedCopy | None,
    recipe: DeepRecipe,
    epoch: int,
) -> dict[str, float]:
    """Train one epoch; return the mean of each loss over the steps."""
    body.train()
    rng = np.random.default_rng([recipe.seed, epoch])
    torch.manual_seed(int(rng.integers(2**62)))
    budget = recipe.batch_size * int(documents.lengths.max())
    rows = np.arange(len(documents.lengths))
    batches = token_batches(rows, documents.lengths, budget, recipe.batch_size, rng)
    sums: dict[str, float] = {}
    for step, batch in enumerate(batches):
        done = (epoch + step / len(batches)) / recipe.epochs
        for group in optimizer.param_groups:
            group["lr"] = recipe.learning_rate * min(1.0, done / recipe.warmup + 1e-3)
        losses = {}
        if recipe.clustering:
            shares = assign_softly(body(*make_batch(documents, batch)), body.centroids, recipe.alpha)
            losses["clustering"] = divergence_loss(targets[batch], shares)
        if recipe.masked and copy:
            losses["masked"] = masked_loss(body, copy, batch)
        total = sum(getattr(recipe, name) * loss for name, loss in losses.items())
        optimizer.zero_grad()
        total.backward()
        nn.utils.clip_grad_norm_(body.parameters(), recipe.clip)
        optimizer.step()
        for name, loss in losses.items():
            sums[name] = sums.get(name, 0.0) + float(loss.detach()) / len(batches)
    return sums


def masked_loss(body: DeepEncoder, copy: MaskedCopy, rows: np.ndarray) -> Tensor:
    """Return the mean loss of the hidden tokens of some texts; 0 if they have none."""
    hidden, mask = make_batch(copy.trunk, rows)
    chosen = torch.zeros(mask.shape, dtype=torch.bool)
    for place, row in enumerate(rows):
        chosen[place, copy.places[row]] = True
    if not chosen.any():
        return hidden.new_zeros((), requires_grad=True)
    answers = torch.from_numpy(np.concatenate([copy.answers[row] for row in rows]))
    return functional.cross_entropy(body.guess(hidden, mask, chosen), answers)
