"""Which notebooks a run executes, which of them need which, and what they are told."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from papermill import inspect_notebook

from sentigeo.errors import UserError
from sentigeo.ledger.claims import LEDGER, Claim, judge_claim, load_claims
from sentigeo.paths import list_chapters
from sentigeo.profile import Profile
from sentigeo.report.fingerprint import Conditions


@dataclass(frozen=True)
class Task:
    """A notebook to be run.

    Attributes:
        source: The notebook.
        needs: Names of the notebooks that it takes something from.
        one_thread: Whether its libraries are held to one thread; it leaves the other cores alone,
            and its numbers do not depend on how many there are.
        minutes: What it takes, roughly; of those that are ready the longest begins.
        takes_all: Whether it takes something from every chapter before it.
    """

    source: Path
    needs: tuple[str, ...] = ()
    one_thread: bool = False
    minutes: float = 0.0
    takes_all: bool = False

    @property
    def name(self) -> str:
        """The notebook's name, such as `01_reviews`."""
        return self.source.stem


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
        threads, minutes = said.get("threads"), said.get("minutes", 0.0)
        tasks.append(Task(source, kept, threads == 1, minutes, "needs" not in said))
    return tasks


def find_name(name: str, root: Path) -> str:
    """Return the chapter that a person means by `5`, `05` or `05_clusters`."""
    known = [source.stem for source in list_chapters(root)]
    wanted = name.zfill(2) if name.isdecimal() else name
    found = [own for own in known if wanted in (own, own[:2])]
    if not found:
        raise UserError(f"There is no chapter '{name}': the chapters are {', '.join(known)}.")
    return found[0]


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
    for name in parameters:
        if name not in known:
            raise UserError(
                f"{notebook.name} has no parameter '{name}'; it has {', '.join(sorted(known))}."
            )


def chapter_parameters(profile: Profile) -> dict[str, Any]:
    """Return the values for the parameters cell of every chapter."""
    return {"profile": profile.file or profile.name, "overrides": profile.changes}


def describe_conditions(conditions: Conditions, root: Path) -> dict[str, Any]:
    """Return what chapters are told: what does not fit, and the claims that nobody can judge."""
    skipped = conditions.skipped
    judged = {
        claim.id: judge_claim(claim, {}, skipped[claim.chapter])
        for claim in load_ledger(root)
        if claim.chapter in skipped
    }
    reasons = {number: own["reason"] for number, own in judged.items()}
    return {
        "skipped": skipped,
        "conditions": conditions.unmet,
        "claims": judged,
        "untestable": reasons,
    }


def load_ledger(root: Path) -> list[Claim]:
    """Return the claims that a repository declares."""
    path = root / "notebooks" / LEDGER.name
    return load_claims(path) if path.is_file() else []
