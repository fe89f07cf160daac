import io
import time

from sentigeo.progress import NOTE_VARIABLE, RunProgress, track


class Terminal(io.StringIO):
    def isatty(self):
        return True


def run(notes, stream, every=60.0, wait=0.0):
    with RunProgress(3, notes, stream, every) as progress:
        progress.reuse("00_z")
        progress.start("01_a", 3)
        progress.start("02_b", 9)  # at the same time
        for name in ("01_a", "02_b"):
            for number in (1, 2, 3):
                progress.cell(name, number)
        (notes / "01_a").write_text("trunk 40%, 7 s left")
        time.sleep(wait)
        progress.finish("02_b", 0.5)
        progress.finish("01_a", 1.25)
    return stream.getvalue()


def test_plain_output_is_one_line_a_notebook(tmp_path):
    assert run(tmp_path, io.StringIO()).splitlines() == [
        "[1/3] 00_z unchanged, from the cache",
        "[2/3] 02_b in 0.5 s",
        "[3/3] 01_a in 1.2 s",
    ]


def test_plain_output_speaks_up_when_a_notebook_takes_long(tmp_path):
    text = run(tmp_path, io.StringIO(), every=0.1, wait=0.3)
    assert "01_a: cell 3 of 3 after 0 s (trunk 40%, 7 s left)\n" in text
    assert "02_b: cell 3 of 9 after 0 s\n" in text


def test_terminal_gets_bars(tmp_path):
    text = run(tmp_path, Terminal(), wait=1.2)
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


def test_track_without_a_terminal_writes_a_line_now_and_then(monkeypatch, capsys):
    monkeypatch.delenv(NOTE_VARIABLE, raising=False)
    monkeypatch.setattr("sentigeo.progress.EVERY", 0.05)
    for _ in track([1, 2, 3, 4], "work", unit="tokens"):
        time.sleep(0.03)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("work 50%, ")
    assert lines[0].endswith(" s left")


def test_short_work_without_a_terminal_is_silent(monkeypatch, capsys):
    monkeypatch.delenv(NOTE_VARIABLE, raising=False)
    assert list(track([1, 2], "work")) == [1, 2]
    assert capsys.readouterr().err == ""
