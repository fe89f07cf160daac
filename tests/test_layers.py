"""The layers of the package: which room may import which."""

from sentigeo.hashes import NAME, PACKAGE, imports_of

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
ON_TOP = {f"{NAME}.{name}" for name in ("__main__", "preflight", "cluster", "embed", "reviews")}
MODULES = sorted(PACKAGE.rglob("*.py"))


def room_of(module):
    parts = module.split(".")[1:]
    return parts[0] if parts and parts[0] in MAY_USE else "root"


def test_layers_point_one_way():
    for path in MODULES:
        module = ".".join([NAME, *path.relative_to(PACKAGE).with_suffix("").parts])
        if module not in ON_TOP and path.stem != "__init__":  # these may use all
            used = {room_of(other) for other in imports_of(path.read_text("utf-8"))}
            assert used <= MAY_USE[room_of(module)], module


def test_own_texts_leave_publishing_alone():
    for path in (PACKAGE / "own_texts").glob("*.py"):
        assert not imports_of(path.read_text("utf-8")) & {
            f"{NAME}.report.publish", f"{NAME}.report.runner"
        }, path.name  # fmt: skip


def test_rooms_are_small():
    assert [path.name for path in MODULES if len(path.read_text("utf-8").splitlines()) > 300] == []
    folders = {path.parent for path in MODULES}
    assert [folder.name for folder in folders if len(list(folder.glob("*.py"))) > 17] == []
