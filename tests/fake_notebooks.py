"""Small repositories of notebooks that stand in for chapters."""

import json
import time

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

OPEN = """from sentigeo.report.notebook import open_chapter
chapter = open_chapter("{name}", profile, overrides)"""
RECORD = """from matplotlib.figure import Figure
from sentigeo.stats import share
estimate = chapter.record("{name}.metric", share([True, True, {last}]))
figure = Figure(figsize=(2, 1))
figure.subplots().plot([0, 1])
chapter.figure(figure, "line", "A line (n = 2).")
chapter.page("<p>A page</p>", "page", "A page.")
chapter.say(f"We found {{estimate}}.")"""
PARAMETERS = 'profile = "quick"\noverrides = {}'


def write_notebook(root, name, *cells, parameters=PARAMETERS, **said):
    """Write a notebook with a title, parameters and cells, each code or a pair of code and tags."""
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = new_notebook(metadata=kernel | ({"sentigeo": said} if said else {}))
    notebook.cells = [new_markdown_cell(f"# {name}", id="title")]
    for number, cell in enumerate([(parameters, ["parameters"]), *cells]):
        code, tags = cell if isinstance(cell, tuple) else (cell, [])
        about = {"tags": tags} if tags else {}
        notebook.cells.append(new_code_cell(code, metadata=about, id=f"cell-{number}"))
    path = root / "notebooks" / f"{name}.ipynb"
    path.parent.mkdir(exist_ok=True)
    nbformat.write(notebook, path)
    return path


def write_chapter(root, name, *cells, last=True, **said):
    """Write a chapter that records a metric, a figure and a page before its other cells."""
    opening = OPEN.format(name=name), RECORD.format(name=name, last=last)
    return write_notebook(root, name, *opening, *cells, **said)


def snapshot(folder):
    """What all files of a folder hold."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def results_of(root):
    """The results of the profile `quick`."""
    return json.loads((root / "build/quick/reports/results.json").read_text("utf-8"))


def wait_for(condition, what, seconds=60):
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)
