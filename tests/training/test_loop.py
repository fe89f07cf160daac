from types import SimpleNamespace

import numpy as np
import pytest
import torch
from accelerate import Accelerator

from sentigeo.cache import Store
from sentigeo.errors import UserError
from sentigeo.training.loop import (
    forget_state,
    load_state,
    obtain,
    optimizer_tensors,
    own_rows,
    restore_optimizer,
    save_state,
    seed_step,
    take_step,
)


def process(rank, world):
    return SimpleNamespace(process_index=rank, num_processes=world)


def test_processes_share_a_batch_and_average_to_its_mean():
    batch, losses = np.array([4, 7, 9]), {4: 1.0, 7: 2.0, 9: 6.0}
    parts = [own_rows(batch, process(rank, 2)) for rank in (0, 1)]
    assert sorted(np.concatenate([rows for rows, _ in parts])) == [4, 7, 9]
    sums = [weight * sum(losses[row] for row in rows) for rows, weight in parts]
    assert np.mean(sums) == pytest.approx(3.0)


def test_a_process_with_nothing_to_do_takes_a_row_that_does_not_count():
    rows, weight = own_rows(np.array([4]), process(1, 2))
    assert (rows.tolist(), weight) == ([4], 0.0)


def test_a_step_can_be_repeated():
    first, again, other = (seed_step(3, 1, step, process(0, 1)).random() for step in (0, 0, 1))
    assert first == again != other


def test_a_step_lowers_the_loss_and_clips():
    layer = torch.nn.Linear(1, 1, bias=False)
    before = layer.weight.item()
    optimizer = torch.optim.SGD(layer.parameters(), lr=1.0)
    take_step(1000 * layer.weight.sum(), layer, optimizer, Accelerator(), clip=0.5, epoch=0)
    assert before - layer.weight.item() == pytest.approx(0.5)
    with pytest.raises(UserError, match="no longer a number in epoch 4"):
        take_step(torch.tensor(float("inf")), layer, optimizer, Accelerator(), 1.0, epoch=3)


def test_what_is_stored_is_not_made_again(tmp_path):
    store, made = Store(tmp_path), []

    def fill(folder):
        made.append(folder)
        (folder / "x").write_text("1")

    for _ in range(2):
        folder = obtain(store, "kind", {"a": 1}, fill, Accelerator())
        assert (folder / "x").read_text() == "1"
    assert len(made) == 1


def test_a_state_is_whole_or_not_there(tmp_path):
    state = tmp_path / "s"
    assert load_state(state) is None
    for epochs in (9, 10):
        save_state(state, {"w": torch.tensor([float(epochs)])}, {"epochs": epochs})
    tensors, facts = load_state(state)
    assert (tensors["w"].item(), facts) == (10.0, {"epochs": 10})
    assert list(tmp_path.iterdir()) == [state]
    state.write_bytes(state.read_bytes()[:-2])
    assert load_state(state) is None


def test_forgetting_a_state_leaves_those_of_others(tmp_path):
    for name in ("s", "s2", ".part-0-s"):
        save_state(tmp_path / name, {"w": torch.zeros(1)}, {})
    forget_state(tmp_path / "s")
    forget_state(tmp_path / "s")
    assert {path.name for path in tmp_path.iterdir()} == {"s2", ".part-0-s"}


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
