"""What an executed chapter depends on, so that an unchanged one need not be executed again."""

import ast
import os
import platform
from collections.abc import Collection, Sequence
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import nbformat
from joblib import cpu_count

from sentigeo.cores import THREAD_VARIABLES
from sentigeo.data.reviews import identify_source
from sentigeo.files import hash_file, hash_files
from sentigeo.ledger.claims import LEDGER
from sentigeo.paths import DATA, SITE_SOURCE
from sentigeo.profile import Profile

PACKAGE = Path(__file__).parent
MACHINERY = {"execute", "kernels"}  # modules that no notebook imports but every copy depends on


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
    sources = [identify_source(profile.model, profile.model_revision)]
    sources.append(identify_source(profile.reviews, profile.reviews_revision))
    sources += [identify_source(name, None) for name in profile.deep_sets]
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
