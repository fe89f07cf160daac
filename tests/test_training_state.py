import pytest
import torch

from sentigeo.training_state import MovingAverage


def test_moving_average_by_hand():
    weight = torch.nn.Parameter(torch.tensor([0.0]))
    average = MovingAverage([weight], decay=0.5)
    expected = 0.0
    for step, value in enumerate([4.0, 8.0, 2.0, 6.0, 1.0, 9.0, 3.0, 5.0, 7.0, 0.5], start=1):
        weight.data.fill_(value)
        average.update()
        decay = min(0.5, (1 + step) / (10 + step))
        expected = decay * expected + (1 - decay) * value
    average.swap()
    assert weight.item() == pytest.approx(expected)
    average.swap()
    assert weight.item() == 0.5
