import subprocess

from sentigeo.report.provenance import find_blas, find_commit, find_processor


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


def test_the_machine_has_names():
    assert find_processor()
    assert "blas" in find_blas().lower() or "mkl" in find_blas().lower()
