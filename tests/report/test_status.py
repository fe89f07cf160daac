import pytest
from fake_notebooks import write_notebook

from sentigeo.cache import Store
from sentigeo.paths import run_paths
from sentigeo.profile import load_profile
from sentigeo.report.fingerprint import KIND, Conditions, chapter_key, hash_chapter
from sentigeo.report.plan import plan_chapters
from sentigeo.report.status import describe_published, describe_status

PART = '{{"metrics": {{"x": {0}}}, "arrays": {{}}, "checkpoints": {{}}}}'


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
    profile = load_profile("quick", **changes)
    paths = run_paths(profile.run_name, root)
    tasks = plan_chapters(profile, root, Conditions())
    return describe_status(tasks, profile, paths, root, Conditions())


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


def test_what_was_published_is_compared_with_the_code(root, quick):
    paths, tasks = run_paths("quick", root), plan_chapters(quick, root, Conditions())
    assert describe_published(tasks, paths) == "There is no report yet."
    codes = ", ".join(f'"{task.name}": "{hash_chapter(task.source)}"' for task in tasks)
    paths.reports.mkdir(parents=True)
    (paths.reports / "results.json").write_text(f'{{"code": {{{codes}}}}}')
    assert describe_published(tasks, paths) == "results.json was made by this code."
    write_notebook(root, "01_a", "more = 1", needs=[])
    assert describe_published(tasks, paths) == "results.json was made by other code of 01_a."
