import errno
import json
import re
import signal
import subprocess
import sys
from functools import partial

import pytest

from sentigeo.__main__ import main
from sentigeo.paths import ROOT, list_chapters
from sentigeo.report.fingerprint import Conditions


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--profile", "desktop"], "There is no profile 'desktop'"),
        (["--profile", "quick", "--set", "sedes=3"], "overrides; did you mean 'seeds'?"),
        (["--profile", "quick", "--set", "seeds"], "write it as key=value"),
        (["--profile", "quick", "--set", "name=x"], "'name' in the overrides"),
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
        (OSError(errno.ENOSPC, "No space left", "x.npy"), 1, "No space left: 'x.npy'"),
        (KeyboardInterrupt(), 130, "Stopped."),
    ],
)  # fmt: skip
def test_trouble_on_the_way(monkeypatch, capsys, error, code, words):
    def trouble(profile):
        raise error

    monkeypatch.setattr("sentigeo.preflight.check_run", trouble)
    assert main(["report", "--profile", "quick"]) == code
    assert words in capsys.readouterr().err


def test_a_hang_up_that_is_ignored_stays_ignored():
    code = (
        "import signal\nfrom sentigeo.__main__ import main\nmain(['report', '--profile', 'x'])\n"
        "print(signal.getsignal(signal.SIGHUP), signal.getsignal(signal.SIGTERM))"
    )
    ignore = partial(signal.signal, signal.SIGHUP, signal.SIG_IGN)
    said = subprocess.run(
        [sys.executable, "-c", code], preexec_fn=ignore, capture_output=True, text=True, check=True
    )
    assert said.stdout.startswith(f"{signal.SIG_IGN:d} ")
    assert "default_int_handler" in said.stdout


def test_skipped_chapters_are_printed(monkeypatch, capsys):
    conditions = Conditions(skipped={"11_deep_clustering": "There is no mask."})
    seen = []
    monkeypatch.setattr("sentigeo.preflight.check_run", lambda profile: conditions)
    monkeypatch.setattr(
        "sentigeo.report.publish.run_report", lambda profile, **told: seen.append(told) or 1 / 0
    )
    for options in ([], ["--fresh"]):
        with pytest.raises(ZeroDivisionError):
            main(["report", "--profile", "quick", *options])
    assert seen == [{"conditions": conditions, "fresh": fresh} for fresh in (False, True)]
    assert capsys.readouterr().out == 2 * "Skipped: 11_deep_clustering. There is no mask.\n"


def test_a_chapter_is_executed_by_number(monkeypatch, capsys):
    monkeypatch.setattr("sentigeo.preflight.check_run", lambda profile: Conditions())
    monkeypatch.setattr(
        "sentigeo.report.publish.run_chapter", lambda name, *_, **told: ROOT / "build" / name
    )
    assert main(["chapter", "5", "--profile", "quick"]) == 0
    assert capsys.readouterr().out.startswith("05_clusters is ready: build/05_clusters, ")
    assert main(["chapter", "77"]) == 1
    assert capsys.readouterr().err.startswith("Error: There is no chapter '77': the chapters are ")


def test_status_names_every_chapter(capsys):
    assert main(["status", "--profile", "quick", "--set", "seeds=41"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == [path.stem for path in list_chapters()]
    assert lines[-1] == "There is no report yet."


def test_reproduce_fails_if_something_is_outside_its_tolerance(monkeypatch, capsys):
    metric = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 9, "unit": "share"}
    written = {"metrics": {"a": metric}, "claims": []}
    for value, code, words in ((0.54, 0, "Reproduced: "), (0.56, 1, "Not reproduced: ")):
        fresh = {"metrics": {"a": metric | {"value": value}}, "claims": []}
        monkeypatch.setattr(
            "sentigeo.report.publish.run_again", lambda *_, fresh=fresh, keep: (written, fresh)
        )
        assert main(["reproduce", "--profile", "quick"]) == code
        assert words in capsys.readouterr().out


def test_paths_among_the_overrides_are_those_of_the_caller(monkeypatch, tmp_path):
    (tmp_path / "mine.csv").write_text("text,label")
    monkeypatch.chdir(tmp_path)
    seen = []
    (tmp_path / "bbc_news").mkdir()  # whose name a set has
    monkeypatch.setattr(
        "sentigeo.preflight.check_run", lambda profile: seen.append(profile) or 1 / 0
    )
    changes = "reviews=mine.csv model=a/b deep_sets=[bbc_news,mine.csv]"
    with pytest.raises(ZeroDivisionError):
        main(["report", "--profile", "quick", "--set", changes])
    mine = str(tmp_path / "mine.csv")
    assert (seen[0].reviews, seen[0].model) == (mine, "a/b")
    assert seen[0].deep_sets == ["bbc_news", mine]


def name_metrics(results):
    """Return the names of all metrics, whatever the sizes of the doses that a profile asks for."""
    sizes = "|".join(map(str, results["settings"]["doses"]))
    dosed = re.compile(rf"^((?:dose|finetune|pairs)\..*_)(?:{sizes})(?=[._])")
    return {dosed.sub(r"\1n", name) for name in results["metrics"]}


def test_quick_report(quick_run):
    results = json.loads((quick_run.reports / "results.json").read_text())
    published = json.loads((ROOT / "reports/results.json").read_text())
    assert results["profile"] == "quick"
    assert results["skipped"] == {}
    assert name_metrics(results) == name_metrics(published)
    assert (quick_run.reports / "site/index.html").is_file()
