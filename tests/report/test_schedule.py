import time
from threading import Event, Lock

import nbformat
import pytest
from nbformat.v4 import new_notebook

from sentigeo.errors import UserError
from sentigeo.report.runner import Task, read_tasks, run_tasks


def write(folder, name, **said):
    metadata = {"sentigeo": said} if said else {}
    nbformat.write(new_notebook(metadata=metadata), folder / f"{name}.ipynb")
    return folder / f"{name}.ipynb"


def test_needs_are_read_from_the_metadata(tmp_path):
    sources = [
        write(tmp_path, "01_a", threads=1, needs=[]),
        write(tmp_path, "02_b"),
        write(tmp_path, "04_d", needs=["01_a", "03_left_out"]),
        write(tmp_path, "05_e"),
    ]
    tasks = read_tasks(sources)
    assert [task.needs for task in tasks] == [
        (), ("01_a",), ("01_a",), ("01_a", "02_b", "04_d"),
    ]  # fmt: skip
    assert [task.one_thread for task in tasks] == [True, False, False, False]


def test_a_notebook_cannot_need_a_later_one(tmp_path):
    with pytest.raises(UserError, match=r"01_a\.ipynb needs '02_b', which does not come before it"):
        read_tasks([write(tmp_path, "01_a", needs=["02_b"])])


def run(tmp_path, at_once, **wanted):
    """Run tasks that take a moment; return which others ran when each began and ended."""
    tasks = [Task(tmp_path / name, tuple(needs.split()), True) for name, needs in wanted.items()]
    seen, now, lock = {}, set(), Lock()

    def one(task):
        with lock:
            now.add(task.name)
        time.sleep(0.1)
        with lock:
            seen[task.name] = sorted(now - {task.name})
            now.remove(task.name)

    run_tasks(tasks, one, at_once, stop=lambda: None)
    return seen


def test_independent_tasks_run_at_the_same_time(tmp_path):
    seen = run(tmp_path, 2, a="", b="")
    assert list(seen) in (["a", "b"], ["b", "a"])
    assert seen["a"] == ["b"] or seen["b"] == ["a"]


def test_one_at_a_time(tmp_path):
    assert run(tmp_path, 1, a="", b="") == {"a": [], "b": []}


def test_what_needs_another_waits_for_it(tmp_path):
    seen = run(tmp_path, 9, a="", b="a", c="a b")
    assert seen == {"a": [], "b": [], "c": []}


def test_what_must_wait_does_not_keep_others_from_beginning(tmp_path):
    seen = run(tmp_path, 2, a="", b="a", c="")
    assert list(seen)[-1] == "b"
    assert seen["a"] == ["c"] or seen["c"] == ["a"]


def test_the_longest_of_those_that_are_ready_begins_first(tmp_path):
    sources = [
        write(tmp_path, "01_short", needs=[], minutes=1),
        write(tmp_path, "02_long", needs=[], minutes=5),
        write(tmp_path, "03_longest", needs=["02_long"], minutes=9),
    ]
    began = []
    run_tasks(read_tasks(sources), lambda task: began.append(task.name), 1, stop=lambda: None)
    assert began == ["02_long", "03_longest", "01_short"]


def test_one_failure_stops_all_others(tmp_path):
    tasks = [Task(tmp_path / name, (), False) for name in "abc"]
    stopped, began = Event(), []

    def one(task):
        began.append(task.name)
        if task.name == "a":
            raise UserError("No.")
        assert stopped.wait(10)
        raise UserError("I was stopped.")

    with pytest.raises(UserError, match=r"^No\.$"):
        run_tasks(tasks, one, 2, stop=stopped.set)
    assert began == ["a", "b"]
