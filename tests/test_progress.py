import io

import pytest

from sentigeo import progress as progress_module
from sentigeo.progress import NOTE_VARIABLE, RunProgress, track


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
    monkeypatch.setattr(progress_module, "EVERY", every)
    assert list(track([1, 2, 3, 4], "work", unit="tokens")) == [1, 2, 3, 4]
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == count
    assert all(line.startswith("work ") and line.endswith(" s left") for line in lines)
