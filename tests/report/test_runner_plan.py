import json

import pytest
from fake_notebooks import write_notebook

from sentigeo.cache import Store
from sentigeo.errors import UserError
from sentigeo.paths import list_chapters, run_paths
from sentigeo.profile import load_profile
from sentigeo.report.execute import check_parameters
from sentigeo.report.fingerprint import (
    KIND,
    Conditions,
    chapter_key,
    describe_published,
    hash_chapter,
)
from sentigeo.report.notebook import CONDITIONS
from sentigeo.report.runner import ReportRun, describe_status, find_name, needed_by, read_tasks

FITS = Conditions()
PART = '{{"metrics": {{"x": {0}}}, "arrays": {{}}, "checkpoints": {{}}}}'


def begin(root, conditions=FITS, **changes):
    profile = load_profile("quick", **changes)
    paths = run_paths(profile.run_name, root)
    return ReportRun(profile, paths, paths.stage, root, conditions)


def test_needs_are_read_from_the_metadata(tmp_path):
    sources = [
        write_notebook(tmp_path, "01_a", threads=1, needs=[]),
        write_notebook(tmp_path, "02_b"),
        write_notebook(tmp_path, "04_d", needs=["01_a", "03_left_out"], minutes=2),
        write_notebook(tmp_path, "05_e"),
    ]
    tasks = read_tasks(sources)
    assert [task.needs for task in tasks] == [
        (), ("01_a",), ("01_a",), ("01_a", "02_b", "04_d"),
    ]  # fmt: skip
    assert [task.one_thread for task in tasks] == [True, False, False, False]
    assert [CONDITIONS in task.parts for task in tasks] == [False, True, False, True]
    assert [task.minutes for task in tasks] == [0, 0, 2, 0]
    assert [task.name for task in needed_by("04_d", tasks)] == ["01_a", "04_d"]
    assert needed_by("05_e", tasks) == tasks


def test_a_notebook_cannot_need_a_later_one(tmp_path):
    with pytest.raises(UserError, match=r"01_a\.ipynb needs '02_b', which does not come before it"):
        read_tasks([write_notebook(tmp_path, "01_a", needs=["02_b"])])


@pytest.mark.parametrize("name", ["5", "05", "05_clusters"])
def test_a_chapter_is_found_by_number_or_name(tmp_path, name):
    for chapter in ("04_maps", "05_clusters", "90_own"):
        write_notebook(tmp_path, chapter)
    assert find_name(name, tmp_path) == "05_clusters"
    with pytest.raises(UserError, match=r"no chapter '90': the chapters are 04_maps, 05_clusters"):
        find_name("90", tmp_path)


def test_unknown_parameter_is_an_error(tmp_path):
    path = write_notebook(tmp_path, "01_first", parameters='profile = "quick"')
    with pytest.raises(
        UserError, match=r"01_first\.ipynb has no parameter 'overrides'; it has profile"
    ):
        check_parameters(path, {"profile": "quick", "overrides": {}})
    with pytest.raises(UserError, match="has no parameter 'overrides'"):
        begin(tmp_path).plan()


def test_skipped_chapters_are_not_planned(tmp_path):
    write_notebook(tmp_path, "01_a")
    write_notebook(tmp_path, "02_b")
    conditions = Conditions(skipped={"01_a": "It has no use."})
    [task] = begin(tmp_path, conditions).plan()
    assert (task.name, task.needs) == ("02_b", ())


def test_no_notebooks(tmp_path):
    with pytest.raises(UserError, match="no numbered notebooks"):
        begin(tmp_path).plan()


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("SENTIGEO_CACHE", str(tmp_path / "cache"))
    write_notebook(tmp_path, "01_a", needs=[])
    write_notebook(tmp_path, "02_b", "chapter.profile.seeds", needs=["01_a"])
    return tmp_path


def keep(root, name, needs=None, **changes):
    """Put a chapter into the cache as if it had been executed."""
    key = chapter_key(
        root / "notebooks" / f"{name}.ipynb", load_profile("quick", **changes), needs or {}, {}
    )

    def fill(folder):
        (folder / f"{name}.json").write_text(PART.format(1))

    return Store(root / "cache").put(KIND, key, fill)


def status(root, **changes):
    run = begin(root, **changes)
    return describe_status(run.plan(), run)


def test_status_says_why_a_chapter_is_not_up_to_date(root):
    assert status(root) == {
        "01_a": "never executed on this machine",
        "02_b": "needs 01_a, which is not up to date",
    }
    keep(root, "01_a")
    assert status(root) == {"01_a": "up to date", "02_b": "never executed on this machine"}
    part = {"metrics": {"x": 1}, "arrays": {}, "checkpoints": {}}
    keep(root, "02_b", {"01_a": part})
    assert set(status(root).values()) == {"up to date"}
    keep(root, "01_a", seeds=9)
    assert status(root, seeds=9)["02_b"] == "setting seeds: 2 -> 9"
    write_notebook(root, "02_b", "chapter.profile.seeds", "more = 1", needs=["01_a"])
    assert status(root) == {"01_a": "up to date", "02_b": "the notebook changed"}


def test_a_chapter_on_the_newest_of_a_hub_is_never_up_to_date(root):
    assert "hub" in status(root, model="owner/model")["01_a"]


def test_what_was_published_is_compared_with_the_code(root):
    results, sources = root / "results.json", list_chapters(root)
    assert describe_published(results, sources) == "There is no report yet."
    results.write_text(json.dumps({"code": {own.stem: hash_chapter(own) for own in sources}}))
    assert describe_published(results, sources) == "results.json was made by this code."
    write_notebook(root, "01_a", "more = 1", needs=[])
    assert (
        describe_published(results, sources)
        == "results.json was made before the code of 01_a changed."
    )
