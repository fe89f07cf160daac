import ast
import json
import re
import shutil
import subprocess

import pytest
from fake_notebooks import write_notebook

from sentigeo.hashes import PACKAGE
from sentigeo.paths import DATA, SITE_SOURCE, list_chapters
from sentigeo.profile import load_profile
from sentigeo.report.fingerprint import (
    chapter_code,
    chapter_key,
    explain,
    find_blas,
    find_commit,
    find_last_commit,
    find_processor,
    hash_chapter,
)

MODULES = {
    "constants": '"""Numbers."""\n\nLIMIT = 3\n',
    "middle": "from sentigeo.room.constants import LIMIT\n\nf = lambda p: p.seeds\n",
    "top": "def g():\n    from sentigeo.room import middle\n    return middle\n",
    "apart": "import yaml\n\nh = lambda p: p.perplexity\n",
}
CLAIM = """- {{id: {id}, source: "001", statement: It is{comma}, chapter: {chapter},
   measure: m, metric: a.b, rule: r, requires: {requires}, verdict: {{above: {{a.b: 0}}}}}}
"""


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A copy of this package with a room of its own, which tests may change."""
    folder = tmp_path / "src" / "sentigeo"
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "room").mkdir()
    for name, code in {"__init__": "", **MODULES}.items():
        (folder / "room" / f"{name}.py").write_text(code)
    monkeypatch.setattr("sentigeo.hashes.PACKAGE", folder)
    return folder / "room"


@pytest.fixture
def chapters(package, tmp_path):
    """Two chapters: one that uses a constant two imports away, and one that does not."""
    write_claims(tmp_path)
    opening = "from sentigeo.report.notebook import open_chapter"
    tagged = ("chapter.say('English')", ["english"])
    return {
        "user": write_notebook(tmp_path, "01_a", opening, "from sentigeo.room.top import g"),
        "other": write_notebook(tmp_path, "02_b", "from sentigeo.room import apart", tagged),
    }


def write_claims(root, comma=""):
    claims = CLAIM.format(id="A1", chapter="01_a", requires="pairs", comma="")
    claims += CLAIM.format(id="B1", chapter="02_b", requires="null", comma=comma)
    (root / "notebooks").mkdir(exist_ok=True)
    (root / "notebooks/claims.yaml").write_text(claims)


def keys(chapters, needs=None, unmet=None, **changes):
    profile = load_profile("quick", **changes)
    return {
        name: chapter_key(source, profile, needs or {}, unmet or {})
        for name, source in chapters.items()
    }


def stale(chapters, change):
    """Return why chapters would be executed again after a change; those that would not are out."""
    before = keys(chapters)
    change()
    now = keys(chapters)
    assert all(
        (before[name] == now[name]) == (not explain(before[name], now[name])) for name in now
    )
    return {name: explain(before[name], now[name]) for name in now if before[name] != now[name]}


def test_a_changed_constant_two_imports_away_concerns_exactly_those_that_use_it(package, chapters):
    changed = MODULES["constants"].replace("3", "4")
    found = stale(chapters, lambda: (package / "constants.py").write_text(changed))
    assert found == {"user": ["sentigeo.room.constants changed"]}


def test_a_docstring_a_comment_and_a_new_module_concern_nobody(package, chapters):
    def change():
        (package / "constants.py").write_text('"""Other words."""\nLIMIT = 3  # of something\n')
        (package / "new.py").write_text("ONE = 1\n")

    assert stale(chapters, change) == {}


def test_a_comma_in_a_claim_concerns_its_chapter_only(chapters, tmp_path):
    found = stale(chapters, lambda: write_claims(tmp_path, comma=";"))
    assert found == {"other": ["the claim B1 changed"]}


def test_the_notebook_itself_counts(chapters, tmp_path):
    def change():
        text = chapters["user"].read_text()
        chapters["user"].write_text(text.replace("# 01_a", "# 01_a, again"))

    assert stale(chapters, change) == {"user": ["the notebook changed"]}


def test_packages_count_for_those_that_import_them(chapters, monkeypatch):
    found = keys(chapters)
    assert {"pandas", "numpy", "matplotlib"} <= found["user"]["packages"].keys()
    assert "pyyaml" in found["other"]["packages"]
    assert "scikit-learn" not in found["user"]["packages"]
    old = json.loads(json.dumps(found["user"]))
    old["packages"]["pandas"] = "0.1"
    now = found["user"]["packages"]["pandas"]
    assert explain(old, found["user"]) == [f"package pandas 0.1 -> {now}"]


def test_settings_count_for_those_that_read_them(chapters):
    before, after = keys(chapters), keys(chapters, seeds=9)
    assert before["user"]["settings"]["seeds"] == 2
    assert "perplexity" not in before["user"]["settings"]
    assert explain(before["user"], after["user"]) == ["setting seeds: 2 -> 9"]
    assert explain(before["other"], after["other"]) == ["setting seeds: as in the profile -> 9"]


def test_what_others_recorded_and_conditions_count(chapters):
    before = keys(chapters, needs={"00_x": {"metrics": {"a": 1}}})
    after = keys(chapters, needs={"00_x": {"metrics": {"a": 2}}}, unmet={"english": "No."})
    assert explain(before["user"], after["user"]) == ["00_x recorded something else"]
    assert explain(before["other"], after["other"]) == [
        "00_x recorded something else", "the condition 'english' changed"
    ]  # fmt: skip
    assert keys(chapters, unmet={"pairs": "No."})["user"]["conditions"] == {"pairs": "No."}


def test_a_run_on_the_newest_of_a_hub_has_no_key(chapters):
    assert keys(chapters, model="owner/model")["user"] is None


def test_what_ones_own_pairs_hold_counts_for_those_that_read_them(chapters, package, tmp_path):
    path = tmp_path / "pairs.csv"
    (package / "apart.py").write_text("h = lambda p: p.contrast_pairs\n")
    path.write_text("1")
    before = keys(chapters, contrast_pairs=str(path))
    path.write_text("2")
    after = keys(chapters, contrast_pairs=str(path))
    assert explain(before["other"], after["other"]) == [
        "what the setting contrast_pairs names changed"
    ]
    assert before["user"] == after["user"]
    assert keys(chapters, contrast_pairs="some/pairs")["other"] is None


def test_what_every_chapter_rests_on_is_little():
    for source in list_chapters():
        made_of = chapter_code(source)
        modules, files = made_of["code"], made_of["files"]
        assert "sentigeo.report.notebook" in modules
        for name in ("runner", "publish", "site"):
            assert f"sentigeo.report.{name}" not in modules, source.stem
        assert ("sentigeo.report.headline" in modules) == (source.stem == "12_claims")
        assert ("abstract.txt.jinja" in files) == (source.stem == "12_claims")
        assert ("map.html.jinja" in files) == ("sentigeo.figures.interactive" in modules)
        assert len(hash_chapter(source)) == 64


def test_an_edited_data_file_or_template_concerns_those_that_name_it(
    chapters, package, tmp_path, monkeypatch
):
    (package / "apart.py").write_text("h = lambda p: (p.perplexity, 'sources.yaml')\n")
    (tmp_path / "sources.yaml").write_text("sentence: One.")
    (tmp_path / "README.md").write_text("Words.")
    monkeypatch.setattr("sentigeo.report.fingerprint.DATA", tmp_path)

    def change():
        (tmp_path / "sources.yaml").write_text("sentence: Another.")
        (tmp_path / "README.md").write_text("Other words.")

    assert stale(chapters, change) == {"other": ["the file sources.yaml changed"]}


FOLDERS = {"DATA": DATA, "SITE_SOURCE": SITE_SOURCE}


def files_named(code):
    """Return the files of data/ and site/ that code asks for; none is named by a computation."""
    nodes, found = list(ast.walk(ast.parse(code))), set()
    for node in nodes:
        if isinstance(node, ast.BinOp) and getattr(node.left, "id", "") in FOLDERS:
            assert isinstance(node.right, ast.Constant), ast.unparse(node)
            if (FOLDERS[node.left.id] / node.right.value).is_file():
                found.add(node.right.value)
        if isinstance(node, ast.JoinedStr):
            assert ".jinja" not in ast.unparse(node), ast.unparse(node)
    texts = [node.value for node in nodes if isinstance(node, ast.Constant)]
    templates = {str(text) for text in texts if str(text).endswith(".jinja")}
    return found | {name for name in templates if (SITE_SOURCE / name).is_file()}


def test_every_file_that_a_chapters_code_asks_for_belongs_to_it():
    seen = set()
    for source in list_chapters():
        made_of = chapter_code(source)
        for module in made_of["code"]:
            place = PACKAGE.joinpath(*module.split(".")[1:])
            path = place.with_suffix(".py") if place.with_suffix(".py").is_file() else place
            code = (path / "__init__.py" if path.is_dir() else path).read_text()
            named = files_named(code)
            assert named <= made_of["files"].keys(), f"{source.stem}, {module}"
            seen |= named
    assert {"sources.yaml", "model_card.md.jinja", "map.html.jinja", "endpoints.yaml"} <= seen


def test_templates_of_chapters_take_nothing_from_others():
    files = {name for source in list_chapters() for name in chapter_code(source)["files"]}
    for name in files & {path.name for path in SITE_SOURCE.glob("*.jinja")}:
        text = (SITE_SOURCE / name).read_text()
        assert not re.search(r"\{%-?\s*(include|import|from|extends)\b", text), name


def git(root, *words):
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b.c", "-C", str(root), *words],
        check=True, capture_output=True,
    )  # fmt: skip


def test_the_commit_says_whether_anything_but_the_report_was_changed(tmp_path):
    assert find_commit(tmp_path) is None
    git(tmp_path, "init")
    assert find_commit(tmp_path) is None  # nothing is committed yet
    (tmp_path / "code.py").write_text("1")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    commit = find_commit(tmp_path)
    assert len(commit) == 40
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports/results.json").write_text("{}")
    (tmp_path / "README.md").write_text("numbers")
    assert find_commit(tmp_path) == commit
    (tmp_path / "code.py").write_text("2")
    assert find_commit(tmp_path) == f"{commit}+changes"


def test_the_last_commit_of_a_file_is_not_that_of_another(tmp_path):
    fixed = tmp_path / "fixed.yaml"
    fixed.write_text("level: 0.05")
    assert find_last_commit(fixed) == ""
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    first = find_last_commit(fixed)
    assert re.fullmatch(r"[0-9a-f]{7,} of \d{4}-\d\d-\d\d", first)
    (tmp_path / "code.py").write_text("1")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "second")
    assert find_last_commit(fixed) == first
    assert find_last_commit(tmp_path / "code.py") not in ("", first)


def test_the_machine_has_names():
    assert find_processor()
    assert "blas" in find_blas().lower() or "mkl" in find_blas().lower()
