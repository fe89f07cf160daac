"""What a notebook can show: sentences, tables, pictures, and links to interactive pages."""

import json
import os
import platform
import warnings
from html import escape
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from IPython.display import Image, Markdown, display
from matplotlib.figure import Figure
from pandas.io.formats.style import Styler
from PIL import Image as Picture

from sentigeo.cache import Store
from sentigeo.errors import UserError
from sentigeo.files import write_text
from sentigeo.ledger.claims import judge_claim, load_claims, show_claim
from sentigeo.ledger.metrics import read_metric, write_metric
from sentigeo.paths import ROOT, run_paths
from sentigeo.profile import Profile, load_profile
from sentigeo.stats import Estimate

FIGURE_DPI = 140
VISIBLE, DOT = 28, 60  # change of a colour that is seen, of 255; pixels of a dot in a legend
STAGE_VARIABLE = "SENTIGEO_STAGE"  # the folder of a running report
NEEDS_VARIABLE = "SENTIGEO_NEEDS"  # the chapters that a chapter of it takes something from
SKIPPED = "00_skipped"  # where the report leaves word of chapters that it skips
FACTS = ("encoder", "data")  # that a run rests on
VERSIONED = ("sentigeo", "torch", "transformers", "scikit-learn", "numpy", "pandas")


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
        """Show a frame as a table; texts are escaped.

        Estimates are shown with their intervals, and with n where a table has one column of them;
        whole numbers with separators, others with three digits behind the point.

        Args:
            frame: The table.
            caption: What stands above it.
            formats: Other formats, by column.
        """
        if frame.empty:
            self.say(f"*{caption}* (None.)")
            return
        shown = write_estimates(frame)
        digits = {name: default_format(shown[name]) for name in shown} | (formats or {})
        digits = {name: spec for name, spec in digits.items() if spec}
        styler = Styler(shown, uuid="t", cell_ids=False, caption=caption)
        styler = styler.format(digits, escape="html", na_rep="-").hide(axis="index")
        plain = f"{caption}\n{shown.to_string(index=False, max_colwidth=60)}"
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


def write_estimates(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table with its estimates written out, beside their n if one column has them."""
    columns = [name for name in frame if isinstance(frame[name].iloc[0], Estimate)]
    if len(columns) == 1 and "n" not in frame:
        frame = frame.assign(n=[own.n for own in frame[columns[0]]])
    return frame.assign(**{name: [own.brief() for own in frame[name]] for name in columns})


def default_format(column: pd.Series) -> str | None:
    """Return how the numbers of a column are written, if it holds numbers."""
    if pd.api.types.is_float_dtype(column):
        return "{:z.3f}"
    whole = pd.api.types.is_integer_dtype(column) and not pd.api.types.is_bool_dtype(column)
    return "{:,}" if whole else None


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


class Chapter(Page):
    """One notebook's run.

    Attributes:
        name: The notebook's name, such as `01_reviews`.
        profile: What this run is.
        store: Cached arrays.
        folder: Where figures and results go: the stage of a running report, or `build/lab/` when
            the notebook is run by hand, so that exploring never touches the published report.
    """

    def __init__(self, name: str, profile: Profile) -> None:
        paths = run_paths(profile.run_name)
        by_hand = paths.build / "lab" / paths.name
        self.name = name
        self.profile = profile
        self.store = Store(paths.cache)
        self.folder = Path(os.environ.get(STAGE_VARIABLE, by_hand))
        self._published = paths.reports / "results.json"
        self._part: dict[str, Any] = {
            "facts": {},
            "metrics": {},
            "figures": [],
            "pages": [],
            "untestable": {},
            "checkpoints": {},
            "arrays": {},
        }
        self._save()

    def fact(self, name: Literal["encoder", "data"], value: dict[str, Any]) -> None:
        """Record what the whole run rests on."""
        self._part["facts"][name] = value
        self._save()

    def record(self, name: str, estimate: Estimate, unit: str = "share") -> Estimate:
        """Record a metric and hand it back."""
        self._part["metrics"][name] = write_metric(estimate, unit)
        self._save()
        return estimate

    def count(self, name: str, number: float) -> None:
        """Record a number that was counted, so that it has no interval but itself."""
        self.record(name, Estimate(number, number, number, 1), "count")

    def recall(self, name: str) -> Estimate:
        """Return a metric that an earlier chapter of this run recorded.

        A notebook that is run by hand finds those of the last report too.
        """
        return read_metric(self._look_up("metrics", name))

    def untestable(self, claims: list[str], reason: str) -> None:
        """Record that claims cannot be tested in this run, and why."""
        self._part["untestable"] |= dict.fromkeys(claims, reason)
        self._save()

    def verdict(self, *numbers: str) -> None:
        """Judge claims of the ledger by what has been recorded, and show how."""
        declared = {claim.id: claim for claim in load_claims()}
        metrics, reasons = self._recorded("metrics"), self._recorded("untestable")
        for number in numbers:
            self.show(*show_claim(judge_claim(declared[number], metrics, reasons)))

    def results(self) -> dict[str, Any]:
        """Return what all chapters of this run have found, with every claim judged."""
        metrics, reasons = self._recorded("metrics"), self._recorded("untestable")
        facts = {name: self._recorded(name) for name in FACTS} | self._recorded("facts")
        return {
            "settings": self.profile.settings,
            **facts,
            "metrics": metrics,
            "claims": [judge_claim(claim, metrics, reasons) for claim in load_claims()],
        }

    def checkpoint(self, name: str, folder: Path) -> None:
        """Record where a trained model lies."""
        self._part["checkpoints"][name] = os.path.relpath(folder, ROOT)
        self._save()

    def leave(self, name: str, folder: Path) -> None:
        """Record where arrays lie, for the chapters after this one."""
        self._part["arrays"][name] = os.path.relpath(folder, ROOT)
        self._save()

    def fetch(self, name: str) -> Path:
        """Return the folder that an earlier chapter of this run left, or of the last report."""
        folder = ROOT / str(self._look_up("arrays", name))
        if not folder.is_dir():
            raise UserError(f"The arrays '{name}' are not in the cache: run 'make report'.")
        return folder

    def figure(self, figure: Figure, name: str, caption: str) -> None:
        """Save a figure as `figures/NN_name_<name>.png` and show that very file."""
        path = self.folder / "figures" / f"{self.name}_{name}.png"
        self._part["figures"].append({"file": path.name, "caption": caption})
        self._save()
        self.picture(figure, path, caption)

    def page(self, text: str, name: str, caption: str) -> None:
        """Save an interactive page as `figures/NN_name_<name>.html` and link to it."""
        path = self.folder / "figures" / f"{self.name}_{name}.html"
        self._part["pages"].append({"file": path.name, "caption": caption})
        self._save()
        self.link(text, path, f"../figures/{path.name}", caption)

    def _look_up(self, kind: str, name: str) -> Any:
        """Return what a chapter recorded under a name."""
        found = self._recorded(kind)
        if name not in found:
            raise UserError(f"No chapter has recorded '{name}' yet: run 'make report'.")
        return found[name]

    def _recorded(self, kind: str) -> dict[str, Any]:
        """Return all of a kind that was recorded.

        In a running report that is by this chapter, by those that it needs, and by the report about
        chapters that it skips; by hand, by any chapter that was run by hand or in the last report.
        """
        parts, needs = self.folder / "parts", os.environ.get(NEEDS_VARIABLE)
        if needs is None:
            paths = [self._published, *sorted(parts.glob("*.json"))]
        else:
            names = (SKIPPED, *json.loads(needs), self.name)
            paths = [parts / f"{name}.json" for name in names]
        recorded: dict[str, Any] = {}
        for path in (path for path in paths if path.is_file()):
            recorded |= json.loads(path.read_text("utf-8")).get(kind, {})
        return recorded

    def _save(self) -> None:
        text = json.dumps(self._part, indent=1, ensure_ascii=False, allow_nan=False)
        write_text(self.folder / "parts" / f"{self.name}.json", text)


def open_chapter(name: str, profile: str, overrides: dict[str, Any]) -> Chapter:
    """Begin a notebook: load its profile and say what it runs with."""
    chapter = Chapter(name, load_profile(profile, **overrides))
    versions = ", ".join(f"{package} {number}" for package, number in list_versions().items())
    chapter.say(f"Profile **{chapter.profile.run_name}**. {versions}.")
    return chapter


def list_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that results depend on."""
    return {"Python": platform.python_version()} | {name: version(name) for name in VERSIONED}
