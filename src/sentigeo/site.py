"""Build the HTML site from executed notebooks, figures and results."""

import json
import shutil
from pathlib import Path
from typing import Any

import nbformat
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from sphinx.cmd.build import main as sphinx_build

from sentigeo.errors import UserError
from sentigeo.paths import SITE_SOURCE

PAGES = ("index.md", "figures.md")


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
    shutil.rmtree(scratch, ignore_errors=True)
    pages, fresh = scratch / "pages", scratch / "html"
    shutil.copytree(figures, pages / "figures")
    for notebook in sorted(reports.glob("*.ipynb")):
        _copy_notebook(notebook, pages / notebook.name)
    _write_pages(json.loads(results_file.read_text("utf-8")), pages)
    _run_sphinx(pages, fresh, scratch / "warnings.txt")
    for page in figures.glob("*.html"):
        (fresh / "figures").mkdir(exist_ok=True)
        shutil.copy(page, fresh / "figures")
    site = reports / "site"
    shutil.rmtree(site, ignore_errors=True)
    fresh.rename(site)
    return site


def _copy_notebook(source: Path, target: Path) -> None:
    """Copy an executed notebook for the site.

    Code is folded, pictures have their captions as text, and links to interactive pages lead to
    their copies.
    """
    notebook = nbformat.read(source, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        tags = cell.metadata.setdefault("tags", [])
        tags.append("hide-input")
        for output in cell.outputs:
            alt = output.get("metadata", {}).get("image/png", {}).get("alt")
            if alt:
                cell.metadata["mystnb"] = {"image": {"alt": alt}}
            page = output.get("data", {}).get("text/html")
            if page:
                output.data["text/html"] = page.replace('href="../figures/', 'href="figures/')
    nbformat.write(notebook, target)


def _write_pages(results: dict[str, Any], pages: Path) -> None:
    environment = Environment(
        loader=FileSystemLoader(SITE_SOURCE), undefined=StrictUndefined, keep_trailing_newline=True,
        autoescape=False,
    )  # fmt: skip
    environment.filters["number"] = format_number
    environment.filters["interval"] = format_interval
    for page in PAGES:
        text = environment.get_template(f"{page}.jinja").render(results=results)
        (pages / page).write_text(text, "utf-8")


def format_number(value: float | None) -> str:
    """Write a number with three digits behind the point, whole numbers without."""
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def format_interval(metric: dict[str, Any]) -> str:
    """Write a metric's interval."""
    if metric["low"] is None:
        return "-"
    return f"[{format_number(metric['low'])}, {format_number(metric['high'])}]"


def _run_sphinx(pages: Path, target: Path, warnings: Path) -> None:
    options = ["-b", "html", "-q", "-E", "-d", str(pages / ".doctrees")]
    log = ["-w", str(warnings)]
    failed = sphinx_build([*options, *log, "-c", str(SITE_SOURCE), str(pages), str(target)])
    if failed:
        raise UserError(f"The site could not be built; see {warnings.name} in {warnings.parent}.")
