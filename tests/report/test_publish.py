import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import nbformat
import pytest
import yaml
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from sentigeo.errors import UserError
from sentigeo.paths import ROOT, run_paths
from sentigeo.profile import PROFILES, load_profile
from sentigeo.report.publish import COMPLETE, check_results, rebuild_site, run_report
from sentigeo.report.runner import check_parameters

OPEN = """from sentigeo.chapter import open_chapter
chapter = open_chapter("{name}", profile, overrides)"""
RECORD = """from sentigeo.stats import share
from sentigeo.figures.style import new_figure
estimate = chapter.record("{name}.metric", share([True, True, {last}]))
figure, (axis,) = new_figure(2.0)
axis.plot([0, 1])
chapter.figure(figure, "line", "A line (n = 2).")
chapter.page("<p>A page</p>", "page", "A page.")
chapter.say(f"We found {{estimate}}.")"""


def write_notebook(root, name, *cells, parameters='profile = "quick"\noverrides = {}'):
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = new_notebook(metadata=kernel, cells=[new_markdown_cell(f"# {name}")])
    notebook.cells.append(new_code_cell(parameters, metadata={"tags": ["parameters"]}))
    notebook.cells += [new_code_cell(cell) for cell in cells]
    path = root / "notebooks" / f"{name}.ipynb"
    path.parent.mkdir(exist_ok=True)
    nbformat.write(notebook, path)
    return path


def write_chapter(root, name, last=False, *more):
    return write_notebook(
        root, name, OPEN.format(name=name), RECORD.format(name=name, last=last), *more
    )


def snapshot(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def results_of(root):
    return json.loads((root / "build/quick/reports/results.json").read_text())


@pytest.fixture(scope="module")
def reported(tmp_path_factory):
    """A repository with two small chapters that was reported once."""
    root = tmp_path_factory.mktemp("reported")
    write_chapter(root, "01_first")
    write_chapter(root, "02_second", True)
    write_notebook(root, "90_own", "raise SystemError('not part of the report')")
    run_report(load_profile("quick"), root)
    return root


@pytest.fixture
def root(reported, tmp_path):
    """A copy of the reported repository, to be changed."""
    return Path(shutil.copytree(reported, tmp_path / "root"))


def test_a_run_leaves_what_it_should(root):
    paths = run_paths("quick", root)
    assert sorted(path.name for path in paths.figures.iterdir()) == [
        "01_first_line.png",
        "01_first_page.html",
        "02_second_line.png",
        "02_second_page.html",
    ]
    results = results_of(root)
    assert results["profile"] == "quick"
    assert results["metrics"]["01_first.metric"]["value"] == pytest.approx(2 / 3)
    assert results["metrics"]["02_second.metric"]["n"] == 3
    assert results["seconds"].keys() == {"01_first", "02_second"}
    assert results["skipped"] == {}
    assert {"encoder", "data", "versions", "claims", "checkpoints"} <= results.keys()
    assert (paths.reports / "site/index.html").is_file()
    assert not paths.stage.exists()


def test_executed_copies_can_be_read_and_are_tidy(root):
    text = (root / "build/quick/reports/01_first.ipynb").read_text()
    copy = nbformat.reads(text, as_version=4)
    nbformat.validate(copy)
    assert "0.667 [0.208, 0.939; n = 3]" in text
    assert str(root) not in text
    assert "papermill" not in json.dumps(copy.metadata)
    assert not [o for c in copy.cells for o in c.get("outputs", []) if o.get("name") == "stderr"]
    source = nbformat.read(root / "notebooks/01_first.ipynb", as_version=4)
    executed = [
        c.source for c in copy.cells if "injected-parameters" not in c.metadata.get("tags", [])
    ]
    assert executed == [cell.source for cell in source.cells]


def test_results_are_as_their_schema_says():
    check_results(json.loads((run_paths("laptop").reports / "results.json").read_text("utf-8")))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda r: r.pop("seconds"), "'seconds' is a required property"),
        (lambda r: r.update(extra=1), "'extra' was unexpected"),
        (lambda r: r["metrics"].update(a={}), "'a' does not match"),
        (lambda r: r["metrics"]["01_first.metric"].update(n=-1), "-1 is less than the minimum"),
        (lambda r: r["metrics"]["01_first.metric"].update(value="1"), "not of type 'number'"),
        (lambda r: r["claims"].append({"id": "C1"}), "is a required property"),
        (lambda r: r["checkpoints"].update(x="/home"), "'/home' does not match"),
    ],
)
def test_results_that_break_their_schema_are_refused(root, damage, message):
    results = results_of(root)
    check_results(results)
    damage(results)
    with pytest.raises(UserError, match=message):
        check_results(results)


def test_a_claim_that_no_chapter_measures_stops_the_report(root):
    shutil.copy(ROOT / "notebooks/claims.yaml", root / "notebooks")
    before = snapshot(root / "build/quick")
    with pytest.raises(UserError, match=r"The claim A1 names 'encoder.hidden_states', which no"):
        run_report(load_profile("quick"), root)
    assert snapshot(root / "build/quick") == before


def test_claims_of_skipped_chapters_say_why(root):
    claims = yaml.safe_load((ROOT / "notebooks/claims.yaml").read_text("utf-8"))
    own = [c | {"chapter": "02_second"} for c in claims if c["id"] == "A1"]
    (root / "notebooks/claims.yaml").write_text(yaml.safe_dump(own))
    run_report(load_profile("quick"), root, {"02_second": "There is nothing to read."})
    [claim] = results_of(root)["claims"]
    assert claim["verdict"] == "not testable in this profile"
    assert claim["reason"] == "There is nothing to read."


def test_equal_runs_give_equal_files(root):
    before = snapshot(root / "build/quick")
    run_report(load_profile("quick"), root, fresh=True)
    after = snapshot(root / "build/quick")
    changed = {name for name in before | after if before.get(name) != after.get(name)}
    seconds = {"reports/results.json", "reports/site/index.html", "reports/site/searchindex.js"}
    assert changed <= seconds


def test_overrides_reach_the_notebooks_and_get_their_own_folder(root):
    write_notebook(
        root, "01_first", OPEN.format(name="01_first"), "assert overrides == {'seeds': 9}"
    )
    write_notebook(
        root, "02_second", OPEN.format(name="02_second"), "assert chapter.profile.seeds == 9"
    )
    before = snapshot(root / "build/quick")
    profile = load_profile("quick", seeds=9)
    paths = run_report(profile, root)
    assert paths.output.name == profile.run_name
    assert snapshot(root / "build/quick") == before


@pytest.mark.parametrize("kind", ["changed key", "own file"])
def test_published_report_is_not_overwritten_by_other_runs(root, kind, tmp_path):
    published = root / "reports/01_first.ipynb", root / "figures/01_first_line.png"
    for path in published:
        path.parent.mkdir()
        path.write_text("published")
    own = shutil.copy(PROFILES / "laptop.yaml", tmp_path)
    profile = load_profile("laptop", seeds=9) if kind == "changed key" else load_profile(str(own))
    before = snapshot(root)
    run_report(profile, root)
    new = snapshot(root).keys() - before.keys()
    assert f"build/{profile.run_name}/reports/01_first.ipynb" in new
    assert all(name.startswith("build/") for name in new)
    assert all(path.read_text() == "published" for path in published)


def test_skipped_chapter_is_named_with_its_reason(root):
    run_report(load_profile("quick"), root, skipped={"02_second": "It has no use here."})
    results = results_of(root)
    assert results["skipped"] == {"02_second": "It has no use here."}
    assert results["seconds"].keys() == {"01_first"}
    assert not (root / "build/quick/reports/02_second.ipynb").exists()
    page = (root / "build/quick/reports/site/index.html").read_text()
    assert "Skipped in this run" in page
    assert "It has no use here." in page


def test_failing_notebook(root):
    before = snapshot(root / "build/quick")
    write_chapter(root, "02_second", True, "print('so far')", "rows = [][3]")
    with pytest.raises(UserError) as error:
        run_report(load_profile("quick"), root)
    assert "02_second.ipynb, cell 7: IndexError: list index out of range" in str(error.value)
    assert snapshot(root / "build/quick") == before
    failed = root / "build/failed/quick/02_second.ipynb"
    assert str(failed.relative_to(root)) in str(error.value)
    assert "so far" in failed.read_text()
    write_chapter(root, "02_second", True)
    run_report(load_profile("quick"), root)
    assert not failed.exists()


def test_users_error_in_a_notebook_is_one_sentence(root):
    write_notebook(
        root, "01_first", "from sentigeo.errors import UserError", "raise UserError('No.')"
    )
    with pytest.raises(UserError, match=r"^01_first\.ipynb: No\.\nThe notebook as far as it got"):
        run_report(load_profile("quick"), root)


def test_notebook_that_takes_too_long(root):
    write_notebook(root, "01_first", "import time", "time.sleep(60)")
    with pytest.raises(UserError, match=r"01_first\.ipynb took longer than its 3 seconds"):
        run_report(load_profile("quick", notebook_timeout=3), root)


def test_kernel_that_dies(root):
    write_notebook(root, "01_first", "import os, signal", "os.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(UserError, match="the kernel died"):
        run_report(load_profile("quick"), root)


def test_metric_recorded_twice(root):
    write_notebook(
        root, "02_second", OPEN.format(name="02_second"), RECORD.format(name="01_first", last=True)
    )
    with pytest.raises(UserError, match=r"records '01_first\.metric', which stands already"):
        run_report(load_profile("quick"), root)


def test_chapter_that_speaks_under_another_name(root):
    write_chapter(root, "02_second")
    text = (root / "notebooks/02_second.ipynb").read_text()
    (root / "notebooks/02_second.ipynb").write_text(text.replace("02_second", "01_first"))
    with pytest.raises(UserError, match=r"02_second\.ipynb recorded nothing under its own name"):
        run_report(load_profile("quick"), root)


def test_files_of_a_person_stay(root):
    note = root / "build/quick/reports/notes.md"
    note.write_text("mine")
    run_report(load_profile("quick"), root)
    assert note.read_text() == "mine"


def test_site_can_be_built_again(root):
    page = root / "build/quick/reports/site/index.html"
    before = page.read_text()
    page.unlink()
    rebuild_site(load_profile("quick"), root)
    assert page.read_text() == before


def test_removed_chapter_leaves_the_report(root):
    (root / "notebooks/02_second.ipynb").unlink()
    run_report(load_profile("quick"), root)
    assert sorted(path.name for path in (root / "build/quick/figures").iterdir()) == [
        "01_first_line.png",
        "01_first_page.html",
    ]
    assert not (root / "build/quick/reports/02_second.ipynb").exists()


def start_run(root):
    code = (
        "import sys, pathlib; from sentigeo.profile import load_profile; "
        "from sentigeo.report import run_report; "
        "run_report(load_profile('quick'), pathlib.Path(sys.argv[1]))"
    )
    return subprocess.Popen([sys.executable, "-c", code, str(root)], start_new_session=True)


def wait_for(path, seconds=60):
    deadline = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.05)


def test_killed_run_leaves_the_last_report_and_the_next_completes(root):
    before = snapshot(root / "build/quick")
    marker = root / "marker"
    write_chapter(
        root, "02_second", False, f"open({str(marker)!r}, 'w'); import time; time.sleep(99)"
    )
    run = start_run(root)
    wait_for(marker)
    with pytest.raises(UserError, match="Another run of 'quick' is in progress"):
        run_report(load_profile("quick"), root)
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    assert snapshot(root / "build/quick") == before
    write_chapter(root, "02_second", False)
    run_report(load_profile("quick"), root)
    assert results_of(root)["metrics"]["02_second.metric"]["value"] == pytest.approx(2 / 3)


def test_run_killed_while_publishing_is_finished_by_the_next(root):
    paths = run_paths("quick", root)
    names = ["figures/01_new.png", "reports/01_new.ipynb", "reports/results.json"]
    for name in names:
        (paths.stage / name).parent.mkdir(parents=True, exist_ok=True)
        (paths.stage / name).write_text(f"new {name}")
    (paths.figures / "01_new.png").write_text("new figures/01_new.png")  # before the kill
    (paths.stage / COMPLETE).write_text(json.dumps(names))
    write_notebook(root, "01_first", "raise ValueError")
    with pytest.raises(UserError):
        run_report(load_profile("quick"), root)
    assert snapshot(paths.output) == {name: f"new {name}".encode() for name in names}


def test_unknown_parameter_is_an_error(tmp_path):
    path = write_notebook(tmp_path, "01_first", parameters='profile = "quick"')
    with pytest.raises(
        UserError, match=r"01_first\.ipynb has no parameter 'overrides'; it has profile"
    ):
        check_parameters(path, {"profile": "quick", "overrides": {}})
    with pytest.raises(UserError, match="has no parameter 'overrides'"):
        run_report(load_profile("quick"), tmp_path)


def test_no_notebooks(tmp_path):
    with pytest.raises(UserError, match="no numbered notebooks"):
        run_report(load_profile("quick"), tmp_path)
