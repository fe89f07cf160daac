"""What a notebook holds in its hand: its profile, its cache, and a place for its results."""

import json
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from matplotlib.figure import Figure

from sentigeo.claims import Claim
from sentigeo.errors import UserError
from sentigeo.page import Page
from sentigeo.paths import ROOT, run_paths
from sentigeo.profile import Profile, load_profile
from sentigeo.stats import Estimate
from sentigeo.store import Store, write_text

STAGE_VARIABLE = "SENTIGEO_STAGE"  # the folder of a running report
NEEDS_VARIABLE = "SENTIGEO_NEEDS"  # the chapters that a chapter of it takes something from
VERSIONED = ("sentigeo", "torch", "transformers", "scikit-learn", "numpy", "pandas")


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
            "claims": [],
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
        self._part["metrics"][name] = {
            "value": _number(estimate.value),
            "low": _number(estimate.low),
            "high": _number(estimate.high),
            "n": estimate.n,
            "unit": unit,
        }
        self._save()
        return estimate

    def recall(self, name: str) -> Estimate:
        """Return a metric that an earlier chapter of this run recorded, or of the last report."""
        found = self._look_up("metrics", name)
        bounds = [found[key] for key in ("value", "low", "high")]
        value, low, high = (float("nan") if b is None else b for b in bounds)
        return Estimate(value, low, high, found["n"])

    def claim(self, claim: Claim) -> None:
        """Record a claim with its verdict, and show both."""
        self._part["claims"].append(claim.record())
        self._save()
        found = f"{claim.value:.3f} [{claim.low:.3f}, {claim.high:.3f}]"
        measured = "nothing" if claim.value != claim.value else f"{claim.metric} = {found}"
        self.say(
            f"**{claim.id}. {claim.statement}** Rule: {claim.rule} Measured: {measured}. "
            f"Verdict: **{claim.verdict}**."
        )

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
        """Return what a chapter recorded under a name.

        In a running report that is this chapter or one that it needs; by hand, any chapter run by
        hand or in the last report.
        """
        parts, needs = self.folder / "parts", os.environ.get(NEEDS_VARIABLE)
        if needs is None:
            paths = [*sorted(parts.glob("*.json")), self._published]
        else:
            paths = [parts / f"{chapter}.json" for chapter in (*json.loads(needs), self.name)]
        for path in paths:
            found = json.loads(path.read_text("utf-8")).get(kind, {}) if path.is_file() else {}
            if name in found:
                return found[name]
        raise UserError(f"No chapter has recorded '{name}' yet: run 'make report'.")

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


def _number(value: float) -> float | None:
    """JSON has no NaN: a missing bound is null."""
    return None if value != value else value
