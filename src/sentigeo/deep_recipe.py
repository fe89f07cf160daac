"""How an encoder and its clusters are trained together, and what training looked like."""

from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class DeepRecipe:
    """How encoder and clusters are trained together.

    Attributes:
        epochs: Times every text is seen; the targets are computed anew before each.
        learning_rate: Highest rate, after a linear warm-up; it does not fall again.
        batch_size: Texts of a step.
        clustering: Weight of the clustering loss.
        masked: Weight of the masked-language loss.
        balance: Whether targets are divided by the size of clusters.
        masked_share: Share of a step's texts whose hidden tokens are guessed: guessing costs far
            more than clustering, and a part of the texts stands for all.
        tolerance: Training stops, once the warm-up is over, when fewer texts than this share change
            their cluster in an epoch.
        seed: Draws the order.
        weight_decay: AdamW's.
        warmup: Epochs in which the rate rises.
        clip: Largest norm of a gradient.
    """

    epochs: int
    learning_rate: float
    batch_size: int
    clustering: float
    masked: float
    balance: bool = True
    masked_share: float = 1.0
    tolerance: float = 0.0
    seed: int = 0
    weight_decay: float = 0.01
    warmup: float = 1.0
    clip: float = 1.0

    @property
    def parts(self) -> set[str]:
        """What of an encoder has a loss to follow."""
        used = {"layers": True, "centroids": self.clustering > 0, "head": self.masked > 0}
        return {part for part, trained in used.items() if trained}


@dataclass
class Course:
    """What training looked like before it and after each epoch: (epochs + 1) values of each.

    Attributes:
        members: The cluster of each of n texts.
        surety: Mean share of a text in its own cluster.
        silhouette: Mean silhouette of the texts; NaN if all are in one cluster, or each in its own.
        clustering: Mean clustering loss of the epoch; NaN before training and without this loss.
        masked: Mean masked-language loss of the epoch; NaN likewise.
    """

    members: list[list[int]] = field(default_factory=list)
    surety: list[float] = field(default_factory=list)
    silhouette: list[float] = field(default_factory=list)
    clustering: list[float] = field(default_factory=list)
    masked: list[float] = field(default_factory=list)

    @property
    def changed(self) -> float:
        """Share of texts whose cluster is not what it was the time before."""
        if len(self.members) < 2:
            return 1.0
        return float(np.mean(np.array(self.members[-1]) != np.array(self.members[-2])))
