from types import SimpleNamespace

import numpy as np
import pytest
import torch

from sentigeo.cache import Store
from sentigeo.errors import UserError
from sentigeo.training.loop import Task, fit, load_state, obtain, run_epoch, save_state, train_all


class Walk(Task):
    """Lowers a weight for some epochs of two steps; the slope of its loss is given."""

    def __init__(self, epochs=3, slope=1000.0, clip=0.5):
        body = torch.nn.Linear(1, 1, bias=False)
        torch.nn.init.ones_(body.weight)
        recipe = {"epochs": epochs, "learning_rate": 0.1, "weight_decay": 0.01, "clip": clip}
        super().__init__(body, SimpleNamespace(**recipe))
        self.slope, self.notes["begun"] = slope, []

    def begin(self, epoch):
        self.notes["begun"].append(epoch)
        return [np.array([epoch]), np.array([epoch + 1])]

    def rate(self, epoch, step, steps):
        return 1.0 / (1 + epoch)

    def loss(self, model, batch, epoch, step):
        return self.slope * (batch[0] + 1) * model(torch.ones(1, 1)).square().sum()


def process(rank, world):
    task = Walk()
    task.accelerator = SimpleNamespace(process_index=rank, num_processes=world)
    return task


def test_processes_share_a_batch_and_average_to_its_mean():
    batch, losses = np.array([4, 7, 9]), {4: 1.0, 7: 2.0, 9: 6.0}
    parts = [process(rank, 2).own_rows(batch) for rank in (0, 1)]
    assert sorted(np.concatenate([rows for rows, _ in parts])) == [4, 7, 9]
    sums = [weight * sum(losses[row] for row in rows) for rows, weight in parts]
    assert np.mean(sums) == pytest.approx(3.0)


def test_a_process_with_nothing_to_do_takes_a_row_that_does_not_count():
    rows, weight = process(1, 2).own_rows(np.array([4]))
    assert (rows.tolist(), weight) == ([4], 0.0)


def test_steps_follow_the_rate_and_clip():
    task = Walk()
    optimizer = torch.optim.SGD(task.body.parameters(), lr=99.0)
    run_epoch(task, task.body, optimizer, 1)
    # At most 0.5 in length, at a rate of 1/2, from 1; the second step from 0.75.
    assert task.body.weight.item() == pytest.approx(1 - 0.25 - 0.25)


def test_a_loss_that_is_no_number_ends_training():
    task = Walk(slope=float("inf"))
    with pytest.raises(UserError, match="no longer a number in epoch 1"):
        fit(task)


def test_what_is_stored_is_not_made_again_and_its_state_is_forgotten(tmp_path):
    store, made = Store(tmp_path), []

    def fill(state, folder):
        made.append(folder)
        for path in (state, state.with_name("another")):
            save_state(path, {"w": torch.zeros(1)}, {})
        (folder / "x").write_text("1")

    for _ in range(2):
        folder = obtain(store, "kind", {"a": 1}, fill)
        assert (folder / "x").read_text() == "1"
    assert len(made) == 1
    assert [path.name for path in (tmp_path / "training").iterdir()] == ["another"]


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


def test_weights_and_optimizer_go_on_where_they_were(tmp_path):
    whole = Walk(epochs=4, slope=1.0)
    fit(whole)
    fit(Walk(epochs=2, slope=1.0), tmp_path / "s")
    resumed, before = Walk(epochs=4, slope=1.0), load_state(tmp_path / "s")[1]
    fit(resumed, tmp_path / "s")
    assert before == {"epochs": 2, "notes": {"begun": [0, 1]}}
    assert resumed.notes["begun"] == [0, 1, 2, 3]
    assert resumed.body.weight.item() == whole.body.weight.item()


def note_threads(path):
    path.write_text(str(torch.get_num_threads()))


def test_jobs_have_one_thread_each(tmp_path, monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")  # in this process
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    train_all(note_threads, [(tmp_path / "a",), (tmp_path / "b",)], "noting")
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)
    assert [(tmp_path / name).read_text() for name in "ab"] == ["1", "1"]
