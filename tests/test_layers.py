"""The layers of the package: which room may import which."""

import re

import pytest

from sentigeo.hashes import NAME, PACKAGE, imports_of
from sentigeo.paths import ROOT

BASE = {"root", "data", "encoder"}
MAY_USE = {
    "root": {"root"},
    "data": {"root", "data"},
    "encoder": BASE,
    "training": BASE | {"training", "analysis"},
    "analysis": BASE | {"analysis"},
    "figures": BASE | {"analysis", "figures"},
    "ledger": {"root", "ledger"},
    "report": {"root", "data", "ledger", "report"},
    "own_texts": BASE | {"training", "analysis", "figures", "report", "own_texts"},
}
MAY_USE["top"] = {*MAY_USE, "top"}  # commands, and public places of what the rooms hold
ON_TOP = ("__main__", "preflight", "cluster", "embed", "reviews")
MODULES = sorted(PACKAGE.rglob("*.py"))
FOLDERS = {path.parent.relative_to(PACKAGE).as_posix() for path in MODULES} - {"."}


def room_of(module):
    first = [*module.split(".")[1:], "__init__"][0]
    if first in FOLDERS:
        return first
    assert (PACKAGE / f"{first}.py").is_file(), f"{module} is in no room"
    return "top" if first in ON_TOP else "root"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_layers_point_one_way(path):
    room = room_of(".".join([NAME, *path.relative_to(PACKAGE).with_suffix("").parts]))
    assert {*map(room_of, imports_of(path.read_text("utf-8")))} <= MAY_USE[room]


def test_every_room_is_known_and_only_those():
    assert MAY_USE.keys() - {"root", "top"} == FOLDERS
    assert all((PACKAGE / f"{name}.py").is_file() for name in ON_TOP)


def test_the_readme_names_every_room_and_no_other():
    readme = (ROOT / "README.md").read_text("utf-8")
    block = re.search(r"## Layout\s+```\n(.*?)```", readme, re.S)[1]
    package = re.search(r"^src/sentigeo/.*\n((?:    .*\n)+)", block, re.M)[1]
    assert sorted(re.findall(r"^ +(\w+)/", package, re.M)) == sorted(FOLDERS)


def test_own_texts_leave_publishing_alone():
    for path in (PACKAGE / "own_texts").glob("*.py"):
        assert not imports_of(path.read_text("utf-8")) & {
            f"{NAME}.report.publish", f"{NAME}.report.runner"
        }, path.name  # fmt: skip


def test_rooms_are_small():
    assert [path.name for path in MODULES if len(path.read_text("utf-8").splitlines()) > 300] == []
    folders = {path.parent for path in MODULES}
    assert [folder.name for folder in folders if len(list(folder.glob("*.py"))) > 17] == []
