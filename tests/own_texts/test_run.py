import json
import os
import re

import nbformat
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from sentigeo.__main__ import main
from sentigeo.errors import UserError
from sentigeo.own_texts.run import (
    FILES,
    NOTEBOOK,
    UNFINISHED,
    OwnFolder,
    fill_folder,
    open_own_folder,
)
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


def refused(file, out, capsys, *arguments):
    """What is said of texts that cannot be run."""
    assert main(["texts", str(file), "--out", str(out), *arguments]) == 1
    message = capsys.readouterr().err
    assert message.startswith("Error: ")
    assert message.count("\n") == 1
    return message


def test_a_folder_that_cannot_be_written(tmp_path, file, capsys):
    (tmp_path / "file").touch()
    for out in (tmp_path / "file", tmp_path / "file" / "out"):
        assert f"Cannot write to {out}: " in refused(file, out, capsys)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(tmp_path, file, capsys):
    tmp_path.chmod(0o500)
    said = refused(file, tmp_path / "out", capsys)
    assert f"Cannot write to {tmp_path / 'out'}: Permission denied" in said


def test_two_runs_do_not_share_a_folder(tmp_path):
    with fill_folder(tmp_path / "out") as stage:
        with pytest.raises(UserError, match="Another run is writing to"):
            fill(tmp_path / "out", NOTEBOOK)
        (stage / "summary.md").write_text("found")
    assert names(tmp_path / "out") == ["summary.md"]


def test_a_full_disk_is_named(tmp_path):
    folder = OwnFolder(tmp_path)
    (tmp_path / "embeddings.npy").symlink_to("/dev/full")
    (tmp_path / "rows.csv").symlink_to("/dev/full")
    with pytest.raises(UserError, match=r"Cannot write embeddings\.npy \(.*\): is the disk full"):
        folder.array(np.zeros((2, 3)), "embeddings.npy")
    with pytest.raises(UserError, match=r"Cannot write rows\.csv \(.*No space left"):
        folder.frame(pd.DataFrame({"a": range(9)}), "rows.csv")


HOSTILE = '<script>alert("boo")</script> cat \u202egnp.exe'


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """60 labelled texts of two kinds, one hostile, one empty, in a part of an object."""
    rng = np.random.default_rng(0)
    words = {"animals": "cat dog cow purr bark paw", "traffic": "bus tram car road wheel street"}
    rows = [
        {"body": " ".join(rng.choice(own.split(), 12)), "kind": kind}
        for kind, own in words.items()
        for _ in range(30)
    ]
    rows += [{"body": HOSTILE, "kind": "animals"}, {"body": "", "kind": "traffic"}]
    path = tmp_path_factory.mktemp("own") / "response.json"
    path.write_text(json.dumps({"answers": rows, "version": 1}), "utf-8-sig")
    return path


@pytest.fixture(scope="module")
def out(file, tiny_mpnet, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "out"
    arguments = ["--model", str(tiny_mpnet), "--k", "2", "--label", "kind", "--out", str(folder)]
    assert main(["texts", str(file), *arguments]) == 0
    return folder


def test_every_file_is_there(out):
    assert {path.name for path in out.iterdir()} == set(FILES)


def test_rows_and_vectors_belong_together(out):
    rows, vectors = pd.read_csv(out / "rows.csv"), np.load(out / "embeddings.npy")
    assert vectors.shape == (61, 32)
    assert vectors.dtype == np.float32
    assert rows["row"].tolist() == list(range(1, 62))
    assert rows["text"].iloc[60] == HOSTILE
    centre = np.stack([vectors[rows["cluster"] == c].mean(axis=0) for c in (1, 2)])
    far = np.linalg.norm(vectors - centre[rows["cluster"] - 1], axis=1)
    np.testing.assert_allclose(rows["distance"], far, rtol=1e-4)
    assert (rows["agrees"] == (rows["label"] == rows["cluster_label"])).all()


def test_the_summary_says_what_was_done(out):
    summary = (out / "summary.md").read_text()
    assert "from the field 'body' of the part 'answers'" in summary
    assert "left out: 1 of 62 (62)" in summary
    assert "MPNetModel, 2 layers, 32 wide" in summary
    assert "**k = 2**, as asked for" in summary
    agreement = pd.read_csv(out / "rows.csv")["agrees"].mean()
    assert re.search(rf"accuracy {agreement:.3f} \[\d\.\d+, \d\.\d+; n = 61\]", summary)


def test_the_notebook_is_clean_and_hostile_text_is_inert(out):
    notebook = nbformat.read(out / NOTEBOOK, as_version=4)
    assert "widgets" not in notebook.metadata
    outputs = [o for c in notebook.cells if c.cell_type == "code" for o in c.outputs]
    assert {o.output_type for o in outputs} == {"display_data"}
    shown = "".join(
        str(o.data.get(kind, "")) for o in outputs for kind in ("text/html", "text/markdown")
    )
    assert "<script>" not in shown
    assert "<script>alert" not in (out / "summary.md").read_text()


@pytest.mark.parametrize(
    ("content", "arguments", "words"),
    [
        ('["a",\n "b"', [], "response.json, line 2: not valid JSON"),
        ('["a", 3]', [], "entry 2: a number, while others are a text"),
        ('["", " "]', [], "all texts are empty"),
        ('["one"]', [], "at least 5 different texts are needed, not 1"),
        ('["a", "a", "a"]', [], "all 3 texts are the same"),
        ('["a", "b", "c", "d", "e"]', ["--k", "6"], "from 2 to 5"),
        ('["a", "b", "c", "d", "e"]', ["--k", "many"], "or auto, not 'many'"),
        ('["a", "b", "c", "d", "e"]', ["--text", "body"], "has no field 'body'"),
        ('["a", "b", "c", "d", "e"]', ["--label", "mood"], "has no field 'mood'"),
        (json.dumps(["x" * 5_000_000]), [], "more than 1,000,000 characters"),
        (b'["caf\xe9"]', [], "is not UTF-8 text: see line 1"),
    ],
)  # fmt: skip
def test_bad_texts_are_one_sentence_and_leave_nothing(tmp_path, capsys, content, arguments, words):
    path, out = tmp_path / "response.json", tmp_path / "out"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    assert words in refused(path, out, capsys, *arguments)
    assert not out.exists()


def test_a_model_that_is_not_there_is_one_sentence(tmp_path, file, capsys):
    said = refused(file, tmp_path / "out", capsys, "--model", "/no/such/folder")
    assert "There is no model folder" in said
    assert not (tmp_path / "out").exists()


def test_what_a_notebook_says_of_its_texts_is_one_sentence(tmp_path, file, capsys, monkeypatch):
    def fail(*_):
        raise UserError("90_your_texts.ipynb: This model cannot be loaded.")

    monkeypatch.setattr("sentigeo.own_texts.run.Process", lambda *_: None)
    monkeypatch.setattr("sentigeo.own_texts.run.run_notebook", fail)
    said = refused(file, tmp_path / "out", capsys)
    assert said == "Error: This model cannot be loaded.\n"
    assert not (tmp_path / "out").exists()


def test_a_missing_file_and_a_folder_of_other_things(tmp_path, capsys, file):
    assert "There is no file" in refused(tmp_path / "none.json", tmp_path / "out", capsys)
    (tmp_path / "thesis.docx").touch()
    assert "holds other files" in refused(file, tmp_path, capsys)
