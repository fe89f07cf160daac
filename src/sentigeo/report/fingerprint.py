"""What an executed chapter depends on, so that an unchanged one need not be executed again."""

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
from joblib import cpu_count

from sentigeo.code_hash import (
    hash_modules,
    import_closure,
    imports_of,
    packages_of,
    read_modules,
    words_of,
)
from sentigeo.cores import THREAD_VARIABLES
from sentigeo.data.reviews import identify_source
from sentigeo.files import hash_file, hash_files, hash_json
from sentigeo.ledger.claims import claims_of
from sentigeo.paths import DATA, SITE_SOURCE
from sentigeo.profile import Profile

MACHINERY = "sentigeo.report.execute"  # that no notebook imports but every copy depends on
PAGES = "sentigeo.figures.interactive"  # fills templates of the site
HANDCRAFTED = "sentigeo.data.handcrafted"  # reads the tables of data/
KIND = "chapter"  # of an entry in the store
DIFFERENCES = {  # what is said of a name in a section of the key, with its old and new value
    "notebook": "the notebook changed",
    "code": "{0} changed",
    "pages": "the template {0} changed",
    "handcrafted": "data/{0} changed",
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
    """What does not fit a run, and why.

    Attributes:
        skipped: Chapters that make no sense for it, with the reason.
        unmet: Conditions that do not hold, with the reason: cells that carry one as a tag are left
            out, and claims that require one cannot be tested.
    """

    skipped: dict[str, str] = field(default_factory=dict)
    unmet: dict[str, str] = field(default_factory=dict)


def chapter_code(source: Path) -> dict[str, Any]:
    """Return what a chapter is made of: notebook, modules, templates and claims, as hashes."""
    modules = _modules(source)
    return {
        "notebook": {source.stem: hash_file(source)},
        "code": hash_modules(modules),
        "pages": hash_files(SITE_SOURCE, "*.html.jinja") if PAGES in modules else {},
        "handcrafted": hash_files(DATA, "*.csv") if HANDCRAFTED in modules else {},
        "claims": {own.id: hash_json(own.model_dump()) for own in claims_of(source)},
    }


def hash_chapter(source: Path) -> str:
    """Return one SHA-256 of all that a chapter is made of; published results hold it."""
    return hash_json(chapter_code(source))


def chapter_key(
    source: Path, profile: Profile, needs: Mapping[str, Any], unmet: Mapping[str, str]
) -> dict[str, Any] | None:
    """Return all that an executed chapter depends on, section by section.

    There is no key if nothing identifies model or texts: the newest version on a hub may be
    another tomorrow.

    Args:
        source: The notebook.
        profile: What the run is.
        needs: What the chapters that it takes something from recorded, by their names.
        unmet: Conditions that do not hold, and why.
    """
    notebook = nbformat.read(source, as_version=4)
    modules = _modules(source) - {Profile.__module__}
    texts = [_code_of(notebook), *read_modules(modules)]
    words = frozenset[str]().union(*map(words_of, texts))
    sources = _identify(profile, words)
    if None in sources.values():
        return None
    asked = {tag for cell in notebook.cells for tag in cell.metadata.get("tags", [])}
    asked |= {own.requires for own in claims_of(source) if own.requires}
    settings = {name: value for name, value in profile.settings.items() if name in words}
    return {
        **chapter_code(source),
        "packages": packages_of(texts),
        "profile": {"name": profile.name, "file": profile.file},
        "settings": settings,
        "changes": {name: own for name, own in profile.changes.items() if name not in settings},
        "sources": sources,
        "needs": {name: hash_json(own) for name, own in needs.items()},
        "conditions": {tag: why for tag, why in unmet.items() if tag in asked},
        "machine": _describe_machine(),
    }


def explain(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Say what differs between the keys of a chapter, in a few words each."""
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


def _modules(source: Path) -> set[str]:
    """Return the modules of this package that a notebook rests on."""
    code = _code_of(nbformat.read(source, as_version=4))
    return import_closure({MACHINERY, *imports_of(code)})


def _code_of(notebook: Any) -> str:
    return "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")


def _identify(profile: Profile, words: frozenset[str]) -> dict[str, Any]:
    """Return what identifies the model and the texts of a run; null where nothing does."""
    found = {
        "model": identify_source(profile.model, profile.model_revision),
        "reviews": identify_source(profile.reviews, profile.reviews_revision),
    }
    if "deep_sets" in words:
        found |= {name: identify_source(name, None) for name in profile.deep_sets}
    return found


def _describe_machine() -> dict[str, Any]:
    """Return what of a machine numbers depend on."""
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "Python": platform.python_version(),
        "cores": cpu_count(),
        **{name: os.environ.get(name) for name in THREAD_VARIABLES},
    }
