"""Which notebooks a run executes, which of them need which, and which are up to date."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from papermill import inspect_notebook

from sentigeo.cache import ENTRY, Store, is_whole
from sentigeo.errors import UserError
from sentigeo.ledger.claims import LEDGER, Claim, judge_claim, load_claims
from sentigeo.paths import ROOT, RunPaths, list_chapters
from sentigeo.profile import Profile
from sentigeo.report.fingerprint import KIND, Conditions, chapter_key, explain, stale_chapters
from sentigeo.report.notebook import CONDITIONS

UP_TO_DATE = "up to date"


@dataclass(frozen=True)
class Task:
    """A notebook to be run.

    One that is held to one thread leaves the other cores alone, and its numbers do not depend on
    how many there are.
    """

    source: Path
    needs: tuple[str, ...] = ()  # names of the notebooks that it takes something from
    one_thread: bool = False
    minutes: float = 0.0  # that it takes, roughly; of those that are ready the longest begins
    takes_all: bool = False  # whether it takes something from every chapter before it

    @property
    def name(self) -> str:
        """The notebook's name, such as `01_reviews`."""
        return self.source.stem

    @property
    def takes(self) -> tuple[str, ...]:
        """Names of the parts that it may read."""
        return (CONDITIONS, *self.needs) if self.takes_all else self.needs


def read_tasks(sources: Sequence[Path]) -> list[Task]:
    """Read what notebooks need from their metadata: `{"sentigeo": {"needs": [], "threads": 1}}`.

    How many `minutes` it takes may be there too. A notebook that says nothing needs all before it,
    and as many threads as there are cores. What is left out of a run is needed by none.
    """
    tasks: list[Task] = []
    for source in sources:
        said = nbformat.read(source, as_version=4).metadata.get("sentigeo", {})
        before = [task.name for task in tasks]
        needs = said.get("needs", before)
        for name in needs:
            if name >= source.stem:
                raise UserError(f"{source.name} needs '{name}', which does not come before it.")
        kept = tuple(name for name in needs if name in before)
        one, minutes = said.get("threads") == 1, said.get("minutes", 0.0)
        tasks.append(Task(source, kept, one, minutes, takes_all="needs" not in said))
    return tasks


def find_name(name: str, root: Path) -> str:
    """Return the chapter that a person means by `5`, `05` or `05_clusters`."""
    known = [source.stem for source in list_chapters(root)]
    wanted = name.zfill(2) if name.isdecimal() else name
    for chapter in known:
        if wanted in (chapter, chapter[:2]):
            return chapter
    raise UserError(f"There is no chapter '{name}': the chapters are {', '.join(known)}.")


def needed_by(name: str, tasks: Sequence[Task]) -> list[Task]:
    """Return a chapter and all that it needs, directly or not, in order."""
    wanted = {name}
    for task in reversed(tasks):
        if task.name in wanted:
            wanted |= set(task.needs)
    return [task for task in tasks if task.name in wanted]


def plan_chapters(profile: Profile, root: Path, conditions: Conditions) -> list[Task]:
    """Return the notebooks of a report, after a check that they take a profile."""
    sources = [own for own in list_chapters(root) if own.stem not in conditions.skipped]
    if not sources:
        raise UserError(f"There are no numbered notebooks in {root / 'notebooks'}.")
    for source in sources:
        check_parameters(source, chapter_parameters(profile))
    return read_tasks(sources)


def check_parameters(notebook: Path, parameters: dict[str, Any]) -> None:
    """Refuse parameters that a notebook does not have, which papermill would only warn about."""
    known = set(inspect_notebook(str(notebook)))
    for name in sorted(parameters.keys() - known):
        there = ", ".join(sorted(known))
        raise UserError(f"{notebook.name} has no parameter '{name}'; it has {there}.")


def chapter_parameters(profile: Profile) -> dict[str, Any]:
    """Return the values for the parameters cell of every chapter."""
    return {"profile": profile.file or profile.name, "overrides": profile.changes}


def load_ledger(root: Path) -> list[Claim]:
    """Return the claims that a repository declares."""
    path = root / "notebooks" / LEDGER.name
    return load_claims(path) if path.is_file() else []


def describe_conditions(conditions: Conditions, root: Path) -> dict[str, Any]:
    """Return what chapters are told: what does not fit, and the claims that nobody can judge."""
    skipped = conditions.skipped
    claims = [claim for claim in load_ledger(root) if claim.chapter in skipped]
    return {
        "skipped": skipped,
        "conditions": conditions.unmet,
        "claims": {own.id: judge_claim(own, {}, skipped[own.chapter]) for own in claims},
        "untestable": {own.id: skipped[own.chapter] for own in claims},
    }


def find_chapter(name: str, key: dict[str, Any] | None, store: Store) -> Path | None:
    """Return where an executed chapter is kept, if all that it left to others is there too."""
    entry = store.find(KIND, key) if key else None
    if entry is None:
        return None
    recorded = json.loads((entry / f"{name}.json").read_text("utf-8"))
    left = {ROOT / own for kind in ("arrays", "checkpoints") for own in recorded[kind].values()}
    return entry if all(map(is_whole, left)) else None


def describe_status(
    tasks: Sequence[Task], profile: Profile, paths: RunPaths, root: Path, conditions: Conditions
) -> dict[str, str]:
    """Say of each chapter whether it is up to date, or why not; nothing is run."""
    parts = {CONDITIONS: describe_conditions(conditions, root)}
    said: dict[str, str] = {}
    for task in tasks:
        stale = [name for name in task.needs if name not in parts]
        if stale:
            said[task.name] = f"needs {stale[0]}, which is not up to date"
            continue
        needs = {name: parts[name] for name in task.takes}
        key = chapter_key(task.source, profile, needs, conditions.unmet)
        entry = find_chapter(task.name, key, Store(paths.cache))
        if entry is not None:
            parts[task.name] = json.loads((entry / f"{task.name}.json").read_text("utf-8"))
        said[task.name] = UP_TO_DATE if entry else _find_reason(task.name, key, paths.cache)
    return said


def _find_reason(name: str, key: dict[str, Any] | None, cache: Path) -> str:
    """Say why a chapter is not up to date, by what it was when it was last executed."""
    if key is None:
        return "the newest version on a hub may be another by now"
    entries = sorted((cache / KIND).glob(f"*/{ENTRY}"), key=lambda path: path.stat().st_mtime_ns)
    known = [json.loads(path.read_text("utf-8"))["key"] for path in entries]
    own = [before for before in known if name in before["notebook"]]
    same = [before for before in own if before["profile"] == key["profile"]]
    if not own:
        return "never executed on this machine"
    return "; ".join(explain((same or own)[-1], key)) or "what it left is not in the cache any more"


def describe_published(tasks: Sequence[Task], paths: RunPaths) -> str:
    """Say whether the results of the last report were made by this code."""
    results = paths.reports / "results.json"
    if not results.is_file():
        return "There is no report yet."
    stale = stale_chapters(results, [task.source for task in tasks])
    made_by = f"other code of {', '.join(stale)}" if stale else "this code"
    return f"results.json was made by {made_by}."
