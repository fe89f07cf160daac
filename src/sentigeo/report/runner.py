"""The runner: it finds the chapters that are not up to date and executes them in processes."""

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from sentigeo.cache import ENTRY, Store, is_whole
from sentigeo.cores import THREAD_VARIABLES, count_processes
from sentigeo.errors import UserError
from sentigeo.ledger.claims import find_claims, judge_claim
from sentigeo.paths import RunPaths, list_chapters, write_text
from sentigeo.profile import Profile
from sentigeo.report.execute import POLL, Process, RunProgress, check_parameters
from sentigeo.report.fingerprint import KIND, Conditions, chapter_key, explain
from sentigeo.report.notebook import CONDITIONS, NEEDS_VARIABLE, STAGE_VARIABLE


@dataclass(frozen=True)
class ChapterTask:
    """A chapter to be executed."""

    source: Path
    needs: tuple[str, ...]  # names of the chapters that it builds on
    parts: tuple[str, ...]  # names of the records it may read: of its needs, and of the runner
    one_thread: bool  # so that its numbers do not depend on the number of cores
    minutes: float  # that it roughly takes; of the chapters that are ready the longest begins

    @property
    def name(self) -> str:
        """The chapter's name, such as `01_reviews`."""
        return self.source.stem


def read_tasks(sources: Sequence[Path]) -> list[ChapterTask]:
    """Read what notebooks need from their metadata: `{"sentigeo": {"needs": [], "threads": 1}}`.

    They may also give its rough `minutes`. A notebook without such metadata needs all chapters
    before it, and one thread per core. Chapters that a run leaves out are dropped from the needs.
    """
    tasks: list[ChapterTask] = []
    for source in sources:
        said = nbformat.read(source, as_version=4).metadata.get("sentigeo", {})
        before = [task.name for task in tasks]
        wanted = said.get("needs", before)
        for name in wanted:
            if name >= source.stem:
                raise UserError(f"{source.name} needs '{name}', which does not come before it.")
        needs = tuple(name for name in wanted if name in before)
        parts = needs if "needs" in said else (CONDITIONS, *needs)
        one, minutes = said.get("threads") == 1, said.get("minutes", 0.0)
        tasks.append(ChapterTask(source, needs, parts, one, minutes))
    return tasks


def find_name(name: str, root: Path) -> str:
    """Return the name of the chapter that is called `5`, `05` or `05_clusters`."""
    known = [source.stem for source in list_chapters(root)]
    wanted = name.zfill(2) if name.isdecimal() else name
    for chapter in known:
        if wanted in (chapter, chapter[:2]):
            return chapter
    raise UserError(f"There is no chapter '{name}': the chapters are {', '.join(known)}.")


def needed_by(name: str, tasks: Sequence[ChapterTask]) -> list[ChapterTask]:
    """Return a chapter and everything it needs, directly or indirectly, in order."""
    wanted = {name}
    for task in reversed(tasks):
        if task.name in wanted:
            wanted |= set(task.needs)
    return [task for task in tasks if task.name in wanted]


@dataclass(frozen=True)
class ReportRun:
    """One run of the report or of some of its chapters."""

    profile: Profile
    paths: RunPaths
    stage: Path  # receives `reports/`, `figures/` and `parts/`
    root: Path  # the repository
    conditions: Conditions

    @property
    def parameters(self) -> dict[str, Any]:
        """The values for the parameters cell of every chapter."""
        profile = self.profile
        return {"profile": profile.file or profile.name, "overrides": profile.changes}

    def plan(self) -> list[ChapterTask]:
        """Return the chapters of the report, after a check that they take a profile."""
        known = list_chapters(self.root)
        sources = [source for source in known if source.stem not in self.conditions.skipped]
        if not sources:
            raise UserError(f"There are no numbered notebooks in {self.root / 'notebooks'}.")
        for source in sources:
            check_parameters(source, self.parameters)
        return read_tasks(sources)

    def prepare(self) -> None:
        """Empty the stage, and record there what does not apply to the run."""
        shutil.rmtree(self.stage, ignore_errors=True)
        shutil.rmtree(self.paths.failed, ignore_errors=True)
        for name in ("reports", "figures"):
            (self.stage / name).mkdir(parents=True)
        unfit = json.dumps(self.describe_conditions(), ensure_ascii=False)
        write_text(self.part(CONDITIONS), unfit)

    def describe_conditions(self) -> dict[str, Any]:
        """Return what does not apply to the run, with the claims that cannot be tested in it."""
        skipped = self.conditions.skipped
        declared = find_claims(self.root / "notebooks")
        claims = [claim for claim in declared if claim.chapter in skipped]
        reasons = {claim.id: skipped[claim.chapter] for claim in claims}
        judged = {claim.id: judge_claim(claim, {}, reasons[claim.id]) for claim in claims}
        unfit = {"skipped": skipped, "conditions": self.conditions.unmet}
        return unfit | {"claims": judged, "untestable": reasons}

    def part(self, name: str) -> Path:
        """Return the file that holds what a chapter recorded."""
        return self.stage / "parts" / f"{name}.json"

    def key(self, task: ChapterTask) -> dict[str, Any] | None:
        """Return everything a chapter depends on, or nothing if that cannot be identified."""
        needs = {name: json.loads(self.part(name).read_text("utf-8")) for name in task.parts}
        return chapter_key(task.source, self.profile, needs, self.conditions.unmet)

    def find(self, task: ChapterTask, key: dict[str, Any] | None) -> Path | None:
        """Return the folder of an executed chapter, if all it left is in the cache too."""
        entry = Store(self.paths.cache).find(KIND, key) if key else None
        if entry is None:
            return None
        recorded = json.loads((entry / f"{task.name}.json").read_text("utf-8"))
        left = {*recorded["arrays"].values(), *recorded["checkpoints"].values()}
        return entry if all(is_whole(self.paths.cache / path) for path in left) else None

    def outputs(self, task: ChapterTask) -> list[Path]:
        """List the files in the stage that a chapter has made."""
        part = self.part(task.name)
        if not part.is_file():
            raise UserError(f"{task.source.name} recorded nothing under its own name.")
        recorded = json.loads(part.read_text("utf-8"))
        files = [shown["file"] for shown in (*recorded["figures"], *recorded["pages"])]
        figures = [self.stage / "figures" / name for name in files]
        return [part, self.stage / "reports" / task.source.name, *figures]

    def restore(self, task: ChapterTask, key: dict[str, Any] | None) -> float | None:
        """Copy a chapter from the cache; return the seconds it took, or nothing."""
        entry = self.find(task, key)
        if entry is None:
            return None
        shutil.copy(entry / f"{task.name}.json", self.part(task.name))
        for path in self.outputs(task):
            shutil.copy(entry / path.name, path)
        self.share(task)
        return float(json.loads((entry / "seconds.json").read_text("utf-8")))

    def start(self, task: ChapterTask, notes: Path) -> Process:
        """Start the process that executes a chapter."""
        variables = {STAGE_VARIABLE: str(self.stage), NEEDS_VARIABLE: json.dumps(task.needs)}
        if task.one_thread:
            variables |= dict.fromkeys(THREAD_VARIABLES, "1")
        source, copy = task.source, self.stage / "reports" / task.source.name
        unmet, timeout = self.conditions.unmet, self.profile.notebook_timeout
        given = self.parameters, notes, variables, unmet, timeout, self.root
        process = Process(source, copy, *given)
        process.start()
        return process

    def poll(self, process: Process) -> bool:
        """Return whether a chapter is complete; if it failed, keep its copy and raise its error."""
        try:
            return process.poll()
        except UserError as error:
            if not process.copy.is_file():
                raise UserError(f"{error}\nIt did not start.") from None
            self.paths.failed.mkdir(parents=True, exist_ok=True)
            kept = Path(shutil.copy(process.copy, self.paths.failed)).relative_to(self.root)
            raise UserError(f"{error}\nThe notebook as far as it got: {kept}") from None

    def keep(self, task: ChapterTask, key: dict[str, Any] | None, seconds: float) -> None:
        """Store an executed chapter in the cache, unless its key has changed meanwhile."""
        outputs, store = self.outputs(task), Store(self.paths.cache)

        def fill(folder: Path) -> None:
            for path in outputs:
                shutil.copy(path, folder)
            write_text(folder / "seconds.json", json.dumps(seconds))

        if key and key == self.key(task):
            shutil.rmtree(store.place(KIND, key), ignore_errors=True)
            store.put(KIND, key, fill)
        self.share(task)

    def share(self, task: ChapterTask) -> None:
        """Copy what a chapter recorded to where notebooks that are run by hand look for it."""
        self.paths.parts.mkdir(parents=True, exist_ok=True)
        for name in (CONDITIONS, task.name):
            shutil.copy(self.part(name), self.paths.parts)


def run_chapters(
    tasks: Sequence[ChapterTask], run: ReportRun, target: str | None = None, fresh: bool = False
) -> dict[str, float]:
    """Fill the stage of a run with its chapters; return the seconds that each took.

    Chapters come from the cache or are executed, several at a time if possible. The target is the
    chapter that was asked for (none: all of them); `fresh` executes what was asked for even if
    nothing has changed.
    """
    run.prepare()
    waiting, seconds = list(tasks), dict[str, float]()
    running: dict[str, tuple[ChapterTask, Process, Any]] = {}
    notes, at_once = run.stage / "notes", count_processes()
    with RunProgress(len(tasks), notes) as progress:
        try:
            while waiting or running:
                ready = [task for task in waiting if seconds.keys() >= set(task.needs)]
                ready.sort(key=lambda task: -task.minutes)  # the longest first
                for task in ready[: at_once - len(running)]:
                    waiting.remove(task)
                    key, wanted = run.key(task), target in (None, task.name)
                    found = None if fresh and wanted else run.restore(task, key)
                    if found is not None:
                        seconds[task.name] = found
                        progress.reuse(task.name)
                        break  # others may be ready now
                    if not wanted:
                        progress.line(f"{task.name} is not in the cache: executed first.")
                    running[task.name] = task, run.start(task, notes), key
                    progress.start(task.name)
                for name, (task, process, key) in list(running.items()):
                    if run.poll(process):
                        seconds[name] = round(process.seconds, 2)
                        run.keep(task, key, seconds[name])
                        progress.finish(name, seconds[name])
                        del running[name]
                progress.show()
                time.sleep(POLL if running else 0)
        finally:
            for _, process, _ in running.values():
                process.end()
    return {task.name: seconds[task.name] for task in tasks}


def describe_status(tasks: Sequence[ChapterTask], run: ReportRun) -> dict[str, str]:
    """Say of each chapter whether it is up to date, or why not, without executing any."""
    parts = {CONDITIONS: run.describe_conditions()}
    said: dict[str, str] = {}
    for task in tasks:
        stale = [name for name in task.needs if name not in parts]
        if stale:
            said[task.name] = f"needs {stale[0]}, which is not up to date"
            continue
        needs = {name: parts[name] for name in task.parts}
        key = chapter_key(task.source, run.profile, needs, run.conditions.unmet)
        entry = run.find(task, key)
        if entry is not None:
            parts[task.name] = json.loads((entry / f"{task.name}.json").read_text("utf-8"))
        said[task.name] = "up to date" if entry else _find_reason(task.name, key, run.paths.cache)
    return said


def _find_reason(name: str, key: dict[str, Any] | None, cache: Path) -> str:
    """Say why a chapter is not up to date, by comparison with its last execution."""
    if key is None:
        return "the model or data on the hub may have changed: pin a revision"
    entries = sorted((cache / KIND).glob(f"*/{ENTRY}"), key=lambda path: path.stat().st_mtime_ns)
    known = [json.loads(path.read_text("utf-8"))["key"] for path in entries]
    before = [entry for entry in known if name in entry["notebook"]]
    same = [entry for entry in before if entry["profile"] == key["profile"]]
    if not before:
        return "never executed on this machine"
    changes = explain((same or before)[-1], key)
    return "; ".join(changes) or "its results are no longer in the cache"
