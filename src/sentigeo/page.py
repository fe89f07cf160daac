"""What a notebook can show: sentences, tables, pictures, and links to interactive pages."""

import warnings
from html import escape
from io import BytesIO
from pathlib import Path
from textwrap import shorten

import numpy as np
import pandas as pd
from IPython.display import Image, Markdown, display
from matplotlib.figure import Figure
from pandas.io.formats.style import Styler
from PIL import Image as Picture

from sentigeo.store import write_text

FIGURE_DPI = 140
VISIBLE, DOT = 28, 60  # change of a colour that is seen, of 255; pixels of a dot in a legend


class Page:
    """Shows things in a notebook; files that are shown are saved first."""

    def say(self, text: str) -> None:
        """Show a sentence whose numbers were computed."""
        display(Markdown(text))

    def show(self, page: str, plain: str) -> None:
        """Show HTML, and plain text where that cannot be shown."""
        display({"text/html": page, "text/plain": plain}, raw=True)

    def table(
        self, frame: pd.DataFrame, caption: str, formats: dict[str, str] | None = None
    ) -> None:
        """Show a frame as a table; texts are escaped, numbers formatted by column."""
        if frame.empty:
            self.say(f"*{caption}* (None.)")
            return
        styler = Styler(frame, uuid="t", cell_ids=False, caption=caption)
        styler = styler.format(dict(formats or {}), escape="html", na_rep="-").hide(axis="index")
        plain = f"{caption}\n{frame.to_string(index=False, max_colwidth=60)}"
        self.show(styler.to_html(), plain)

    def picture(self, figure: Figure, path: Path, caption: str) -> None:
        """Save a figure and show that very file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(draw_png(figure))
        display(Image(filename=str(path), alt=caption), metadata={"image/png": {"alt": caption}})
        self.say(f"*{caption}*")

    def link(self, text: str, path: Path, address: str, caption: str) -> None:
        """Save an interactive page and show a link to it, which is an address from the notebook."""
        write_text(path, text)
        link = f'<p><a href="{address}">{escape(caption)}</a></p>'
        self.show(link, f"{caption} ({address})")


def draw_png(figure: Figure) -> bytes:
    """Draw a figure with a palette of 256 colours, which makes it a third as large.

    Where a palette would mix up colours, as of twenty classes, the figure is left as it is.
    """
    drawn, small = BytesIO(), BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a script that no installed font knows
        figure.savefig(drawn, dpi=FIGURE_DPI)
    with Picture.open(drawn) as picture:
        full = picture.convert("RGB")
    reduced = full.quantize(256)
    mixed_up = largest_change(full, reduced.convert("RGB")) > VISIBLE
    (full if mixed_up else reduced).save(small, "PNG", optimize=True)
    return small.getvalue()


def largest_change(picture: Picture.Image, other: Picture.Image) -> int:
    """Return how far a colour that fills a dot of a picture is off in another, of 255."""
    pixels, others = (np.asarray(own, int).reshape(-1, 3) for own in (picture, other))
    _, first, sizes = np.unique(
        pixels @ (1 << 16, 1 << 8, 1), return_index=True, return_counts=True
    )
    filled = first[sizes >= DOT]
    return int(np.abs(pixels[filled] - others[filled]).max(initial=0))


def excerpt(text: str, width: int = 160) -> str:
    """Shorten a text to a width, at a word boundary if it has one."""
    short = shorten(text, width, placeholder=" ...")
    return short if len(short) > width // 2 or len(text) <= width else f"{text[: width - 4]} ..."


def plain(text: str) -> str:
    """Return a text as Markdown that shows it as it is, on one line."""
    signs = "".join(
        f"\\{sign}" if sign in "\\`*_[]#|~$" else sign for sign in " ".join(text.split())
    )
    return escape(signs, quote=False)
