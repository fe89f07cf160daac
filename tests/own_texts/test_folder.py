import multiprocessing
import os

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from sentigeo.errors import UserError
from sentigeo.own_texts.folder import NOTEBOOK, UNFINISHED, OwnFolder, fill_folder, open_own_folder
from sentigeo.paths import ROOT
from sentigeo.report.notebook import STAGE_VARIABLE

TEXTS = ['a "b",\nc', "d\re", "=f"]


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_what_is_saved(tmp_path, shown):
    folder = OwnFolder(tmp_path)
    folder.conclude("First.")
    folder.note("Second.")
    folder.array(np.zeros((2, 3)), "embeddings.npy")
    folder.frame(pd.DataFrame({"text": TEXTS}), "rows.csv")
    folder.figure(Figure(figsize=(2, 1)), "clustering_pca.png", "A map.")
    folder.finish("Two texts")
    assert np.load(tmp_path / "embeddings.npy").shape == (2, 3)
    assert pd.read_csv(tmp_path / "rows.csv")["text"].tolist() == TEXTS
    summary = (tmp_path / "summary.md").read_text()
    assert summary.startswith("# Two texts\n\nFirst.\n\nSecond.\n\n## Files")
    assert f"`{NOTEBOOK}`" in summary
    assert "confusion.png" not in summary
    assert shown[0].data == "First."
    with pytest.raises(ValueError, match="not among the files"):
        folder.array(np.zeros(1), "other.npy")


def test_where_a_notebook_writes(tmp_path, monkeypatch):
    monkeypatch.setenv(STAGE_VARIABLE, str(tmp_path))
    assert open_own_folder("build/lab/texts").folder == tmp_path
    monkeypatch.delenv(STAGE_VARIABLE)
    assert open_own_folder("build/lab/texts").folder == ROOT / "build/lab/texts"
    assert open_own_folder(str(tmp_path / "new")).folder.is_dir()


def fill(out, *files):
    with fill_folder(out) as stage:
        for name in files:
            (stage / name).write_text(name)


def test_a_complete_run_is_moved_into_place(tmp_path):
    out = tmp_path / "deep" / "out"
    fill(out, NOTEBOOK, "summary.md", "confusion.png")
    assert names(out) == ["confusion.png", "summary.md", NOTEBOOK]


def test_an_earlier_run_is_replaced_and_other_files_are_left(tmp_path):
    out = tmp_path / "out"
    fill(out, NOTEBOOK, "confusion.png")
    (out / "notes.txt").write_text("mine")
    fill(out, NOTEBOOK, "summary.md")
    assert names(out) == ["notes.txt", "summary.md", NOTEBOOK]


def break_off(out, error):
    with fill_folder(out) as stage:
        (stage / "rows.csv").write_text("half of")
        raise error


@pytest.mark.parametrize("error", [UserError, OSError, KeyboardInterrupt])
def test_a_failed_run_leaves_nothing_new(tmp_path, error):
    out = tmp_path / "out"
    for earlier in (False, True):
        if earlier:
            fill(out, NOTEBOOK)
        with pytest.raises(error):
            break_off(out, error)
        assert names(out) == [NOTEBOOK] if earlier else not out.exists()


def test_what_a_killed_run_left_is_removed(tmp_path):
    stage = tmp_path / "out" / UNFINISHED
    stage.mkdir(parents=True)
    (stage / "confusion.png").write_text("old")
    fill(tmp_path / "out", NOTEBOOK)
    assert names(tmp_path / "out") == [NOTEBOOK]


def test_a_folder_of_other_things_is_refused(tmp_path):
    (tmp_path / "thesis.docx").touch()
    with pytest.raises(UserError, match="holds other files: give a new or an empty folder"):
        fill(tmp_path, NOTEBOOK)
    assert names(tmp_path) == ["thesis.docx"]


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"Cannot write to .*file: "):
        fill(tmp_path / "file", NOTEBOOK)
    with pytest.raises(UserError, match=r"Cannot write to .*out: "):
        fill(tmp_path / "file" / "out", NOTEBOOK)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(UserError, match=r"Cannot write to .*: Permission denied"):
        fill(tmp_path / "out", NOTEBOOK)


def _hold(out, begun, done):
    with fill_folder(out):
        begun.set()
        done.wait(30)


def test_two_runs_do_not_share_a_folder(tmp_path):
    context = multiprocessing.get_context("spawn")
    begun, done = context.Event(), context.Event()
    other = context.Process(target=_hold, args=(tmp_path / "out", begun, done))
    other.start()
    try:
        assert begun.wait(30)
        with pytest.raises(UserError, match="Another run is writing to"):
            fill(tmp_path / "out", NOTEBOOK)
    finally:
        done.set()
        other.join()
    assert other.exitcode == 0


def test_a_full_disk_is_named(tmp_path):
    folder = OwnFolder(tmp_path)
    (tmp_path / "embeddings.npy").symlink_to("/dev/full")
    (tmp_path / "rows.csv").symlink_to("/dev/full")
    with pytest.raises(UserError, match=r"Cannot write embeddings\.npy \(.*\): is the disk full"):
        folder.array(np.zeros((2, 3)), "embeddings.npy")
    with pytest.raises(UserError, match=r"Cannot write rows\.csv \(.*No space left"):
        folder.frame(pd.DataFrame({"a": range(9)}), "rows.csv")
