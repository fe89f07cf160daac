from types import SimpleNamespace

import numpy as np
import pytest
import torch
from accelerate import Accelerator

from sentigeo.cache import Store
from sentigeo.errors import UserError
from sentigeo.training.state import obtain, own_rows, seed_step, take_step


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
