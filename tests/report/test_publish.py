import json
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import psutil
import pytest
import yaml
from fake_notebooks import (
    OPEN,
    RECORD,
    results_of,
    snapshot,
    wait_for,
    write_chapter,
    write_notebook,
)

from sentigeo.errors import UserError
from sentigeo.paths import ROOT, run_paths, write_text
from sentigeo.profile import PROFILES, load_profile
from sentigeo.report.fingerprint import Conditions
from sentigeo.report.publish import COMPLETE, check_results, rebuild_site, run_report


def build_no_site(reports, figures, scratch):
    write_text(reports / "site/index.html", "<p>A site</p>")


@pytest.fixture(scope="module", autouse=True)
def no_site():
    """These need no site, which takes seconds to build."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sentigeo.report.publish.build_site", build_no_site)
        yield


@pytest.fixture(scope="module")
def reported(no_site, tmp_path_factory):
    """A repository with two small chapters that was reported once."""
    root = tmp_path_factory.mktemp("reported")
    write_chapter(root, "01_first", last=False)
    write_chapter(root, "02_second")
    write_notebook(root, "90_own", "raise SystemError('not part of the report')")
    run_report(load_profile("quick"), root)
    return root


@pytest.fixture
def root(reported, tmp_path, in_process):
    """A copy of the reported repository, to be changed; its chapters are in the cache."""
    return Path(shutil.copytree(reported, tmp_path / "root", symlinks=True))


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


@pytest.mark.parametrize("kind", ["changed key", "another file"])
def test_published_report_is_not_overwritten_by_other_runs(root, kind, tmp_path):
    published = root / "reports/01_first.ipynb", root / "figures/01_first_line.png"
    for path in published:
        path.parent.mkdir()
        path.write_text("published")
    (root / "notebooks/02_second.ipynb").unlink()
    file = shutil.copy(PROFILES / "laptop.yaml", tmp_path)
    profile = load_profile("laptop", seeds=9) if kind == "changed key" else load_profile(str(file))
    before = snapshot(root)
    run_report(profile, root)
    new = snapshot(root).keys() - before.keys()
    assert f"build/{profile.run_name}/reports/01_first.ipynb" in new
    assert all(name.startswith("build/") for name in new)
    assert all(path.read_text() == "published" for path in published)


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


def test_removed_chapter_leaves_the_report(root):
    (root / "notebooks/02_second.ipynb").unlink()
    run_report(load_profile("quick"), root)
    assert sorted(path.name for path in (root / "build/quick/figures").iterdir()) == [
        "01_first_line.png",
        "01_first_page.html",
    ]
    assert not (root / "build/quick/reports/02_second.ipynb").exists()


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


@pytest.mark.published
def test_published_results_are_as_their_schema_says():
    results = json.loads((run_paths("laptop").reports / "results.json").read_text("utf-8"))
    try:
        check_results(results)
    except UserError as error:
        pytest.fail(f"run make report: {error}")


def test_results_know_their_code_and_machine(root):
    results = results_of(root)
    assert results["code"].keys() == {"01_first", "02_second"}
    assert results["commit"] is None
    assert results["lock"] is None
    assert results["machine"]["threads"] >= 1
    assert "arrays" not in results


def test_checkpoints_have_names_that_stay(root):
    leave = """fill = lambda folder: (folder / "weights").write_text("1")
folder = chapter.store.folder("model", {"of": "2"}, fill)
chapter.checkpoint("with", folder)"""
    write_chapter(root, "02_second", leave)
    run_report(load_profile("quick"), root)
    assert results_of(root)["checkpoints"] == {"with": "build/checkpoints/quick/with"}
    assert (root / "build/checkpoints/quick/with/weights").read_text() == "1"


def test_claims_are_judged_by_their_chapters_and_those_of_skipped_ones_say_why(root):
    claims = yaml.safe_load((ROOT / "notebooks/claims.yaml").read_text("utf-8"))
    own = [c | {"chapter": "02_second"} for c in claims if c["id"] in ("A1", "A2")]
    (root / "notebooks/claims.yaml").write_text(yaml.safe_dump(own))
    skipped = Conditions(skipped={"02_second": "There is nothing to read."})
    run_report(load_profile("quick"), root, skipped)
    results = results_of(root)
    assert [claim["id"] for claim in results["claims"]] == ["A1", "A2"]
    for claim in results["claims"]:
        assert claim["verdict"] == "not testable in this profile"
        assert claim["reason"] == "There is nothing to read."
    assert results["skipped"] == {"02_second": "There is nothing to read."}
    assert results["untestable"].keys() == {"A1", "A2"}
    assert results["seconds"].keys() == {"01_first"}
    assert not (root / "build/quick/reports/02_second.ipynb").exists()


def test_cells_whose_condition_does_not_hold_are_left_out(root):
    english = ("1 / 0", ["english"])
    write_chapter(root, "02_second", english, english, "done = 1")
    conditions = Conditions(unmet={"english": "These are not English."})
    run_report(load_profile("quick"), root, conditions)
    assert results_of(root)["conditions"] == conditions.unmet
    copy = nbformat.read(root / "build/quick/reports/02_second.ipynb", as_version=4)
    assert [cell.source for cell in copy.cells[-2:]] == [
        "*Left out: These are not English.*", "done = 1"
    ]  # fmt: skip


def test_equal_runs_give_equal_files(root):
    run_report(load_profile("quick"), root, fresh=True)
    before = snapshot(root / "build/quick")
    run_report(load_profile("quick"), root, fresh=True)
    after = snapshot(root / "build/quick")
    changed = {name for name in before | after if before.get(name) != after.get(name)}
    assert changed <= {"reports/results.json"}
    seconds = [json.loads(own["reports/results.json"]) for own in (before, after)]
    assert seconds[0] | {"seconds": 0} == seconds[1] | {"seconds": 0}


def test_overrides_reach_the_notebooks_and_get_their_own_folder(root):
    (root / "notebooks/01_first.ipynb").unlink()
    asked = "assert (overrides, chapter.profile.seeds) == ({'seeds': 9}, 9)"
    write_notebook(root, "02_second", OPEN.format(name="02_second"), asked)
    before = snapshot(root / "build/quick")
    profile = load_profile("quick", seeds=9)
    paths = run_report(profile, root)
    assert paths.output.name == profile.run_name
    assert snapshot(root / "build/quick") == before


def test_failing_notebook(root):
    before = snapshot(root / "build/quick")
    write_chapter(root, "02_second", "chapter.say('so far')", "rows = [][3]")
    with pytest.raises(UserError) as error:
        run_report(load_profile("quick"), root)
    assert "02_second.ipynb: IndexError: list index out of range" in str(error.value)
    assert snapshot(root / "build/quick") == before
    failed = root / "build/failed/quick/02_second.ipynb"
    assert str(failed.relative_to(root)) in str(error.value)
    assert "so far" in failed.read_text()


def test_metric_recorded_twice(root):
    again = RECORD.format(name="01_first", last=True)
    write_notebook(root, "02_second", OPEN.format(name="02_second"), again)
    with pytest.raises(
        UserError, match=r"records '01_first\.metric', which an earlier chapter already recorded"
    ):
        run_report(load_profile("quick"), root)


def test_the_site_can_be_built_again(root):
    page = root / "build/quick/reports/site/index.html"
    page.unlink()
    rebuild_site(load_profile("quick"), root)
    assert page.is_file()


def test_killed_run_leaves_the_last_report_and_a_second_is_refused(root):
    before = snapshot(root / "build/quick")
    marker = root / "marker"
    write_notebook(root, "02_second", f"open({str(marker)!r}, 'w')\nimport time\ntime.sleep(99)")
    code = (
        "import sys, pathlib; from sentigeo.profile import load_profile; "
        "from sentigeo.report.publish import run_report; "
        "run_report(load_profile('quick'), pathlib.Path(sys.argv[1]))"
    )
    run = subprocess.Popen([sys.executable, "-c", code, str(root)], stderr=subprocess.DEVNULL)
    wait_for(marker.exists, "it did not begin")
    with pytest.raises(UserError, match="Another run of 'quick' is in progress"):
        run_report(load_profile("quick"), root)
    started = psutil.Process(run.pid).children(recursive=True)
    run.kill()
    run.wait()
    assert len(started) >= 2  # a process and its kernel
    assert not psutil.wait_procs(started, timeout=60)[1]
    assert snapshot(root / "build/quick") == before
    write_chapter(root, "02_second")
    run_report(load_profile("quick"), root)
    assert results_of(root)["metrics"]["02_second.metric"]["value"] == 1
