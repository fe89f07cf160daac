import pytest
from fake_notebooks import write_notebook

from sentigeo.errors import UserError
from sentigeo.profile import load_profile
from sentigeo.report.fingerprint import Conditions
from sentigeo.report.plan import check_parameters, find_name, needed_by, plan_chapters, read_tasks


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
    assert [task.takes_all for task in tasks] == [False, True, False, True]
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


def test_unknown_parameter_is_an_error(tmp_path, quick):
    path = write_notebook(tmp_path, "01_first", parameters='profile = "quick"')
    with pytest.raises(
        UserError, match=r"01_first\.ipynb has no parameter 'overrides'; it has profile"
    ):
        check_parameters(path, {"profile": "quick", "overrides": {}})
    with pytest.raises(UserError, match="has no parameter 'overrides'"):
        plan_chapters(quick, tmp_path, Conditions())


def test_skipped_chapters_are_not_planned(tmp_path):
    write_notebook(tmp_path, "01_a")
    write_notebook(tmp_path, "02_b")
    conditions = Conditions(skipped={"01_a": "It has no use."})
    [task] = plan_chapters(load_profile("quick"), tmp_path, conditions)
    assert (task.name, task.needs) == ("02_b", ())


def test_no_notebooks(tmp_path, quick):
    with pytest.raises(UserError, match="no numbered notebooks"):
        plan_chapters(quick, tmp_path, Conditions())
