"""What a chapter records, and what it takes from the chapters before it."""

import json
import os
import platform
from pathlib import Path
from typing import Any, Literal

from matplotlib.figure import Figure

from sentigeo.cache import Store, package_versions
from sentigeo.errors import UserError
from sentigeo.ledger.claims import judge_claim, load_claims, read_metric, show_claim, write_metric
from sentigeo.paths import NOTEBOOKS, run_paths, write_text
from sentigeo.profile import Profile, load_profile
from sentigeo.report.page import Page
from sentigeo.stats import Estimate

STAGE_VARIABLE = "SENTIGEO_STAGE"  # the folder of a running report
NEEDS_VARIABLE = "SENTIGEO_NEEDS"  # the chapters that the running chapter builds on
CONDITIONS = "00_conditions"  # where the runner records what does not apply to a run
NAMED = ("facts", "metrics", "claims", "untestable", "checkpoints", "arrays")  # recorded by name
VERSIONED = ("sentigeo", "torch", "transformers", "scikit-learn", "numpy", "pandas")


class Chapter(Page):
    """One notebook's run: its profile, its store of cached arrays, and what it records.

    Figures and results go to a folder: the stage of a running report, or `build/lab/` when the
    notebook is run by hand, so that exploring never touches the published report.
    """

    def __init__(self, name: str, profile: Profile) -> None:
        self.name, self.profile = name, profile
        self._paths = run_paths(profile.run_name)
        self.store = Store(self._paths.cache)
        self.folder = Path(os.environ.get(STAGE_VARIABLE, self._paths.lab))
        self._part: dict[str, Any] = {kind: {} for kind in NAMED} | {"figures": [], "pages": []}
        self._save()

    def fact(self, name: Literal["encoder", "data"], value: dict[str, Any]) -> None:
        """Record the encoder or the data that the whole run rests on."""
        self._add("facts", name, value)

    def record(self, name: str, estimate: Estimate, unit: str = "share") -> Estimate:
        """Record a metric and return it."""
        self._add("metrics", name, write_metric(estimate, unit))
        return estimate

    def count(self, name: str, number: float) -> None:
        """Record a count, whose interval is the number itself."""
        self.record(name, Estimate(number, number, number, 1), "count")

    def recall(self, name: str) -> Estimate:
        """Return a metric recorded by an earlier chapter of this run, or by the last report."""
        return read_metric(self._look_up("metrics", name))

    def require(self, holds: bool, claims: list[str], reason: str) -> None:
        """Record that claims cannot be tested in this run, and why, unless a condition holds."""
        for claim in () if holds else claims:
            self._add("untestable", claim, reason)

    def verdict(self, *numbers: str) -> None:
        """Judge claims of the ledger by the recorded metrics; show and record the verdicts."""
        declared = {claim.id: claim for claim in load_claims()}
        metrics, unmet = self._recorded("metrics"), self._recorded("conditions")
        for number in numbers:
            claim = declared[number]
            reason = unmet.get(claim.requires or "") or self._part["untestable"].get(number)
            self.require(not reason, [number], reason or "")
            judged = judge_claim(claim, metrics, reason)
            self._add("claims", number, judged)
            self.show(*show_claim(judged))

    def results(self) -> dict[str, Any]:
        """Return what all chapters of this run have recorded, with every judged claim."""
        kinds = ("encoder", "data", "skipped", "metrics")
        found = {kind: self._recorded(kind) for kind in kinds} | self._recorded("facts")
        claims = [claim for _, claim in sorted(self._recorded("claims").items())]
        return found | {"settings": self.profile.settings, "claims": claims}

    def checkpoint(self, name: str, folder: Path) -> None:
        """Record the folder of a trained model, relative to the cache."""
        self._add("checkpoints", name, os.path.relpath(folder, self.store.root))

    def leave(self, name: str, folder: Path) -> None:
        """Record a folder of arrays, relative to the cache, for later chapters."""
        self._add("arrays", name, os.path.relpath(folder, self.store.root))

    def fetch(self, name: str) -> Path:
        """Return a folder that an earlier chapter left, in this run or the last report."""
        folder = (self.store.root / str(self._look_up("arrays", name))).resolve()
        if not folder.is_dir():
            raise UserError(self._ask_for(name))
        return folder

    def figure(self, figure: Figure, name: str, caption: str) -> None:
        """Save a figure as `figures/NN_name_<name>.png` and show that very file."""
        self.picture(figure, self._file("figures", f"{name}.png", caption), caption)

    def page(self, text: str, name: str, caption: str) -> None:
        """Save an interactive page as `figures/NN_name_<name>.html` and link to it."""
        path = self._file("pages", f"{name}.html", caption)
        self.link(text, path, f"../figures/{path.name}", caption)

    def _file(self, kind: str, name: str, caption: str) -> Path:
        path = self.folder / "figures" / f"{self.name}_{name}"
        self._part[kind].append({"file": path.name, "caption": caption})
        self._save()
        return path

    def _look_up(self, kind: str, name: str) -> Any:
        found = self._recorded(kind)
        if name not in found:
            raise UserError(self._ask_for(name))
        return found[name]

    def _ask_for(self, name: str) -> str:
        """Name the command that makes what is missing."""
        if NEEDS_VARIABLE in os.environ:
            return f"No chapter that {self.name} needs has recorded '{name}'."
        sources = {path.stem: path.read_text("utf-8") for path in NOTEBOOKS.glob("[0-8]*.ipynb")}
        before = [other for other in sorted(sources) if other < self.name]
        here = {path.stem for path in self._parts()}
        leaving = [other for other in before if f'leave(\\"{name}\\"' in sources[other]]
        for other in leaving or [other for other in before if other not in here]:
            return f"{other} left no '{name}' here: type 'make chapter N={other[:2]}' first."
        return f"No chapter before {self.name} records '{name}'."

    def _parts(self) -> list[Path]:
        """List the files of what was recorded; later ones override earlier ones.

        In a running report these are the records of the runner, of the chapters that this one
        needs, and its own; by hand those of every chapter run on this machine, the latest last.
        """
        parts, needs = self.folder / "parts", os.environ.get(NEEDS_VARIABLE)
        if needs is not None:
            names = (CONDITIONS, *json.loads(needs), self.name)
            return [path for name in names if (path := parts / f"{name}.json").is_file()]
        found = [*self._paths.parts.glob("*.json"), *parts.glob("*.json")]
        return sorted(found, key=lambda path: path.stat().st_mtime_ns)

    def _recorded(self, kind: str) -> dict[str, Any]:
        """Return everything of a kind that was recorded; by hand the published results too."""
        published = self._paths.reports / "results.json"
        by_hand = NEEDS_VARIABLE not in os.environ and published.is_file()
        recorded: dict[str, Any] = {}
        for path in [published] * by_hand + self._parts():
            held = json.loads(path.read_text("utf-8")).get(kind, {})
            recorded |= {claim["id"]: claim for claim in held} if isinstance(held, list) else held
        return recorded

    def _add(self, kind: str, name: str, value: Any) -> None:
        self._part[kind][name] = value
        self._save()

    def _save(self) -> None:
        text = json.dumps(self._part, indent=1, ensure_ascii=False, allow_nan=False)
        write_text(self.folder / "parts" / f"{self.name}.json", text)


def open_chapter(name: str, profile: str, overrides: dict[str, Any]) -> Chapter:
    """Begin a chapter: load its profile, and show it with the versions of the packages."""
    chapter = Chapter(name, load_profile(profile, **overrides))
    versions = ", ".join(f"{package} {number}" for package, number in list_versions().items())
    chapter.say(f"Profile **{chapter.profile.run_name}**. {versions}.")
    return chapter


def list_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that results depend on."""
    return {"Python": platform.python_version()} | package_versions(*VERSIONED)
