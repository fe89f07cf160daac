import pytest
import torch

from sentigeo.training.state import (
    MovingAverage,
    forget_state,
    load_state,
    optimizer_tensors,
    restore_optimizer,
    save_state,
)


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


def test_the_newest_whole_state_counts(tmp_path):
    state = tmp_path / "s"
    assert load_state(state) is None
    for epochs in (9, 10):
        save_state(state, epochs, {"weights": {"w": torch.tensor([float(epochs)])}}, {"e": epochs})
    (tmp_path / "s-11").mkdir()
    (tmp_path / "s-11" / "weights").write_bytes(b"half")
    tensors, facts = load_state(state)
    assert (tensors["weights"]["w"].item(), facts) == (10.0, {"e": 10})
    assert not (tmp_path / "s-9").exists()
    forget_state(state)
    assert not list(tmp_path.glob("s*"))


def test_an_optimizer_goes_on_where_it_was():
    def walk(weight, optimizer, steps):
        for _ in range(steps):
            optimizer.zero_grad()
            (weight**2).sum().backward()
            optimizer.step()

    weights = [torch.nn.Parameter(torch.tensor([3.0])) for _ in range(2)]
    first, second = (torch.optim.AdamW([weight], lr=0.1) for weight in weights)
    walk(weights[0], first, 3)
    weights[1].data.copy_(weights[0].data)
    taken = {name: value.clone() for name, value in optimizer_tensors(first).items()}
    restore_optimizer(second, taken)
    walk(weights[0], first, 2)
    walk(weights[1], second, 2)
    assert weights[0].item() == weights[1].item()
