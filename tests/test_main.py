import errno
import json
import subprocess
import sys

import pytest

from sentigeo.__main__ import main
from sentigeo.paths import ROOT


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--profile", "desktop"], "There is no profile 'desktop'"),
        (["--profile", "quick", "--set", "sedes=3"], "Unknown key 'sedes' in the overrides"),
        (["--profile", "quick", "--set", "seeds"], "write it as key=value"),
        (["--profile", "quick", "--set", "seeds=many"], "'seeds' in the overrides"),
    ],
)
@pytest.mark.parametrize("command", ["report", "site"])
def test_bad_input_is_one_sentence_and_exit_code_one(capsys, command, arguments, words):
    assert main([command, *arguments]) == 1
    message = capsys.readouterr().err
    assert message.startswith("Error: ")
    assert words in message
    assert message.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (OSError(errno.ENOSPC, "No space left", "x.npy"), 1, "No space left: x.npy"),
        (KeyboardInterrupt(), 130, "the last report is untouched"),
    ],
)  # fmt: skip
def test_trouble_on_the_way(monkeypatch, capsys, error, code, words):
    def trouble(*_):
        raise error

    monkeypatch.setattr("sentigeo.report.run_report", trouble)
    assert main(["report", "--profile", "quick"]) == code
    assert words in capsys.readouterr().err


def test_quick_report_from_the_command_line():
    """The real notebooks on the real reviews and weights."""
    command = [sys.executable, "-m", "sentigeo", "report", "--profile", "quick"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert "build/quick/reports/site/index.html" in run.stdout
    lines = run.stderr.splitlines()
    assert all(line.startswith("[") for line in lines), run.stderr
    results = json.loads((ROOT / "build/quick/reports/results.json").read_text())
    assert results["profile"] == "quick"
    assert len(lines) == len(results["seconds"])
    published = json.loads((ROOT / "reports/results.json").read_text())
    assert results["metrics"].keys() == published["metrics"].keys()
