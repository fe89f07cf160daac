"""What an executed chapter depends on, so that an unchanged one need not be executed again."""

import ast
import os
import platform
import re
from collections.abc import Collection, Sequence
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import nbformat
from joblib import cpu_count

from sentigeo.claims import LEDGER
from sentigeo.kernels import THREAD_VARIABLES
from sentigeo.paths import DATA, SITE_SOURCE, locate
from sentigeo.profile import BUILT_IN_SETS, PACKAGED, Profile
from sentigeo.store import hash_file

PACKAGE = Path(__file__).parent
MACHINERY = {"execute", "kernels"}  # modules that no notebook imports but every copy depends on
COMMIT = re.compile("[0-9a-f]{40}")


def chapter_key(
    source: Path, modules: Collection[str], needs: Sequence[str], parts: Path
) -> dict[str, Any]:
    """Return the code of a chapter and what others recorded for it, as hashes.

    Args:
        source: The notebook.
        modules: Names of the modules that it uses.
        needs: Names of the parts that it takes something from.
        parts: Folder with what chapters recorded.
    """
    return {
        "notebook": [source.stem, hash_file(source)],
        "ledger": hash_file(LEDGER),
        "needs": {name: hash_file(parts / f"{name}.json") for name in needs},
        "modules": {name: hash_file(PACKAGE / f"{name}.py") for name in sorted(modules)},
        "pages": hash_files(SITE_SOURCE, "*.html.jinja") if "pages" in modules else {},
    }


def inputs_key(profile: Profile) -> dict[str, Any] | None:
    """Return the settings of a run, and what identifies its model and texts.

    There is no key if nothing identifies them: the newest version on a hub may be another tomorrow.
    """
    sources = [find_source(profile.model, profile.model_revision)]
    sources.append(find_source(profile.reviews, profile.reviews_revision))
    sources += [find_source(name, None) for name in profile.deep_sets]
    if None in sources:
        return None
    return {
        "profile": [profile.name, profile.file, profile.changes, profile.settings],
        "sources": sources,
        "handcrafted": hash_files(DATA, "*.csv"),
    }


def machine_key() -> dict[str, Any]:
    """Return the installed packages, and what else of a machine numbers depend on."""
    return {
        "packages": sorted(f"{own.name} {own.version}" for own in distributions()),
        "machine": [platform.system(), platform.machine(), platform.python_version(), cpu_count()],
        "threads": [os.environ.get(name) for name in THREAD_VARIABLES],
    }


def find_source(name: str, revision: str | None) -> Any:
    """Return what identifies a model or texts that a profile names; nothing if nothing does."""
    if name in (PACKAGED, *BUILT_IN_SETS):
        return name  # packaged files are verified when they are read
    path = locate(name)
    if path is None:
        return [name, revision] if revision and COMMIT.fullmatch(revision) else None
    return hash_files(path, "**/*") if path.is_dir() else hash_file(path)


def hash_files(folder: Path, pattern: str) -> dict[str, str]:
    """Return the SHA-256 of the files of a folder that match a pattern."""
    files = sorted(path for path in folder.glob(pattern) if path.is_file())
    return {str(path.relative_to(folder)): hash_file(path) for path in files}


def imported_modules(source: Path) -> set[str]:
    """Return the modules of this package that a notebook imports, and those that they import."""
    cells = nbformat.read(source, as_version=4).cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    found: set[str] = set()
    new = _imports(code) | MACHINERY
    while new:
        found |= new
        texts = [(PACKAGE / f"{name}.py").read_text("utf-8") for name in new]
        new = set[str]().union(*map(_imports, texts)) - found
    return found | {"__init__"}


def _imports(code: str) -> set[str]:
    """Return the modules of this package that some code names, wherever it imports them."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    parts = [name.split(".") for name in names]
    known = {part[1] for part in parts if part[0] == PACKAGE.name and len(part) > 1}
    return {name for name in known if (PACKAGE / f"{name}.py").is_file()}
