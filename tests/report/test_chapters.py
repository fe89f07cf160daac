import os
import shutil
import signal
import subprocess
import sys
import time

import nbformat
import psutil
import pytest
from test_report import OPEN, RECORD, snapshot, wait_for, write_notebook

from sentigeo import report
from sentigeo.errors import UserError
from sentigeo.profile import load_profile
from sentigeo.report.publish import run_report

COUNT = """from pathlib import Path
log = Path({log!r})
log.write_text(log.read_text() + "{name} " if log.exists() else "{name} ")"""
LEAVE = """folder = chapter.store.folder("things", {"of": "chapter 1"}, lambda folder: None)
chapter.leave("thing", folder)"""
TAKE = """estimate = chapter.recall("01_first.metric")
chapter.fetch("thing")"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A repository of three chapters that note when they are executed; the third stands alone."""
    monkeypatch.setenv("SENTIGEO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(report, "build_site", lambda reports, *_: (reports / "site").mkdir())
    write(tmp_path, "01_first", LEAVE, needs=[])
    write(tmp_path, "02_second", TAKE, needs=["01_first"])
    write(tmp_path, "03_third", needs=[])
    return tmp_path


def write(root, name, *cells, **said):
    opening = [OPEN.format(name=name), RECORD.format(name=name, last=True)]
    count = COUNT.format(log=str(root / "log"), name=name)
    path = write_notebook(root, name, *opening, *cells, count)
    notebook = nbformat.read(path, as_version=4)
    notebook.metadata["sentigeo"] = {"threads": 1, **said}
    nbformat.write(notebook, path)
    return path


def executed(root, **options):
    """Report; return the chapters that were executed."""
    (root / "log").write_text("")
    run_report(load_profile("quick"), root, **options)
    return sorted((root / "log").read_text().split())


EVERY = ["01_first", "02_second", "03_third"]


def test_unchanged_chapters_are_taken_from_the_cache(root):
    assert executed(root) == EVERY
    before = snapshot(root / "build/quick")
    assert len(before) == 3 * 3 + 1  # a copy, a figure and a page each; the results
    shutil.rmtree(root / "build")
    assert executed(root) == []
    assert snapshot(root / "build/quick") == before  # the seconds too
    assert executed(root, fresh=True) == EVERY
    assert executed(root) == []


def test_a_changed_chapter_is_executed_with_those_that_need_what_it_recorded(root):
    executed(root)
    write(root, "02_second", TAKE, "# changed", needs=["01_first"])
    assert executed(root) == ["02_second"]
    write(root, "01_first", LEAVE, "# changed", needs=[])
    assert executed(root) == ["01_first"]  # it recorded the same as before
    write(root, "01_first", LEAVE, "chapter.record('01_first.more', estimate)", needs=[])
    assert executed(root) == ["01_first", "02_second"]


def test_a_chapter_whose_arrays_are_gone_is_executed(root):
    executed(root)
    shutil.rmtree(root / "cache/things")
    assert executed(root) == ["01_first"]


def test_a_chapter_that_was_edited_while_it_ran_is_not_kept(root):
    source = root / "notebooks/03_third.ipynb"
    edit = f"p = Path({str(source)!r}); p.write_text(p.read_text() + ' ')"
    write(root, "03_third", f"from pathlib import Path; {edit}", needs=[])
    executed(root)
    assert executed(root) == ["03_third"]


def test_a_report_goes_on_where_it_failed(root):
    write(root, "03_third", "1 / 0", needs=["01_first", "02_second"])
    with pytest.raises(UserError, match="ZeroDivisionError"):
        executed(root)
    write(root, "03_third", needs=["01_first", "02_second"])
    assert executed(root) == ["03_third"]


def test_what_is_not_needed_is_not_found(root):
    write(root, "02_second", TAKE, needs=[])
    with pytest.raises(UserError, match=r"No chapter has recorded '01_first\.metric' yet"):
        executed(root)


def test_a_chapter_can_be_held_to_one_thread(root):
    write(root, "03_third", "import os; assert os.environ['OMP_NUM_THREADS'] == '1'", needs=[])
    assert executed(root) == EVERY


LONG = """import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(99)"])
Path({marker!r}).write_text(f"{{os.getpid()}} {{child.pid}}")
time.sleep(99)"""


def long_cell(root):
    return "import os; from pathlib import Path\n" + LONG.format(marker=str(root / "marker"))


def gone(pid):
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def assert_gone(root, seconds=15):
    pids = [int(pid) for pid in (root / "marker").read_text().split()]
    deadline = time.monotonic() + seconds
    while not all(gone(pid) for pid in pids):
        assert time.monotonic() < deadline, "a kernel or its process was left behind"
        time.sleep(0.1)


def test_a_failure_ends_the_other_kernels(root, monkeypatch):
    monkeypatch.setattr("sentigeo.report.runner.cpu_count", lambda: 2)
    write(root, "01_first", long_cell(root), needs=[])
    marker = str(root / "marker")
    waiting = f"import time\nwhile not Path({marker!r}).exists(): time.sleep(0.1)"
    write(root, "02_second", f"from pathlib import Path\n{waiting}", "1 / 0", needs=[])
    with pytest.raises(UserError, match="ZeroDivisionError: division by zero\nThe notebook"):
        executed(root)
    assert_gone(root)
    failed = [path.name for path in (root / "build/failed/quick").iterdir()]
    assert failed == ["02_second.ipynb"]


def test_ctrl_c_ends_every_kernel(root):
    write(root, "01_first", long_cell(root), needs=[])
    code = (
        "import sys, pathlib; from sentigeo.profile import load_profile; "
        "from sentigeo.report import run_report; "
        "run_report(load_profile('quick'), pathlib.Path(sys.argv[1]))"
    )
    run = subprocess.Popen([sys.executable, "-c", code, str(root)], stderr=subprocess.DEVNULL)
    wait_for(root / "marker")
    time.sleep(0.5)  # until the file is written
    os.kill(run.pid, signal.SIGINT)
    run.wait(30)
    assert_gone(root)
    assert not (root / "build/quick").exists()
