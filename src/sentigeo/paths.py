"""Where everything is."""

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

from sentigeo.errors import UserError

ROOT = Path(__file__).resolve().parents[2]
PROFILES = ROOT / "profiles"
NOTEBOOKS = ROOT / "notebooks"
DATA = ROOT / "data"
SITE_SOURCE = ROOT / "site"
PUBLISHED_PROFILE = "laptop"
CACHE_VARIABLE = "SENTIGEO_CACHE"  # another place for derived arrays


@dataclass(frozen=True)
class RunPaths:
    """The folders of one run.

    Attributes:
        name: Short name of the run, the same for equal profiles.
        output: Folder that receives `figures/` and `reports/`: the repository for the published
            profile, a folder under `build/` for any other.
        build: Scratch space: stages, failed notebooks, locks.
        cache: Derived arrays, shared by all runs.
    """

    name: str
    output: Path
    build: Path
    cache: Path

    @property
    def figures(self) -> Path:
        """Figures of the last complete run."""
        return self.output / "figures"

    @property
    def reports(self) -> Path:
        """Executed notebooks, results and site of the last complete run."""
        return self.output / "reports"

    @property
    def stage(self) -> Path:
        """Where a run writes until it is complete."""
        return self.build / "stage" / self.name

    @property
    def parts(self) -> Path:
        """What the chapters last recorded on this machine, for notebooks that are run by hand."""
        return self.build / "parts" / self.name

    @property
    def lab(self) -> Path:
        """What notebooks that are run by hand make."""
        return self.build / "lab" / self.name

    @property
    def chapters(self) -> Path:
        """Chapters that were executed one by one."""
        return self.build / "chapters" / self.name

    @property
    def checkpoints(self) -> Path:
        """Links to the trained models of the last run."""
        return self.build / "checkpoints" / self.name

    @property
    def site_scratch(self) -> Path:
        """Where the site is put together."""
        return self.build / "site" / self.name

    @property
    def failed(self) -> Path:
        """Where a failed run leaves its notebooks to be read."""
        return self.build / "failed" / self.name


def run_paths(name: str, root: Path = ROOT) -> RunPaths:
    """Return the folders of the run `name`; only the published profile writes tracked ones."""
    build = root / "build"
    return RunPaths(
        name=name,
        output=root if name == PUBLISHED_PROFILE else build / name,
        build=build,
        cache=Path(os.environ.get(CACHE_VARIABLE, root / "data" / "cache")).resolve(),
    )


def list_chapters(root: Path = ROOT) -> list[Path]:
    """Return the notebooks of the report in order; those from 90 on are tools of their own."""
    return sorted((root / "notebooks").glob("[0-8][0-9]_*.ipynb"))


def locate(name: str) -> Path | None:
    """Find a file or folder that a person named, from here or from the repository."""
    for path in (Path(name).expanduser(), ROOT / name):
        if path.exists():
            return path
    return None


def package_folder(package: str) -> Path:
    """Return the folder of an installed package without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise UserError(f"The Python package '{package}' is not installed: run 'make setup'.")
    return Path(spec.origin).parent
