import errno
import os
import time

import numpy as np
import pytest

from sentigeo.cache import Store, is_whole, load_array
from sentigeo.errors import CacheNotice, UserError


class Counter:
    """Makes arrays and counts how often it was asked to."""

    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return {"rows": np.arange(6).reshape(2, 3), "names": np.array(["a", "bc"])}


@pytest.fixture
def compute():
    return Counter()


def entry(folder):
    return next(path.parent for path in folder.rglob("entry.json"))


def test_second_call_reads_what_the_first_wrote(tmp_path, compute):
    first = Store(tmp_path).arrays("kind", {"a": 1, "b": [2]}, compute)
    second = Store(tmp_path).arrays("kind", {"b": [2], "a": 1}, compute)
    assert compute.calls == 1
    for found in (first, second):
        assert found["rows"].tolist() == [[0, 1, 2], [3, 4, 5]]
        assert found["names"].tolist() == ["a", "bc"]


def test_another_key_is_another_entry(tmp_path, compute):
    for key in ({"data": "x"}, {"data": "y"}, {"data": "x", "length": 1}):
        Store(tmp_path).arrays("kind", key, compute)
    assert compute.calls == 3


def flip_a_byte(folder):
    path = folder / "rows.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def cut_short(folder):
    path = folder / "rows.npy"
    path.write_bytes(path.read_bytes()[:-8])


def lose_an_array(folder):
    (folder / "rows.npy").unlink()


def lose_the_entry(folder):
    (folder / "entry.json").unlink()


def scramble_the_entry(folder):
    (folder / "entry.json").write_text("{")


@pytest.mark.parametrize(
    "damage",
    [flip_a_byte, cut_short, lose_an_array, lose_the_entry, scramble_the_entry],
)
def test_damage_is_noticed_and_mended(tmp_path, compute, damage):
    Store(tmp_path).arrays("kind", {}, compute)
    damage(entry(tmp_path))
    with pytest.warns(CacheNotice, match="kind .* computed again"):
        found = Store(tmp_path).arrays("kind", {}, compute)
    assert compute.calls == 2
    assert found["rows"].tolist() == [[0, 1, 2], [3, 4, 5]]
    Store(tmp_path).arrays("kind", {}, compute)
    assert compute.calls == 2


def test_damage_that_cannot_be_mended_is_not_handed_out(tmp_path, compute, monkeypatch):
    Store(tmp_path).arrays("kind", {}, compute)
    flip_a_byte(entry(tmp_path))
    monkeypatch.setattr("shutil.rmtree", lambda *_, **__: None)  # as where all is write-protected
    with pytest.warns(CacheNotice), pytest.raises(UserError, match="Cannot write to the cache"):
        Store(tmp_path).arrays("kind", {}, compute)


def test_failed_computation_leaves_nothing(tmp_path):
    with pytest.raises(ZeroDivisionError):
        Store(tmp_path).arrays("kind", {}, lambda: 1 / 0)
    assert not list(tmp_path.rglob("*.npy"))


def test_full_disk_is_one_sentence_and_leaves_nothing(tmp_path, compute, monkeypatch):
    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(UserError, match="No space left on device"):
        Store(tmp_path).arrays("kind", {}, compute)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_cache_folder_that_cannot_be_made(tmp_path, compute):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="Cannot write to the cache folder"):
        Store(tmp_path / "file").arrays("kind", {}, compute)


def test_folders_of_any_files(tmp_path):
    def fill(folder):
        (folder / "card.md").write_text("whole")

    folder = Store(tmp_path).folder("kind", {"a": 1}, fill)
    assert folder == Store(tmp_path).place("kind", {"a": 1})
    (folder / "card.md").write_text("hole")
    with pytest.warns(CacheNotice):
        Store(tmp_path).folder("kind", {"a": 1}, fill)
    assert (folder / "card.md").read_text() == "whole"


def test_two_writers_of_one_entry(tmp_path, compute):
    def slower():
        Store(tmp_path).arrays("kind", {}, compute)
        return compute()

    found = Store(tmp_path).arrays("kind", {}, slower)
    assert found["rows"].shape == (2, 3)
    assert not list(tmp_path.rglob(".part-*"))


def test_leftovers_of_killed_runs_are_swept_after_a_day(tmp_path, compute):
    for name, age in {".part-1-old": 90_000, ".part-2-new": 60}.items():
        (tmp_path / "kind" / name).mkdir(parents=True)
        os.utime(tmp_path / "kind" / name, (time.time() - age,) * 2)
    Store(tmp_path).arrays("kind", {}, compute)
    assert [path.name for path in tmp_path.glob("kind/.part-*")] == [".part-2-new"]


def test_an_entry_is_of_no_use_without_those_it_rests_on(tmp_path, compute):
    store = Store(tmp_path)
    store.arrays("kind", {}, compute)
    below = store.place("kind", {})
    above = store.folder("other", {}, lambda folder: None, rests_on=[below])
    assert is_whole(above)
    flip_a_byte(below)
    assert not is_whole(above)


def test_pickles_are_never_loaded(tmp_path):
    np.save(tmp_path / "rows.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="Python objects"):
        load_array(tmp_path / "rows.npy")
