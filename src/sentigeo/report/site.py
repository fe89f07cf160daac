"""Build the HTML site from executed notebooks, figures and results."""

import json
import re
import shutil
from html import escape
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_output
from PIL import Image
from sphinx.cmd.build import main as sphinx_build

from sentigeo.errors import UserError
from sentigeo.ledger.claims import ledger_table, show_badge
from sentigeo.paths import SITE_SOURCE
from sentigeo.report.headline import abstract, answer_samples, fill_template, headline_table
from sentigeo.report.page import write_cell

PAGES = ("index.md", "figures.md", "numbers.md")
FRONT_FIGURE = "04_maps_classes.png"  # what the index page shows large
COVERS = ("04_maps_classes.png", "05_clusters_maps.png", "02_finetune_dose.png",
          "07_keywords_association.png", "09_neighbours_shots.png")  # fmt: skip
THUMBNAIL = (480, 300)  # pixels at most, twice what a card shows
SENTENCE = re.compile(r"(?<=[.?!])\s+(?=[A-Z])")
Size = tuple[int, int]  # of a picture in pixels
Sizes = dict[str, Size]  # by file
Card = dict[str, Any]  # what the index page says about a chapter


def build_site(reports: Path, figures: Path, scratch: Path) -> Path:
    """Build `site/`, which works offline, from the notebooks and results in `reports`."""
    results_file = reports / "results.json"
    if not results_file.is_file():
        raise UserError("There is no report to build a site from: run 'make report' first.")
    results = json.loads(results_file.read_text("utf-8"))
    shutil.rmtree(scratch, ignore_errors=True)
    pages, fresh = scratch / "pages", scratch / "html"
    pages.mkdir(parents=True)
    sizes = {path.name: _read_size(path) for path in sorted(figures.glob("*.png"))}
    chapters = sorted(reports.glob("[0-8][0-9]_*.ipynb"))
    cards = [_write_chapter(path, results, sizes, pages) for path in chapters]
    _write_pages(results, cards, sizes, pages)
    _run_sphinx(pages, fresh, scratch / "warnings.txt")
    shutil.copytree(figures, fresh / "figures")
    for cover in (card["cover"] for card in cards if card["cover"]):
        make_thumbnail(figures / cover, fresh / "thumbnails" / cover)
    shutil.rmtree(reports / "site", ignore_errors=True)
    return fresh.rename(reports / "site")


def _write_chapter(path: Path, results: dict[str, Any], sizes: Sizes, pages: Path) -> Card:
    """Write a chapter as an article; return what the index page says about it."""
    notebook, number = nbformat.read(path, as_version=4), int(path.stem[:2])
    title, sentence = read_opening(notebook)
    make_article(notebook, sizes, f'<p class="byline">Chapter {number}</p>')
    nbformat.write(notebook, pages / path.name)
    cover = pick_cover([figure["file"] for figure in results["figures"].get(path.stem, [])])
    about = {"title": title, "sentence": sentence, "cover": cover}
    return {"name": path.stem, "number": number, **about}


def read_opening(notebook: NotebookNode) -> tuple[str, str]:
    """Return a chapter's title and the first sentence below it, as plain text."""
    title, _, text = notebook.cells[0].source.partition("\n")
    sentence = SENTENCE.split(" ".join(text.split()), 1)[0]
    return title.lstrip("# ").strip(), sentence.replace("*", "").replace("`", "")


def make_article(notebook: NotebookNode, sizes: Sizes, byline: str) -> None:
    """Turn an executed notebook into an article, in place: with a byline, one fold per step."""
    title, _, text = notebook.cells[0].source.partition("\n")
    notebook.cells[0].source = f"{title}\n\n{byline}\n{text}"
    notebook.cells = join_silent(notebook.cells)
    for cell in notebook.cells:
        cell.source = cell.source.replace('href="../figures/', 'href="figures/')
        if cell.cell_type == "code":
            opens = "open_chapter(" in cell.source
            cell.metadata["tags"] = ["hide-input"] + ["provenance"] * opens
            kept = [one for one in cell.outputs if "caption_of" not in one.get("metadata", {})]
            cell.outputs = [show_output(output, sizes) for output in kept]


def join_silent(cells: list[NotebookNode]) -> list[NotebookNode]:
    """Merge code cells without output into the next code cell, so that they share one fold."""
    joined: list[NotebookNode] = []
    for cell in cells:
        last = joined[-1] if joined else None
        if last and last.cell_type == cell.cell_type == "code" and not last.outputs:
            cell.source = f"{last.source}\n\n{cell.source}"
            joined.pop()
        joined.append(cell)
    return joined


def show_output(output: NotebookNode, sizes: Sizes) -> NotebookNode:
    """Return an output as an article shows it: a figure from its file, with its caption."""
    about = output.get("metadata", {}).get("image/png", {})
    if (file := about.get("file")) in sizes:
        page = frame_picture(file, sizes[file], about["alt"])
        return new_output("display_data", {"text/html": page})
    if "text/html" in output.get("data", {}):
        output.data["text/html"] = relink(output.data["text/html"])
    return output


def relink(page: str) -> str:
    """Redirect links to interactive pages and notebooks to those of the site."""
    page = page.replace('href="../figures/', 'href="figures/')
    return re.sub(r'href="(\w+)\.ipynb', r'href="\1.html', page)


def frame_picture(file: str, size: Size, caption: str, more: str = "") -> str:
    """Return a figure with its caption, which may end in more HTML; a click enlarges it."""
    words = escape(caption)
    return (
        f'<figure class="picture"><a href="figures/{file}"><img src="figures/{file}" alt="{words}" '
        f'width="{size[0]}" height="{size[1]}" loading="lazy"></a>'
        f"<figcaption>{f'{words} {more}'.strip()}</figcaption></figure>"
    )


def pick_cover(files: list[str]) -> str | None:
    """Return the figure that represents a chapter: the first, unless another says more."""
    return next((file for file in files if file in COVERS), files[0] if files else None)


def _write_pages(results: dict[str, Any], cards: list[Card], sizes: Sizes, pages: Path) -> None:
    missing = {claim["chapter"] for claim in results["claims"]} - {card["name"] for card in cards}
    shown = {
        "cards": cards,
        "sizes": sizes,
        "front": FRONT_FIGURE,
        "answer": answer_samples(results),
        "abstract": abstract(results),
        "table": headline_table(results),
        "ledger": relink(ledger_table(results["claims"], missing)[0]),
        "badge": show_badge,
        "number": write_cell,
        "frame": frame_picture,
        "areas": dict.fromkeys(name.partition(".")[0] for name in results["metrics"]),
        "thumbnail": lambda file: fit_into(THUMBNAIL, sizes[file]),
    }
    for page in PAGES:
        (pages / page).write_text(fill_template(f"{page}.jinja", results, **shown), "utf-8")


def _read_size(picture: Path) -> Size:
    with Image.open(picture) as image:
        return image.size


def fit_into(box: Size, size: Size) -> Size:
    """Return the size at which a picture fits into a box."""
    share = min(1.0, box[0] / size[0], box[1] / size[1])
    return round(size[0] * share), round(size[1] * share)


def make_thumbnail(source: Path, target: Path) -> None:
    """Write a small copy of a figure."""
    target.parent.mkdir(exist_ok=True)
    with Image.open(source) as image:
        size = fit_into(THUMBNAIL, image.size)
        small = image.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    small.quantize(64).save(target, optimize=True)


def _run_sphinx(pages: Path, target: Path, warnings: Path) -> None:
    options = ["-b", "html", "-q", "-E", "-d", pages / ".doctrees", "-w", warnings]
    if sphinx_build([*map(str, [*options, "-c", SITE_SOURCE, pages, target])]):
        raise UserError(f"The site could not be built; see {warnings.name} in {warnings.parent}.")
