import io

from sentigeo.progress import RunProgress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def run(stream, every):
    with RunProgress(2, stream, every) as progress:
        for name in ("01_a", "02_b"):
            progress.start(name, 3)
            for number in (1, 2, 3):
                progress.cell(number)
            progress.finish(1.25)
    return stream.getvalue()


def test_plain_output_is_one_line_a_notebook():
    assert run(io.StringIO(), every=60) == "[1/2] 01_a in 1.2 s\n[2/2] 02_b in 1.2 s\n"


def test_plain_output_speaks_up_when_a_notebook_takes_long():
    assert "01_a: cell 2 of 3 after 0 s" in run(io.StringIO(), every=0)


def test_terminal_gets_bars():
    text = run(Terminal(), every=60)
    assert "02_b: 100%" in text
    assert "report: 100%" in text
