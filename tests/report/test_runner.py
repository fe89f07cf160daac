import shutil
import subprocess
import sys
from functools import partial

import psutil
import pytest
from fake_notebooks import snapshot, wait_for, write_chapter, write_notebook

from sentigeo.errors import UserError
from sentigeo.paths import run_paths
from sentigeo.profile import load_profile
from sentigeo.report.execute import Process
from sentigeo.report.fingerprint import Conditions
from sentigeo.report.publish import run_chapter
from sentigeo.report.runner import ReportRun, run_chapters

COUNT = """from pathlib import Path
log = Path({log!r})
log.write_text(log.read_text() + "{name} " if log.exists() else "{name} ")"""
LEAVE = """folder = chapter.store.folder("things", {"of": "chapter 1"}, lambda folder: None)
chapter.leave("thing", folder)"""
TAKE = """estimate = chapter.recall("01_first.metric")
chapter.fetch("thing")"""
EVERY = ["01_first", "02_second", "03_third"]


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A repository of three chapters that note when they are executed; the third stands alone."""
    monkeypatch.setenv("SENTIGEO_CACHE", str(tmp_path / "cache"))
    write(tmp_path, "01_first", LEAVE, needs=[])
    write(tmp_path, "02_second", TAKE, needs=["01_first"])
    write(tmp_path, "03_third", needs=[])
    return tmp_path


def write(root, name, *cells, needs, **said):
    count = COUNT.format(log=str(root / "log"), name=name)
    return write_chapter(root, name, *cells, count, threads=1, needs=needs, **said)


def executed(root, fresh=None):
    """Run the chapters, one of them perhaps afresh; return those that were executed."""
    (root / "log").write_text("")
    paths = run_paths("quick", root)
    run = ReportRun(load_profile("quick"), paths, paths.stage, root, Conditions())
    run_chapters(run.plan(), run, fresh, fresh is not None)
    return (root / "log").read_text().split()


@pytest.mark.usefixtures("in_process")
def test_chapters_are_executed_when_something_changed(root):
    assert sorted(executed(root)) == EVERY
    before = snapshot(root / "build/stage/quick")
    shutil.rmtree(root / "build")
    assert executed(root) == []
    again = snapshot(root / "build/stage/quick")
    assert {name: before[name] for name in again} == again
    assert executed(root, fresh="03_third") == ["03_third"]
    write(root, "01_first", LEAVE, "# changed", needs=[])
    assert executed(root) == ["01_first"]  # it recorded the same as before
    write(root, "01_first", LEAVE, "chapter.record('01_first.more', estimate)", needs=[])
    assert executed(root) == ["01_first", "02_second"]
    shutil.rmtree(root / "cache/things")
    assert executed(root) == ["01_first"]


@pytest.mark.usefixtures("in_process")
def test_a_run_goes_on_where_it_failed_and_an_edited_chapter_is_not_kept(root):
    source = root / "notebooks/01_first.ipynb"
    edit = f"p = Path({str(source)!r}); p.write_text(p.read_text() + ' ')"
    write(root, "01_first", LEAVE, f"from pathlib import Path; {edit}", needs=[])
    write(root, "03_third", "1 / 0", needs=["02_second"])
    with pytest.raises(UserError, match=r"03_third\.ipynb: ZeroDivisionError"):
        executed(root)
    failed = root / "build/failed/quick"
    assert [path.name for path in failed.iterdir()] == ["03_third.ipynb"]
    write(root, "03_third", "import os; assert os.environ['OMP_NUM_THREADS'] == '1'", needs=[])
    assert sorted(executed(root)) == ["01_first", "03_third"]
    assert not failed.exists()


@pytest.mark.usefixtures("in_process")
def test_what_is_not_needed_is_not_found(root):
    write(root, "02_second", TAKE, needs=[])
    with pytest.raises(UserError, match=r"02_second needs has recorded '01_first\.metric'"):
        executed(root)


@pytest.mark.usefixtures("in_process")
def test_the_longest_of_those_that_are_ready_begins_first(root, monkeypatch):
    monkeypatch.setattr("sentigeo.report.runner.count_processes", lambda: 1)
    write(root, "01_first", LEAVE, needs=[], minutes=1)
    write(root, "02_second", needs=[], minutes=5)
    write(root, "03_third", needs=["02_second"], minutes=9)
    assert executed(root) == ["02_second", "03_third", "01_first"]


@pytest.mark.usefixtures("in_process")
def test_one_chapter_is_executed_after_what_it_needs(root, capsys):
    (root / "log").write_text("")
    quick = load_profile("quick")
    copy = run_chapter("2", quick, root)
    assert copy == root / "build/chapters/quick/reports/02_second.ipynb"
    assert (copy.parents[1] / "figures/02_second_line.png").is_file()
    assert (root / "build/parts/quick/02_second.json").is_file()
    assert "01_first is not in the cache: executed first." in capsys.readouterr().err
    run_chapter("02_second", quick, root)
    assert (root / "log").read_text().split() == ["01_first", "02_second"]
    assert "02_second unchanged, from the cache" in capsys.readouterr().err
    run_chapter("02", quick, root, fresh=True)
    assert (root / "log").read_text().split()[2:] == ["02_second"]
    assert executed(root) == ["03_third"]  # the rest is there
    skipped = Conditions(skipped={"03_third": "It has no use."})
    with pytest.raises(UserError, match=r"03_third does not apply to this run: It has no use\."):
        run_chapter("3", quick, root, skipped)


LONG = """import os, subprocess, sys, time
from pathlib import Path
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(99)"])
Path({marker!r} + ".part").write_text(f"{{os.getpid()}} {{child.pid}}")
Path({marker!r} + ".part").rename({marker!r})
time.sleep(99)"""


def long_notebook(root, name, **said):
    """Write a notebook that takes long, in its kernel and in a process that this starts."""
    return write_notebook(root, name, LONG.format(marker=str(root / "marker")), **said)


def is_gone(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def assert_gone(root, *more):
    pids = [*map(int, (root / "marker").read_text().split()), *more]
    wait_for(lambda: all(map(is_gone, pids)), "a kernel or its process was left behind")


def test_a_failure_ends_the_others(root, monkeypatch):
    monkeypatch.setattr("sentigeo.report.runner.count_processes", lambda: 2)
    shutil.rmtree(root / "notebooks")
    long_notebook(root, "01_first", needs=[])
    marker = str(root / "marker")
    waiting = f"import time, os\nwhile not os.path.exists({marker!r}): time.sleep(0.05)"
    write_notebook(root, "02_second", waiting, "print('so far')", "1 / 0", needs=[])
    said = "02_second.ipynb, cell 6: ZeroDivisionError: division by zero\nThe notebook as far"
    with pytest.raises(UserError, match=said):
        executed(root)
    assert_gone(root)
    [failed] = (root / "build/failed/quick").iterdir()
    assert failed.name == "02_second.ipynb"
    assert "so far" in failed.read_text()


def test_a_notebook_that_takes_too_long_is_ended(root):
    shutil.rmtree(root / "notebooks")
    source = long_notebook(root, "01_first", needs=[])
    process = Process(source, root / "copy.ipynb", {}, root / "notes", {}, timeout=60)
    process.start()
    wait_for((root / "marker").exists, "it did not begin")
    process.timeout = 0
    with pytest.raises(UserError, match=r"01_first\.ipynb took longer than its 0 seconds"):
        process.poll()
    assert_gone(root)
    assert "time.sleep(99)" in (root / "copy.ipynb").read_text()  # as far as it got


def test_a_kernel_ends_when_the_process_of_its_chapter_is_killed(root):
    source = long_notebook(root, "01_first")
    process = Process(source, root / "copy.ipynb", {}, root / "notes", {})
    process.start()
    wait_for((root / "marker").exists, "it did not begin")
    [child] = [own for own in psutil.Process().children() if "execute" in " ".join(own.cmdline())]
    child.kill()
    wait_for(partial(is_gone, int((root / "marker").read_text().split()[0])), "kernel left")
    with pytest.raises(UserError, match=r"01_first\.ipynb: its process died"):
        process.poll()


def test_everything_ends_with_the_runner(root):
    long_notebook(root, "01_first", needs=[])
    code = (
        "import pathlib, signal, sys\nfrom sentigeo.profile import load_profile\n"
        "from sentigeo.report.publish import run_report\n"
        "signal.signal(signal.SIGTERM, signal.default_int_handler)\n"  # as the command does
        "run_report(load_profile('quick'), pathlib.Path(sys.argv[1]))"
    )
    run = subprocess.Popen([sys.executable, "-c", code, str(root)], stderr=subprocess.DEVNULL)
    wait_for((root / "marker").exists, "it did not begin")
    children = [own.pid for own in psutil.Process(run.pid).children(recursive=True)]
    run.terminate()
    run.wait(60)
    assert_gone(root, *children)
    assert not (root / "build/quick").exists()
