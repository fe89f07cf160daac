"""Soft clusters: how much each text belongs to each cluster, and what that should become.

The clustering loss of deep embedded clustering (Xie et al., 2016), as "Unsupervised Fine-tuning for
Text Clustering" (COLING 2020) uses it.
"""

import torch
from torch import Tensor


def assign_softly(vectors: Tensor, centroids: Tensor, alpha: float = 1.0) -> Tensor:
    """Return (n, k) shares of n texts in k clusters, by Student's t kernel; rows sum to 1.

    Args:
        vectors: (n, d).
        centroids: (k, d).
        alpha: Degrees of freedom; fewer make the shares of far clusters larger.
    """
    squares = (vectors[:, None] - centroids).square().sum(dim=-1)
    kernel = (1 + squares / alpha).pow(-(alpha + 1) / 2)
    return kernel / kernel.sum(dim=1, keepdim=True)


def sharpen(shares: Tensor, balance: bool = True) -> Tensor:
    """Return the (n, k) shares that training aims at: sure ones become surer.

    Args:
        shares: (n, k) of the whole set, so that the size of a cluster is known.
        balance: Divide by the clusters' sizes, which keeps large ones from growing.
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
