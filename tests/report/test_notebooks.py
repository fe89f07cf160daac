"""The committed notebooks: sources without outputs, executed copies in step with them."""

import json
import re
import statistics

import nbformat
import pytest
from PIL import Image

from sentigeo.paths import NOTEBOOKS, ROOT, list_chapters, run_paths
from sentigeo.profile import load_profile
from sentigeo.report.fingerprint import stale_chapters

PUBLISHED = run_paths("laptop")
SOURCES = sorted(NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))
CHAPTERS = list_chapters()


def read(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return notebook


def code_cells(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def tags(cell):
    return cell.metadata.get("tags", [])


@pytest.fixture(params=SOURCES, ids=lambda path: path.stem)
def source(request):
    return read(request.param)


@pytest.fixture(params=CHAPTERS, ids=lambda path: path.stem)
def chapter(request):
    return request.param


def test_there_are_notebooks():
    assert CHAPTERS


def test_sources_have_no_outputs_or_widgets(source):
    assert all(not cell.outputs and cell.execution_count is None for cell in code_cells(source))
    assert "widgets" not in source.metadata


def test_sources_have_one_parameters_cell_of_plain_assignments(source):
    tagged = [cell for cell in source.cells if "parameters" in tags(cell)]
    assert len(tagged) == 1
    assert all(re.match(r"\w+ = .+  # .+", line) for line in tagged[0].source.splitlines())


BOOKKEEPING = r"\*\*vars\(|\[None\]|Estimate\(row|if (handcrafted|english|enough|two_classes)\b"


def test_cells_are_short_and_without_bookkeeping():
    lengths = []
    for path in SOURCES:
        for cell in code_cells(read(path)):
            lengths.append(len(cell.source.splitlines()))
            assert lengths[-1] <= 25, (path.name, cell.source)
            assert not re.search(BOOKKEEPING, cell.source), (path.name, cell.source)
    assert statistics.median(lengths) <= 8


def test_sources_read_like_a_page(source):
    assert re.match(r"# .+\?\n", source.cells[0].source), "the title is a question"
    for cell in code_cells(source):
        assert not re.search(r"^\s*(def |class |!|%|import sys)", cell.source, re.MULTILINE)


@pytest.mark.published
def test_executed_copy_has_the_code_of_its_source(chapter):
    copy = read(PUBLISHED.reports / chapter.name)
    executed = [c for c in copy.cells if "injected-parameters" not in tags(c)]
    assert [c.source for c in executed] == [c.source for c in read(chapter).cells], (
        "run 'make report' and commit what it makes"
    )


@pytest.mark.published
def test_executed_copy_can_be_read_where_the_code_is_hosted(chapter):
    path = PUBLISHED.reports / chapter.name
    copy = read(path)
    assert path.stat().st_size < 1_000_000
    assert "widgets" not in copy.metadata
    assert all(cell.execution_count for cell in code_cells(copy))
    kinds = {(o.output_type, o.get("name")) for c in code_cells(copy) for o in c.outputs}
    assert kinds <= {("display_data", None), ("execute_result", None)}
    assert str(ROOT) not in path.read_text("utf-8")


@pytest.mark.published
def test_figures_are_those_of_the_results():
    results = json.loads((PUBLISHED.reports / "results.json").read_text("utf-8"))
    named = [figure for figures in results["figures"].values() for figure in figures]
    on_disk = {path.name for path in PUBLISHED.figures.glob("*.png")}
    assert {figure["file"] for figure in named} == on_disk
    pages = {page["file"] for pages in results["pages"].values() for page in pages}
    assert pages == {path.name for path in PUBLISHED.figures.iterdir()} - on_disk
    assert all("n = " in figure["caption"] or "n above" in figure["caption"] for figure in named)
    for name in on_disk:
        with Image.open(PUBLISHED.figures / name) as picture:
            assert picture.width >= 1000


@pytest.mark.published
def test_published_results():
    results = json.loads((PUBLISHED.reports / "results.json").read_text("utf-8"))
    assert results["profile"] == "laptop"
    assert results["settings"] == load_profile("laptop").settings, "run 'make report'"
    assert results["seconds"].keys() == {path.stem for path in CHAPTERS}
    for name, metric in results["metrics"].items():
        assert metric.keys() == {"value", "low", "high", "n", "unit"}, name
        assert metric["n"] > 0
        if metric["low"] is not None:
            assert metric["low"] <= metric["value"] <= metric["high"], name
    test_accuracy = results["metrics"]["baseline.tfidf.test_accuracy"]
    assert test_accuracy["n"] >= 2000
    assert test_accuracy["value"] > 0.8
    assert results["metrics"]["baseline.tfidf.challenge_consistency"]["n"] >= 150


@pytest.mark.published
def test_the_published_results_were_made_by_this_code():
    stale = stale_chapters(PUBLISHED.reports / "results.json", CHAPTERS)
    assert not stale, f"run make report: other code made {', '.join(stale)}"
