import io
import json
import re

import nbformat
import psutil
import pytest
from fake_notebooks import write_notebook
from nbformat.v4 import new_code_cell, new_markdown_cell

from sentigeo.errors import UserError
from sentigeo.report.execute import RunProgress, execute, leave_out, main, tidy


def write_job(tmp_path, *cells):
    """Write a notebook, and the job of executing it."""
    source, copy = write_notebook(tmp_path, "01_first", *cells), tmp_path / "copy.ipynb"
    told = {"source": str(source), "copy": str(copy)}
    told |= {"parameters": {"profile": "laptop"}, "unmet": {"english": "It is not."}}
    (tmp_path / "job.json").write_text(json.dumps(told))
    return tmp_path / "job.json"


def test_a_copy_is_tidy_and_says_where_it_is(tmp_path):
    execute(write_job(tmp_path, "profile", ("1 / 0", ["english"])))
    copy = nbformat.read(tmp_path / "copy.ipynb", as_version=4)
    nbformat.validate(copy)
    assert copy.cells[3].outputs[0].data["text/plain"] == "'laptop'"
    ids = ["title", "cell-0", "injected-parameters", "cell-1", "left-out-3"]
    assert [cell.id for cell in copy.cells] == ids
    assert "papermill" not in json.dumps(copy)
    assert (tmp_path / "job.cell").read_text() == "5 5"


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("from sentigeo import errors\nraise errors.UserError('No.')", r"^01_first\.ipynb: No\.$"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "the kernel died"),
        ("raise OSError(28, 'No space left on device')", r"^01_first\.ipynb: .*No space left"),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_told(tmp_path, code, message):
    with pytest.raises(UserError, match=message):
        execute(write_job(tmp_path, code))


def test_a_failed_job_leaves_word(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", _Endless())
    assert main(str(write_job(tmp_path, "[][3]"))) == 1
    traceback = r"IndexError(.|\n)*\n01_first\.ipynb, cell 4: IndexError: list index"
    assert re.search(traceback, (tmp_path / "job.error").read_text())
    children = psutil.Process().children()
    running = [own for own in children if own.status() != psutil.STATUS_ZOMBIE]
    assert not [own for own in running if "ipykernel" in " ".join(own.cmdline())]


class _Endless:
    """The end of a pipe whose other end stays open."""

    def read(self):
        from threading import Event

        Event().wait()


def test_a_run_of_cells_that_do_not_fit_becomes_one_sentence():
    cells = [
        new_markdown_cell("Always."),
        new_markdown_cell("Of pairs.", metadata={"tags": ["pairs"]}),
        new_code_cell("pairs()", metadata={"tags": ["pairs", "english"]}),
        new_code_cell("both()", metadata={"tags": ["english"]}),
        new_code_cell("classes()", metadata={"tags": ["two-classes"]}),
    ]
    kept = leave_out(cells, {"pairs": "There are none.", "two-classes": "There are three."})
    assert [cell.source for cell in kept] == [
        "Always.", "*Left out: There are none.*", "both()", "*Left out: There are three.*"
    ]  # fmt: skip
    assert [cell.id for cell in kept[1::2]] == ["left-out-1", "left-out-3"]
    assert leave_out(cells, {}) == cells


def test_tidying_twice_changes_nothing(tmp_path):
    path = write_notebook(tmp_path, "01_first")
    tidy(path)
    before = path.read_bytes()
    tidy(path)
    assert path.read_bytes() == before


class Terminal(io.StringIO):
    def isatty(self):
        return True


def run(notes, stream, every=60.0):
    with RunProgress(3, notes, stream, every) as progress:
        progress.reuse("00_z")
        progress.start("01_a")
        progress.show()  # it has not said anything yet
        progress.start("02_b")  # at the same time
        (notes / "01_a.cell").write_text("3 3")
        (notes / "02_b.cell").write_text("3 9")
        (notes / "01_a.note").write_text("trunk 40%, 7 s left")
        progress.show()
        progress.finish("02_b", 0.5)
        progress.finish("01_a", 1.25)
    return stream.getvalue()


def test_plain_output_is_one_line_per_notebook(tmp_path):
    assert run(tmp_path, io.StringIO()).splitlines() == [
        "[1/3] 00_z unchanged, from the cache",
        "[2/3] 02_b in 0.5 s",
        "[3/3] 01_a in 1.2 s",
    ]


def test_plain_output_speaks_up_when_a_notebook_takes_long(tmp_path):
    text = run(tmp_path, io.StringIO(), every=0.0)
    assert "01_a: cell 3 of 3 after 0 s (trunk 40%, 7 s left)\n" in text
    assert "02_b: cell 3 of 9 after 0 s\n" in text


def test_terminal_gets_bars(tmp_path):
    text = run(tmp_path, Terminal())
    assert "00_z unchanged, from the cache" in text
    assert "01_a: 100%" in text
    assert "02_b: 100%" in text
    assert "report: 100%" in text
    assert "trunk 40%, 7 s left" in text
