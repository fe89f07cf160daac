from itertools import pairwise

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from sentigeo import fingerprint
from sentigeo.paths import list_chapters
from sentigeo.profile import load_profile
from sentigeo.report.fingerprint import (
    chapter_key,
    find_source,
    imported_modules,
    inputs_key,
    machine_key,
)

MODULES = {
    "__init__": "",
    "execute": "",
    "kernels": "",
    "plain": "import os",
    "user": "from sentigeo.plain import thing",
    "lazy": "def f():\n    from sentigeo import user as other",
    "site": "",
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package whose modules import each other in several ways."""
    folder = tmp_path / "sentigeo"
    folder.mkdir()
    for name, text in MODULES.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.setattr(fingerprint, "PACKAGE", folder)
    return folder


def write(folder, *code):
    cells = [new_markdown_cell("from sentigeo import site"), *map(new_code_cell, code)]
    path = folder / "02_b.ipynb"
    nbformat.write(new_notebook(cells=cells), path)
    return path


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import numpy, json", set()),
        ("import sentigeo.plain", {"plain"}),
        ("from sentigeo import plain, nothing", {"plain"}),
        ("x = 1\nfrom sentigeo.user import thing", {"user", "plain"}),
        ("if x:\n    import sentigeo.lazy as l", {"lazy", "user", "plain"}),
    ],
)
def test_imports_are_followed(package, tmp_path, code, found):
    always = {"__init__", "execute", "kernels"}
    assert imported_modules(write(tmp_path, "y = 2", code)) == found | always


def test_a_real_chapter_knows_its_modules():
    (maps,) = (path for path in list_chapters() if path.stem == "04_maps")
    found = imported_modules(maps)
    assert {"maps", "space", "stats", "store", "chapter", "profile"} <= found
    assert not {"study", "site", "report", "bench"} & found


def test_a_key_changes_with_what_it_depends_on_and_with_nothing_else(package, tmp_path):
    source = write(tmp_path, "from sentigeo.user import thing")
    modules, part = imported_modules(source), tmp_path / "01_a.json"
    part.write_text("1")
    keys = [chapter_key(source, modules, ["01_a"], tmp_path)]
    (package / "site.py").write_text("changed = 1")
    assert chapter_key(source, modules, ["01_a"], tmp_path) == keys[0]
    for change in (
        lambda: (package / "plain.py").write_text("changed = 1"),
        lambda: part.write_text("2"),
        lambda: write(tmp_path, "from sentigeo.user import thing  # changed"),
    ):
        change()
        keys.append(chapter_key(source, modules, ["01_a"], tmp_path))
    assert all(a != b for a, b in pairwise(keys))


def test_what_identifies_a_source(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("text,label")
    folder = tmp_path / "model"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "weights").write_text("1")
    known = {name: find_source(str(name), None) for name in (file, folder)}
    file.write_text("text,label\n")
    (folder / "deep" / "weights").write_text("2")
    assert all(find_source(str(name), None) not in (None, own) for name, own in known.items())
    assert find_source("packaged", None) == find_source("packaged", "x") == "packaged"
    assert find_source("bbc_news", None) == "bbc_news"
    assert find_source("owner/model", "a" * 40) == ["owner/model", "a" * 40]
    assert find_source("owner/model", "main") is None  # a branch moves
    assert find_source("owner/model", None) is None


def test_a_run_on_the_newest_of_a_hub_has_no_key(quick):
    assert inputs_key(load_profile("quick", model="owner/model")) is None
    assert inputs_key(load_profile("quick", deep_sets=["owner/texts"])) is None
    assert inputs_key(load_profile("quick", seeds=9)) != inputs_key(quick)


def test_the_machine_is_described():
    found = machine_key()
    assert any(package.startswith("torch 2") for package in found["packages"])
    assert found == machine_key()
