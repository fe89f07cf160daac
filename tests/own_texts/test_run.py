import json
import re

import nbformat
import numpy as np
import pandas as pd
import pytest

from sentigeo.__main__ import main
from sentigeo.own_texts.folder import FILES, NOTEBOOK

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
    assert main(["texts", str(path), "--out", str(out), *arguments]) == 1
    message = capsys.readouterr().err
    assert message.startswith("Error: ")
    assert words in message
    assert message.count("\n") == 1
    assert not out.exists()


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("folder", "cannot be loaded"),
        ("/no/such/folder", "There is no model folder"),
    ],
)
def test_bad_models_are_one_sentence_and_leave_nothing(
    tmp_path, file, capsys, monkeypatch, model, words
):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/config.json").write_text("{no json")
    monkeypatch.chdir(tmp_path)
    assert main(["texts", str(file), "--out", "out", "--model", model]) == 1
    message = capsys.readouterr().err
    assert words in message
    assert message.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_missing_file_and_a_folder_of_other_things(tmp_path, capsys, file):
    assert main(["texts", str(tmp_path / "none.json")]) == 1
    assert "There is no file" in capsys.readouterr().err
    (tmp_path / "thesis.docx").touch()
    assert main(["texts", str(file), "--out", str(tmp_path)]) == 1
    assert "holds other files" in capsys.readouterr().err
