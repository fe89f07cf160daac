"""What a chapter depends on, and what results were made by: code, settings, machine, commit."""

import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import DEVNULL, CalledProcessError, check_output
from typing import Any

import nbformat
from joblib import cpu_count
from threadpoolctl import threadpool_info

from sentigeo import hashes
from sentigeo.cores import THREAD_VARIABLES
from sentigeo.data.tables import identify_source
from sentigeo.hashes import hash_file, hash_json
from sentigeo.ledger.claims import claims_of
from sentigeo.paths import DATA, SITE_SOURCE
from sentigeo.profile import Profile

MACHINERY = "sentigeo.report.execute"  # that no notebook imports but every copy depends on
KIND = "chapter"  # of an entry in the store
MADE = ("reports/", "figures/", "README.md")  # what a report writes into the repository
DIFFERENCES = {  # what is said of a name in a section of the key, with its old and new value
    "notebook": "the notebook changed",
    "code": "{0} changed",
    "files": "the file {0} changed",
    "packages": "package {0} {1} -> {2}",
    "settings": "setting {0}: {1} -> {2}",
    "profile": "{0} of the profile: {1} -> {2}",
    "changes": "setting {0}: {1} -> {2}",
    "sources": "what the setting {0} names changed",
    "claims": "the claim {0} changed",
    "needs": "{0} recorded something else",
    "conditions": "the condition '{0}' changed",
    "machine": "{0}: {1} -> {2}",
}


@dataclass(frozen=True)
class Conditions:
    """What does not apply to a run, and why.

    Chapters that make no sense for it are skipped. Cells tagged with an unmet condition are left
    out, and claims that require it cannot be tested.
    """

    skipped: dict[str, str] = field(default_factory=dict)
    unmet: dict[str, str] = field(default_factory=dict)


def chapter_code(source: Path) -> dict[str, Any]:
    """Return hashes of what a chapter is made of: notebook, modules, files and claims."""
    _, notebook, modules = _read(source)
    code = hashes.read_modules(modules)
    return {
        "notebook": {source.stem: hash_file(source)},
        "code": {name: hash_json(text) for name, text in code.items()},
        "files": _hash_named_files([notebook, *code.values()]),
        "claims": {claim.id: hash_json(claim.model_dump()) for claim in claims_of(source)},
    }


def _hash_named_files(code: Sequence[str]) -> dict[str, str]:
    """Return the hashes of the data files and templates whose whole names stand in some code."""
    words = frozenset[str]().union(*map(hashes.words_of, code)) - {"README.md"}  # of a model
    files = [path for folder in (DATA, SITE_SOURCE) for path in sorted(folder.glob("*.*"))]
    return {path.name: hash_file(path) for path in files if path.name in words}


def hash_chapter(source: Path) -> str:
    """Return one SHA-256 of everything a chapter is made of; published results record it."""
    return hash_json(chapter_code(source))


def stale_chapters(results: Path, sources: Sequence[Path]) -> list[str]:
    """List the chapters whose code has changed since the results were made."""
    written = json.loads(results.read_text("utf-8")).get("code", {})
    return [source.stem for source in sources if written.get(source.stem) != hash_chapter(source)]


def describe_published(results: Path, sources: Sequence[Path]) -> str:
    """Say whether the last report was made by the present code."""
    if not results.is_file():
        return "There is no report yet."
    stale = stale_chapters(results, sources)
    if stale:
        return f"{results.name} was made before the code of {', '.join(stale)} changed."
    return f"{results.name} was made by this code."


def chapter_key(
    source: Path, profile: Profile, needs: Mapping[str, Any], unmet: Mapping[str, str]
) -> dict[str, Any] | None:
    """Return everything that an executed chapter depends on, section by section.

    `needs` holds what the chapters it builds on have recorded. There is no key if the model or the
    texts cannot be identified: the newest version on a hub may be another one tomorrow.
    """
    cells, code, modules = _read(source)
    texts = [code, *hashes.read_modules(modules - {Profile.__module__}).values()]
    words = frozenset[str]().union(*map(hashes.words_of, texts))
    sources = {
        "model": identify_source(profile.model, profile.model_revision),
        "reviews": identify_source(profile.reviews, profile.reviews_revision),
    }
    if "deep_sets" in words:
        sources |= {name: identify_source(name, None) for name in profile.deep_sets}
    if profile.contrast_pairs and "contrast_pairs" in words:
        sources["contrast_pairs"] = identify_source(profile.contrast_pairs, None)
    if None in sources.values():
        return None
    asked = {tag for cell in cells for tag in cell.metadata.get("tags", [])}
    asked |= {claim.requires for claim in claims_of(source) if claim.requires}
    settings = {name: value for name, value in profile.settings.items() if name in words}
    return {
        **chapter_code(source),
        "packages": hashes.packages_of(texts),
        "profile": {"name": profile.name, "file": profile.file},
        "settings": settings,
        "changes": {name: value for name, value in profile.changes.items() if name not in settings},
        "sources": sources,
        "needs": {name: hash_json(part) for name, part in needs.items()},
        "conditions": {tag: why for tag, why in unmet.items() if tag in asked},
        "machine": {
            "system": platform.system(),
            "architecture": platform.machine(),
            "Python": platform.python_version(),
            "cores": cpu_count(),
            **{name: os.environ.get(name) for name in THREAD_VARIABLES},
        },
    }


def explain(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Describe each difference between two keys of a chapter in a few words."""
    found = []
    for section, words in DIFFERENCES.items():
        old, new = before.get(section, {}), now.get(section, {})
        none = "as in the profile" if section == "changes" else "none"
        found += [
            words.format(name, old.get(name, none), new.get(name, none))
            for name in dict.fromkeys([*old, *new])
            if json.dumps(old.get(name)) != json.dumps(new.get(name))
        ]
    return found


def _read(source: Path) -> tuple[list[Any], str, set[str]]:
    """Return a notebook's cells and code, and the modules of this package that it rests on."""
    cells = nbformat.read(source, as_version=4).cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    return cells, code, hashes.import_closure({MACHINERY, *hashes.imports_of(code)})


def describe_code(sources: Sequence[Path], root: Path) -> dict[str, Any]:
    """Return the hash of each chapter's code, the commit, the hash of the lock, and the machine."""
    lock = root / "requirements.lock"
    return {
        "code": {source.stem: hash_chapter(source) for source in sources},
        "commit": find_commit(root),
        "lock": hash_file(lock) if lock.is_file() else None,
        "machine": {
            "processor": find_processor(),
            "system": platform.platform(),
            "threads": cpu_count(),
            "blas": find_blas(),
        },
    }


def find_commit(root: Path) -> str | None:
    """Return the commit, with `+changes` if files differ from it; an empty text outside git."""
    head = _ask_git(root, "rev-parse", "HEAD").strip()
    changed = _ask_git(root, "status", "--porcelain").splitlines()
    names = [line[3:].split(" -> ")[-1].strip('"') for line in changed]
    return head + "+changes" * any(not name.startswith(MADE) for name in names) if head else None


def find_last_commit(path: Path) -> str:
    """Return hash and date of the last commit that changed a file; an empty text outside git."""
    return _ask_git(path.parent, "log", "-1", "--format=%h of %cs", "--", path.name).strip()


def _ask_git(folder: Path, *words: str) -> str:
    """Return what git prints about a folder; an empty text outside a repository."""
    try:
        return check_output(["git", *words], cwd=folder, stderr=DEVNULL, text=True)
    except (OSError, CalledProcessError):
        return ""


def find_processor() -> str:
    """Return the model of the processor, or its kind where the system does not name it."""
    file = Path("/proc/cpuinfo")
    found = re.search(r"model name\s*:(.*)", file.read_text("utf-8")) if file.is_file() else None
    return found[1].strip() if found else platform.processor() or platform.machine()


def find_blas() -> str:
    """Name the linear algebra libraries that numpy and scipy have loaded."""
    import scipy.linalg  # noqa: F401  (loads them)

    names = ("internal_api", "version", "architecture")
    blas = [library for library in threadpool_info() if library["user_api"] == "blas"]
    return ", ".join(sorted({" ".join(filter(None, map(one.get, names))) for one in blas}))
