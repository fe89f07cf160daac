"""A chapter as an article: an executed notebook made ready for the site."""

import base64
import re
from collections.abc import Collection
from dataclasses import dataclass
from html import escape, unescape
from io import BytesIO
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_output
from PIL import Image

STYLE = re.compile(r"<style.*?</style>\s*", re.S)
CAPTION = re.compile(r"\s*<caption>(.*?)</caption>", re.S)
CELL = re.compile(r'<(td|th) class="[^"]*\bcol(\d+)"\s*>(.*?)</\1>', re.S)
NUMBER = re.compile(r"[+-]?[\d,]*\.?\d+(e[+-]?\d+)?%?( s)?( \[.*\])?|-|nan|")
CLAIM = re.compile(r'<(\w+) class="claim">(?=.*?class="claim-id">\s*(\w+))', re.S)
CHAPTER = re.compile(r'<a href="(\w+)\.ipynb">(.*?)</a>', re.S)
SENTENCE = re.compile(r"(?<=[.?!])\s+(?=[A-Z])")


@dataclass(frozen=True)
class Picture:
    """A figure's file in the folder of figures, and its size in pixels."""

    file: str
    width: int
    height: int


def list_pictures(folder: Path) -> list[tuple[bytes, Picture]]:
    """Return the figures of a folder with what their files hold."""
    found = []
    for path in sorted(folder.glob("*.png")):
        with Image.open(path) as image:
            found.append((path.read_bytes(), Picture(path.name, *image.size)))
    return found


def read_opening(notebook: NotebookNode) -> tuple[str, str]:
    """Return a chapter's title and the first sentence below it, as plain text."""
    title, _, text = notebook.cells[0].source.partition("\n")
    sentence = SENTENCE.split(" ".join(text.split()), 1)[0]
    return title.lstrip("# ").strip(), sentence.replace("*", "").replace("`", "")


def make_article(
    notebook: NotebookNode, pictures: dict[bytes, Picture], byline: str, chapters: Collection[str]
) -> None:
    """Turn an executed notebook into an article, in place.

    Code is folded, one fold a step; pictures stand with their captions; tables scroll in boxes of
    their own; links lead to the site's pages.

    Args:
        notebook: The executed notebook.
        pictures: The figures by what their files hold.
        byline: A line of HTML to stand below the title.
        chapters: Names of the notebooks that have a page.
    """
    title, _, text = notebook.cells[0].source.partition("\n")
    notebook.cells[0].source = f"{title}\n\n{byline}\n{text}"
    notebook.cells = join_silent(notebook.cells)
    for cell in notebook.cells:
        cell.source = cell.source.replace('href="../figures/', 'href="figures/')
        if cell.cell_type == "code":
            tags = ["hide-input"] + ["provenance"] * ("open_chapter(" in cell.source)
            cell.metadata["tags"] = tags
            cell.outputs = show_outputs(cell.outputs, pictures, chapters)


def join_silent(cells: list[NotebookNode]) -> list[NotebookNode]:
    """Join code cells that show nothing with the code cell after them, so that one fold is left."""
    joined: list[NotebookNode] = []
    for cell in cells:
        last = joined[-1] if joined else None
        if last and last.cell_type == cell.cell_type == "code" and not last.outputs:
            cell.source = f"{last.source}\n\n{cell.source}"
            joined.pop()
        joined.append(cell)
    return joined


def show_outputs(
    outputs: list[NotebookNode], pictures: dict[bytes, Picture], chapters: Collection[str]
) -> list[NotebookNode]:
    """Return a cell's outputs as an article shows them."""
    shown: list[NotebookNode] = []
    caption = None
    for output in outputs:
        data = output.get("data", {})
        if caption and data.get("text/markdown") == f"*{caption}*":
            caption = None  # it stands below the picture already
            continue
        if "image/png" in data:
            caption = output.metadata["image/png"]["alt"]
            framed = frame_output(data["image/png"], caption, pictures)
            output = new_output("display_data", {"text/html": framed})
        elif "text/html" in data:
            page = relink(data["text/html"], chapters)
            framed = frame_table(page) if "<table" in page else page
            data["text/html"] = CLAIM.sub(r'<\1 class="claim" id="\2">', framed)
        shown.append(output)
    return shown


def relink(page: str, chapters: Collection[str]) -> str:
    """Lead links to interactive pages and to notebooks to the site's own, if it has them."""
    return CHAPTER.sub(
        lambda link: f'<a href="{link[1]}.html">{link[2]}</a>' if link[1] in chapters else link[2],
        page.replace('href="../figures/', 'href="figures/'),
    )


def find_claims(notebook: NotebookNode) -> list[str]:
    """Return the claims that an article can be linked at."""
    outputs = [own for cell in notebook.cells for own in cell.get("outputs", [])]
    pages = [own.get("data", {}).get("text/html", "") for own in outputs]
    return re.findall(r'class="claim" id="(\w+)"', "".join(pages))


def frame_output(code: str, caption: str, pictures: dict[bytes, Picture]) -> str:
    """Return a picture of a notebook with its caption.

    A figure is shown from its file, and alone and in full size when it is clicked on; any other
    picture, such as an explorer's, is carried along.

    Args:
        code: The picture's file in base 64.
        caption: What it shows.
        pictures: The figures by what their files hold.
    """
    held = base64.b64decode(code)
    if held in pictures:
        return frame_picture(pictures[held], caption)
    with Image.open(BytesIO(held)) as image:
        shown = _show(f"data:image/png;base64,{code.strip()}", image.size, caption)
    return _frame(shown, caption)


def frame_picture(picture: Picture, caption: str, more: str = "") -> str:
    """Return a figure with its caption, which may end in more HTML."""
    address = f"figures/{picture.file}"
    shown = _show(address, (picture.width, picture.height), caption)
    return _frame(f'<a href="{address}">{shown}</a>', caption, more)


def _show(address: str, size: tuple[int, int], caption: str) -> str:
    """Return a picture that takes up its room before it is loaded."""
    return (
        f'<img src="{address}" alt="{escape(caption)}" width="{size[0]}" height="{size[1]}" '
        'loading="lazy">'
    )


def _frame(shown: str, caption: str, more: str = "") -> str:
    words = f"{escape(caption)} {more}".strip()
    return f'<figure class="picture">{shown}<figcaption>{words}</figcaption></figure>'


def frame_table(table: str) -> str:
    """Return a table of a notebook in a box of its own, its columns of numbers marked as such."""
    table = STYLE.sub("", table).replace(' id="T_t"', "")
    caption = CAPTION.search(table)
    words = caption[1].strip() if caption else ""
    columns: dict[str, list[str]] = {}
    for kind, column, text in CELL.findall(table):
        columns.setdefault(column, []).extend([text.strip()] if kind == "td" else [])
    numbers = {own for own, texts in columns.items() if all(map(NUMBER.fullmatch, texts))}
    body = CELL.sub(
        lambda cell: (
            f"<{cell[1]}" + ' class="number"' * (cell[2] in numbers) + f">{cell[3]}</{cell[1]}>"
        ),
        CAPTION.sub("", table),
    )
    label = escape(unescape(re.sub("<[^ ].*?>", "", words))) or "Table"
    above = f"<figcaption>{words}</figcaption>" if words else ""
    return (
        f'<figure class="table">{above}'
        f'<div class="scroll" role="region" aria-label="{label}" tabindex="0">{body}</div></figure>'
    )
