"""What a notebook shows: sentences, tables, pictures, and links to interactive pages."""

import base64
import re
import warnings
from collections.abc import Mapping
from html import escape
from io import BytesIO
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from IPython.display import Markdown, display
from matplotlib.figure import Figure
from PIL import Image as Picture

from sentigeo.paths import write_text
from sentigeo.stats import Estimate

FIGURE_DPI = 140
VISIBLE, DOT = 28, 60  # visible change of a colour, of 255; pixels of a dot in a legend
NUMBER = re.compile(r"[+-]?[\d,]*\.?\d+(e[+-]?\d+)?%?( s)?( \[.*\])?|-|nan|")


class Page:
    """Shows things in a notebook; what is shown from a file is saved first.

    The mark-up is that of the site; a code host ignores it and shows a plain table.
    """

    def say(self, text: str) -> None:
        """Show a sentence of Markdown."""
        display(Markdown(text))

    def show(self, page: str, plain: str) -> None:
        """Show HTML, and plain text where that cannot be shown."""
        display({"text/html": page, "text/plain": plain}, raw=True)

    def table(self, frame: pd.DataFrame, caption: str, formats: Mapping[str, str] = {}) -> None:
        """Show a frame as a table below its caption; texts are escaped.

        Estimates are shown with their intervals, and with n where a table has one column of them;
        whole numbers with separators, others with three digits, unless `formats` names the column.
        """
        if frame.empty:
            self.show(f"<p><em>{escape(caption)}</em> (None.)</p>", f"{caption} (None.)")
            return
        shown = write_cells(frame, formats)
        plain = f"{caption}\n{shown.to_string(index=False, max_colwidth=60)}"
        self.show(write_table(shown, caption), plain)

    def picture(self, figure: Figure, path: Path, caption: str) -> None:
        """Save a figure and show the saved file with its caption below."""
        path.parent.mkdir(parents=True, exist_ok=True)
        drawn = draw_png(figure)
        path.write_bytes(drawn)
        data = {"image/png": base64.b64encode(drawn).decode(), "text/plain": caption}
        display(data, metadata={"image/png": {"alt": caption, "file": path.name}}, raw=True)
        below = {"text/html": f"<p><em>{escape(caption)}</em></p>", "text/plain": caption}
        display(below, metadata={"caption_of": path.name}, raw=True)

    def link(self, text: str, path: Path, address: str, caption: str) -> None:
        """Save an interactive page and link to it by its address relative to the notebook."""
        write_text(path, text)
        words = f'<p><a href="{address}">{escape(caption)}</a></p>'
        self.show(words, f"{caption} ({address})")


def write_cells(frame: pd.DataFrame, formats: Mapping[str, str]) -> pd.DataFrame:
    """Return a table with all values written out, and n beside a single column of estimates."""
    held = {str(name): frame[name].tolist() for name in frame}
    estimated = [column for column in held.values() if any(isinstance(v, Estimate) for v in column)]
    if len(estimated) == 1 and "n" not in held:
        held["n"] = [getattr(value, "n", None) for value in estimated[0]]
    return pd.DataFrame({n: [write_cell(v, formats.get(n)) for v in held[n]] for n in held})


def write_cell(value: Any, spec: str | None = None) -> str:
    """Write a value of a table, by a format such as `{:.1%}` if there is one."""
    number = value.value if isinstance(value, Estimate) else value
    if pd.api.types.is_scalar(number) and pd.isna(number):
        return "-"
    if isinstance(value, Estimate):
        return value.brief(spec[2:-1] if spec else "")
    if spec:
        return spec.format(value)
    if isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return str(value)
    return f"{value:,}" if isinstance(value, Integral) else f"{value:z.3f}"


def write_table(shown: pd.DataFrame, caption: str) -> str:
    """Return a table of texts as HTML, in a box that scrolls where the page is too narrow."""
    columns = [shown[name] for name in shown]
    kinds = [' class="number"' * all(map(NUMBER.fullmatch, column)) for column in columns]

    def write_row(tag: str, texts: list[str]) -> str:
        cells = zip(kinds, texts, strict=True)
        return "".join(f"<{tag}{kind}>{escape(str(text))}</{tag}>" for kind, text in cells)

    head, words = write_row("th", list(shown.columns)), escape(caption)
    rows = "\n".join(f"<tr>{write_row('td', row)}</tr>" for row in shown.to_numpy().tolist())
    table = f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{rows}\n</tbody></table>"
    return (
        f'<figure class="table"><figcaption>{words}</figcaption>'
        f'<div class="scroll" role="region" aria-label="{words}" tabindex="0">{table}</div>'
        "</figure>"
    )


def draw_png(figure: Figure) -> bytes:
    """Return a figure as a PNG with a palette of 256 colours, a third of the size.

    If the palette would mix up colours, such as those of twenty classes, all colours are kept.
    """
    drawn, small = BytesIO(), BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a script that no installed font knows
        figure.savefig(drawn, dpi=FIGURE_DPI)
    full = Picture.open(drawn).convert("RGB")
    reduced = full.quantize(256)
    pixels, others = (np.asarray(p, int).reshape(-1, 3) for p in (full, reduced.convert("RGB")))
    codes = pixels @ (1 << 16, 1 << 8, 1)
    _, first, sizes = np.unique(codes, return_index=True, return_counts=True)
    filled = first[sizes >= DOT]
    mixed_up = np.abs(pixels[filled] - others[filled]).max(initial=0) > VISIBLE
    (full if mixed_up else reduced).save(small, "PNG", optimize=True)
    return small.getvalue()
