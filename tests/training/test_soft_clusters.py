import pytest
import torch

from sentigeo.training.deep_encoder import assign_softly, divergence_loss, sharpen

POINTS = torch.tensor([[0.0], [1.0], [3.0]])
CENTROIDS = torch.tensor([[0.0], [2.0]])
# Kernels 1 / (1 + distance squared): (1, 1/5), (1/2, 1/2), (1/10, 1/2).
SHARES = torch.tensor([[5 / 6, 1 / 6], [1 / 2, 1 / 2], [1 / 6, 5 / 6]])


def test_shares_by_hand():
    assert torch.allclose(assign_softly(POINTS, CENTROIDS), SHARES)
    # With three degrees of freedom kernels are (1 + distance squared / 3) ** -2.
    expected = torch.tensor([1.0, (1 + 4 / 3) ** -2])
    found = assign_softly(POINTS, CENTROIDS, alpha=3.0)[0]
    assert torch.allclose(found, expected / expected.sum())


def test_targets_by_hand():
    shares = torch.tensor([[0.9, 0.1], [0.6, 0.4]])  # sizes 1.5 and 0.5
    balanced = torch.tensor([[0.81 / 1.5, 0.01 / 0.5], [0.36 / 1.5, 0.16 / 0.5]])
    assert torch.allclose(sharpen(shares), balanced / balanced.sum(dim=1, keepdim=True))
    plain = torch.tensor([[0.81, 0.01], [0.36, 0.16]])
    assert torch.allclose(sharpen(shares, balance=False), plain / plain.sum(dim=1, keepdim=True))
    assert sharpen(shares)[1, 1] > 0.5 > sharpen(shares, balance=False)[1, 1]


def test_the_loss_by_hand():
    targets = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    shares = torch.tensor([[0.5, 0.5], [0.25, 0.75]])
    second = 0.5 * torch.log(torch.tensor(2.0)) + 0.5 * torch.log(torch.tensor(2 / 3))
    expected = (torch.log(torch.tensor(2.0)) + second) / 2
    assert divergence_loss(targets, shares) == pytest.approx(float(expected))
    assert divergence_loss(targets, targets) == 0


def test_an_empty_cluster_and_one_cluster():
    far = torch.tensor([[0.0], [1e20]])
    shares = assign_softly(POINTS, far)
    assert torch.isfinite(sharpen(shares)).all()
    assert torch.isfinite(divergence_loss(sharpen(shares), shares))
    assert (assign_softly(POINTS, CENTROIDS[:1]) == 1).all()


def test_gradients_are_those_of_small_changes():
    points = POINTS.double().requires_grad_()
    centroids = CENTROIDS.double().requires_grad_()
    targets = sharpen(assign_softly(points, centroids)).detach()
    assert torch.autograd.gradcheck(
        lambda p, c: divergence_loss(targets, assign_softly(p, c, 1.5)), (points, centroids)
    )
