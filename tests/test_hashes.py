import hashlib

import pytest

from sentigeo.hashes import (
    hash_code,
    hash_files,
    hash_json,
    import_closure,
    imports_of,
    packages_of,
    strip_code,
)
from sentigeo.paths import write_text

MODULES = {
    "__init__": "",
    "low": 'LIMIT = 3  # a constant\n\n\ndef double(x):\n    """Twice."""\n    return 2 * x\n',
    "middle": "from sentigeo.low import double\n\n\ndef four(x):\n    return double(double(x))\n",
    "high": "def lazy():\n    from sentigeo import middle\n    return middle.four(1)\n",
    "room/__init__": "",
    "room/other": "import numpy as np\n\nZERO = np.zeros(1)\n",
    "room/user": "from sentigeo.room import other\nfrom sentigeo.room.other import ZERO\n",
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package of the same name with a few small modules."""
    root = tmp_path / "sentigeo"
    (root / "room").mkdir(parents=True)
    for name, code in MODULES.items():
        (root / f"{name}.py").write_text(code)
    monkeypatch.setattr("sentigeo.hashes.PACKAGE", root)
    return root


def hashes():
    return {name: hash_code(f"sentigeo.{name}") for name in ("low", "middle", "high", "room.user")}


def changed_by(package, name, code):
    before = hashes()
    (package / f"{name}.py").write_text(code)
    return {name for name, value in hashes().items() if value != before[name]}


@pytest.mark.usefixtures("package")
def test_closure_follows_imports_wherever_they_stand():
    assert import_closure(["sentigeo.high"]) == {"sentigeo.high", "sentigeo.middle", "sentigeo.low"}
    assert import_closure(["sentigeo.room.user"]) == {"sentigeo.room.user", "sentigeo.room.other"}


def test_docstrings_comments_and_layout_do_not_count(package):
    code = (
        'LIMIT = (\n    3\n)\n\n\ndef double(x):\n    """Another."""\n    # why\n    return 2 * x\n'
    )
    assert changed_by(package, "low", code) == set()


def test_a_changed_constant_counts_for_exactly_those_that_import_it(package):
    assert changed_by(package, "low", MODULES["low"].replace("3", "4")) == {"low", "middle", "high"}


def test_a_module_in_a_room_is_not_dropped(package):
    assert changed_by(package, "room/other", "ZERO = 0\n") == {"room.user"}


def test_a_new_module_changes_nothing(package):
    assert changed_by(package, "room/new", "ONE = 1\n") == set()


def test_what_has_but_a_docstring_stays_code():
    assert strip_code("def f():\n    'Only words.'") == "def f():\n    pass"


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import sentigeo.low as low", {"sentigeo.low"}),
        ("from sentigeo import low, nothing", {"sentigeo", "sentigeo.low"}),
        ("from sentigeo.low import double", {"sentigeo.low"}),
        ("import numpy\n'import sentigeo.low'", set()),
    ],
)
def test_imports_of_some_code(code, found):
    assert imports_of(code) == found


def test_packages_are_those_that_code_imports_and_what_they_rest_on():
    found = packages_of(["import pandas as pd", "from sklearn.svm import SVC"])
    assert {"pandas", "numpy", "scikit-learn", "scipy", "threadpoolctl"} <= found.keys()
    assert not {"torch", "pytest", "sentigeo"} & found.keys()


def test_a_module_that_is_not_there():
    with pytest.raises(ValueError, match=r"no module sentigeo\.nothing"):
        hash_code("sentigeo.nothing")


def test_hashes_are_those_of_sha256():
    assert hash_json({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert hash_json({"a": 1, "b": 2}) == hash_json({"b": 2, "a": 1}) != hash_json({"a": 1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        hash_json(float("nan"))


def test_files_of_a_folder_are_hashed_by_their_place_in_it(tmp_path):
    write_text(tmp_path / "a" / "one.txt", "1")
    write_text(tmp_path / "two.csv", "2")
    one = hashlib.sha256(b"1").hexdigest()
    assert hash_files(tmp_path, "**/*.txt") == {"a/one.txt": one}
    assert hash_files(tmp_path, "**/*").keys() == {"a/one.txt", "two.csv"}
