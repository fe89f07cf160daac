"""Where everything is, and how a file gets there: whole or not at all."""

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

from sentigeo.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
PROFILES = ROOT / "profiles"
NOTEBOOKS = ROOT / "notebooks"
DATA = ROOT / "data"
SITE_SOURCE = ROOT / "site"
PUBLISHED_PROFILE = "laptop"
CACHE_VARIABLE = "SENTIGEO_CACHE"  # another place for derived arrays


@dataclass
class RunPaths:
    """The folders of one run."""

    name: str  # short, the same for equal profiles
    output: Path  # receives `figures/` and `reports/`; the repository for the published profile
    build: Path  # scratch: stages, failed notebooks, locks
    cache: Path  # derived arrays, shared by all runs

    def __post_init__(self) -> None:
        self.figures = self.output / "figures"  # of the last complete run
        self.reports = self.output / "reports"  # its executed notebooks, results and site
        self.index = self.reports / "site" / "index.html"
        self.stage = self.build / "stage" / self.name  # where a run writes until it is complete
        self.parts = self.build / "parts" / self.name  # what chapters last recorded here
        self.lab = self.build / "lab" / self.name  # what notebooks make that are run by hand
        self.chapters = self.build / "chapters" / self.name  # that were executed one by one
        self.checkpoints = self.build / "checkpoints" / self.name  # links to trained models
        self.site_scratch = self.build / "site" / self.name  # where the site is put together
        self.failed = self.build / "failed" / self.name  # notebooks of a failed run, to be read


def run_paths(name: str, root: Path = ROOT) -> RunPaths:
    """Return the folders of the run `name`; only the published profile writes tracked ones."""
    build, cache = root / "build", os.environ.get(CACHE_VARIABLE, root / "data" / "cache")
    output = root if name == PUBLISHED_PROFILE else build / name
    return RunPaths(name, output, build, Path(cache).resolve())


def list_chapters(root: Path = ROOT) -> list[Path]:
    """Return the notebooks of the report in order; those from 90 on are tools of their own."""
    return sorted((root / "notebooks").glob("[0-8][0-9]_*.ipynb"))


def locate(name: str) -> Path | None:
    """Find a file or folder that a person named, from here or from the repository."""
    places = (Path(name).expanduser(), ROOT / name)
    return next((path for path in places if path.exists()), None)


def package_folder(package: str) -> Path:
    """Return the folder of an installed package without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise UserError(f"The Python package '{package}' is not installed: run 'make setup'.")
    return Path(spec.origin).parent


def write_text(path: Path, text: str) -> None:
    """Write a text file so that a reader sees the old file or the new one, never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".part-{token_hex(8)}-{path.name}")
    part.write_text(text, "utf-8")
    part.replace(path)
