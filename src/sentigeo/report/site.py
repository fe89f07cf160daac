"""Build the HTML site from executed notebooks, figures and results."""

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from PIL import Image
from sphinx.cmd.build import main as sphinx_build

from sentigeo.errors import UserError
from sentigeo.ledger.claims import show_badge
from sentigeo.paths import SITE_SOURCE
from sentigeo.report import article
from sentigeo.report.article import Picture
from sentigeo.report.headline import abstract, answer_samples, compare_models, write

PAGES = ("index.md", "figures.md", "numbers.md")
FRONT_FIGURE = "04_maps_classes.png"  # what the index page shows large
COVERS = ("04_maps_classes.png", "05_clusters_maps.png", "02_finetune_dose.png",
          "07_keywords_leans.png", "09_neighbours_shots.png")  # fmt: skip
THUMBNAIL = (480, 300)  # pixels at most, twice what a card shows


@dataclass(frozen=True)
class Card:
    """What the index page says about a chapter.

    Attributes:
        name: The notebook's name.
        number: The chapter's number.
        title: Its title.
        sentence: The first sentence below it.
        seconds: How long it took; none if that was not recorded.
        cover: File of the figure that stands for it; none if it has no figures.
        claims: Claims that its page can be linked at.
    """

    name: str
    number: int
    title: str
    sentence: str
    seconds: float | None
    cover: str | None
    claims: list[str]


def build_site(reports: Path, figures: Path, scratch: Path) -> Path:
    """Build `reports/site/`, complete without a network.

    Args:
        reports: Folder with the executed notebooks and `results.json`.
        figures: Folder with the figures.
        scratch: A folder of its own; Sphinx's warnings are left there in `warnings.txt`.

    Returns:
        The site's folder.
    """
    results_file = reports / "results.json"
    if not results_file.is_file():
        raise UserError("There is no report to build a site from: run 'make report' with it first.")
    results = json.loads(results_file.read_text("utf-8"))
    shutil.rmtree(scratch, ignore_errors=True)
    pages, fresh = scratch / "pages", scratch / "html"
    pages.mkdir(parents=True)
    pictures = article.list_pictures(figures)
    cards = _write_chapters(reports, results, dict(pictures), pages)
    _write_pages(results, cards, {own.file: own for _, own in pictures}, pages)
    _run_sphinx(pages, fresh, scratch / "warnings.txt")
    shutil.copytree(figures, fresh / "figures")
    for card in cards:
        if card.cover:
            make_thumbnail(figures / card.cover, fresh / "thumbnails" / card.cover)
    site = reports / "site"
    shutil.rmtree(site, ignore_errors=True)
    fresh.rename(site)
    return site


def _write_chapters(
    reports: Path, results: dict[str, Any], pictures: dict[bytes, Picture], pages: Path
) -> list[Card]:
    """Write the chapters as articles; return what the index page says about each."""
    cards = []
    paths = sorted(reports.glob("[0-8][0-9]_*.ipynb"))
    for path in paths:
        notebook, number = nbformat.read(path, as_version=4), int(path.stem[:2])
        title, sentence = article.read_opening(notebook)
        byline = f'<p class="byline">Chapter {number}</p>'
        article.make_article(notebook, pictures, byline, [own.stem for own in paths])
        nbformat.write(notebook, pages / path.name)
        cover = pick_cover([own["file"] for own in results["figures"].get(path.stem, [])])
        seconds = results["seconds"].get(path.stem)
        claims = article.find_claims(notebook)
        cards.append(Card(path.stem, number, title, sentence, seconds, cover, claims))
    return cards


def pick_cover(files: list[str]) -> str | None:
    """Return the figure that stands for a chapter: the first, unless another tells more."""
    return next((file for file in files if file in COVERS), files[0] if files else None)


def _write_pages(
    results: dict[str, Any],
    cards: list[Card],
    pictures: dict[str, Picture],
    pages: Path,
) -> None:
    environment = Environment(
        loader=FileSystemLoader(SITE_SOURCE), undefined=StrictUndefined, keep_trailing_newline=True,
        autoescape=True, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["number"] = format_number
    shown = {
        "results": results,
        "cards": cards,
        "pictures": pictures,
        "front": FRONT_FIGURE,
        "answer": answer_samples(results),
        "abstract": abstract(results),
        "models": compare_models(results),
        "places": {card.name: card.claims for card in cards},
        "badge": show_badge,
        "write": write,
        "frame": article.frame_picture,
        "areas": group_metrics(results["metrics"]),
        "thumbnail": lambda file: fit_into(THUMBNAIL, pictures[file]),
    }
    for page in PAGES:
        text = environment.get_template(f"{page}.jinja").render(shown)
        (pages / page).write_text(text, "utf-8")


def group_metrics(metrics: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return metrics by the first part of their names."""
    areas: dict[str, dict[str, Any]] = {}
    for name, metric in metrics.items():
        areas.setdefault(name.partition(".")[0], {})[name] = metric
    return areas


def fit_into(box: tuple[int, int], picture: Picture) -> tuple[int, int]:
    """Return the size in pixels at which a picture fits into a box."""
    share = min(1.0, box[0] / picture.width, box[1] / picture.height)
    return round(picture.width * share), round(picture.height * share)


def make_thumbnail(source: Path, target: Path) -> None:
    """Write a small copy of a figure."""
    target.parent.mkdir(exist_ok=True)
    with Image.open(source) as image:
        size = fit_into(THUMBNAIL, Picture(source.name, *image.size))
        small = image.convert("RGB").resize(size, Image.Resampling.LANCZOS)
    small.quantize(64).save(target, optimize=True)


def format_number(value: float | None) -> str:
    """Write a number with three digits behind the point, whole numbers without."""
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:z.3f}"


def _run_sphinx(pages: Path, target: Path, warnings: Path) -> None:
    options = ["-b", "html", "-q", "-E", "-d", str(pages / ".doctrees")]
    log = ["-w", str(warnings)]
    failed = sphinx_build([*options, *log, "-c", str(SITE_SOURCE), str(pages), str(target)])
    if failed:
        raise UserError(f"The site could not be built; see {warnings.name} in {warnings.parent}.")
