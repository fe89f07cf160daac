"""Which chapters are up to date, and why the others are not; nothing is run."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sentigeo.cache import ENTRY, Store
from sentigeo.paths import RunPaths
from sentigeo.profile import Profile
from sentigeo.report.fingerprint import KIND, Conditions, chapter_key, explain
from sentigeo.report.notebook import CONDITIONS
from sentigeo.report.plan import Task, describe_conditions
from sentigeo.report.provenance import stale_chapters
from sentigeo.report.runner import find_chapter

UP_TO_DATE = "up to date"


def describe_status(
    tasks: Sequence[Task], profile: Profile, paths: RunPaths, root: Path, conditions: Conditions
) -> dict[str, str]:
    """Say of each chapter whether it is up to date, or why not."""
    store, known = Store(paths.cache), _read_entries(paths.cache)
    parts = {CONDITIONS: describe_conditions(conditions, root)}
    said: dict[str, str] = {}
    for task in tasks:
        stale = [name for name in task.needs if name not in parts]
        if stale:
            said[task.name] = f"needs {stale[0]}, which is not up to date"
            continue
        names = (CONDITIONS, *task.needs) if task.takes_all else task.needs
        needs = {name: parts[name] for name in names}
        key = chapter_key(task.source, profile, needs, conditions.unmet)
        entry = find_chapter(task.name, key, store)
        if entry is not None:
            parts[task.name] = json.loads((entry / f"{task.name}.json").read_text("utf-8"))
        said[task.name] = UP_TO_DATE if entry else _find_reason(task.name, key, known)
    return said


def describe_published(tasks: Sequence[Task], paths: RunPaths) -> str:
    """Say whether the results of the last report were made by this code."""
    results = paths.reports / "results.json"
    if not results.is_file():
        return "There is no report yet."
    stale = stale_chapters(results, [task.source for task in tasks])
    if not stale:
        return "results.json was made by this code."
    return f"results.json was made by other code of {', '.join(stale)}."


def _find_reason(name: str, key: dict[str, Any] | None, known: list[dict[str, Any]]) -> str:
    """Say why a chapter is not up to date, by what it was when it was last executed."""
    if key is None:
        return "the newest version on a hub may be another by now"
    own = [before for before in known if name in before["notebook"]]
    same = [before for before in own if before["profile"] == key["profile"]]
    if not own:
        return "never executed on this machine"
    return "; ".join(explain((same or own)[-1], key)) or "what it left is not in the cache any more"


def _read_entries(cache: Path) -> list[dict[str, Any]]:
    """Return the keys of all executed chapters in the cache, the newest last."""
    entries = sorted((cache / KIND).glob(f"*/{ENTRY}"), key=lambda path: path.stat().st_mtime_ns)
    return [json.loads(path.read_text("utf-8"))["key"] for path in entries]
