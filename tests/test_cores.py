import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import psutil
import pytest
from fake_notebooks import wait_for
from joblib.externals.loky import process_executor

from sentigeo import cores
from sentigeo.cores import NOTE_VARIABLE, run_in_processes, run_in_threads, track
from sentigeo.errors import UserError


def power(base, exponent):
    return base**exponent, os.getpid()


def is_gone(process):
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def at_work(parent):
    return [own for own in parent.children() if "LokyProcess" in " ".join(own.cmdline())]


def refuse(word):
    raise UserError(word)


@pytest.mark.parametrize("processes", [1, 2])
def test_results_come_in_order_however_many_processes_work(monkeypatch, processes):
    monkeypatch.setattr(cores, "count_processes", lambda: processes)
    found = list(run_in_processes(power, [(2, n) for n in range(5)], "work", weights=[1] * 5))
    assert [value for value, _ in found] == [1, 2, 4, 8, 16]
    assert (os.getpid() in {pid for _, pid in found}) == (processes == 1)


def test_only_the_warning_of_a_replaced_process_is_silenced(monkeypatch):
    monkeypatch.setattr(cores, "count_processes", lambda: 2)
    assert f'"{cores.RESTARTED}' in Path(process_executor.__file__).read_text("utf-8")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        for _ in run_in_processes(power, [(2, 1)], "work"):
            for text in (f"{cores.RESTARTED} executor.", "Something else."):
                warnings.warn(text, UserWarning, stacklevel=1)
    assert [str(own.message) for own in said] == ["Something else."]


def test_a_failure_is_told():
    with pytest.raises(UserError, match=r"^No\.$"):
        list(run_in_processes(refuse, [("No.",), ("No.",)], "work"))


def test_a_killed_process_is_told(monkeypatch):
    monkeypatch.setattr(cores, "count_processes", lambda: 2)
    with pytest.raises(UserError, match="was killed"):
        list(run_in_processes(signal.raise_signal, [(signal.SIGKILL,)], "work"))


def test_threads_keep_the_order():
    assert list(run_in_threads(abs, [-3, 2, -1], 2)) == [3, 2, 1]


def test_processes_end_when_their_parent_is_killed():
    code = (
        "import time\nfrom sentigeo import cores\ncores.count_processes = lambda: 2\n"
        "list(cores.run_in_processes(time.sleep, [(0.1,)] * 999, 'work'))\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code])
    started = psutil.Process(parent.pid)
    wait_for(lambda: len(at_work(started)) == 2, "no process began")
    children = at_work(started)
    parent.kill()
    parent.wait()
    wait_for(lambda: all(map(is_gone, children)), "a process was left behind")


def test_track_leaves_notes_in_a_report(tmp_path, monkeypatch, capsys):
    note = tmp_path / "note"
    monkeypatch.setenv(NOTE_VARIABLE, str(note))
    seen = []
    for item in track("abc", "work", weights=[1, 1, 2]):
        seen.append((item, note.read_text()[:8] if note.exists() else None))
    assert seen == [("a", None), ("b", "work 25%"), ("c", "work 50%")]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("every", "count"), [(0.0, 4), (60.0, 0)])
def test_track_without_a_terminal_writes_a_line_now_and_then(monkeypatch, capsys, every, count):
    monkeypatch.delenv(NOTE_VARIABLE, raising=False)
    monkeypatch.setattr(cores, "EVERY", every)
    assert list(track([1, 2, 3, 4], "work", unit="tokens")) == [1, 2, 3, 4]
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == count
    assert all(line.startswith("work ") and line.endswith(" s left") for line in lines)
