"""The runner: chapters from the cache, and a process for each that has to be executed."""

import json
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from joblib import cpu_count

from sentigeo.cache import Store
from sentigeo.cores import THREAD_VARIABLES
from sentigeo.errors import UserError
from sentigeo.files import write_text
from sentigeo.paths import RunPaths
from sentigeo.profile import Profile
from sentigeo.progress import RunProgress
from sentigeo.report.execute import POLL, Process
from sentigeo.report.fingerprint import KIND, Conditions, chapter_key
from sentigeo.report.notebook import CONDITIONS, NEEDS_VARIABLE, STAGE_VARIABLE
from sentigeo.report.plan import Task, chapter_parameters, describe_conditions, find_chapter

MOST_AT_ONCE = 4  # notebooks; each needs a gigabyte or two


@dataclass(frozen=True)
class Run:
    """One run of chapters; `fresh` names those to be executed although they did not change."""

    profile: Profile
    paths: RunPaths
    stage: Path  # receives `reports/`, `figures/` and `parts/`
    root: Path  # the repository
    conditions: Conditions
    fresh: frozenset[str] = frozenset()

    def prepare(self) -> None:
        """Empty the stage, and leave word there of what does not fit the run."""
        shutil.rmtree(self.stage, ignore_errors=True)
        shutil.rmtree(self.paths.failed, ignore_errors=True)
        for name in ("reports", "figures"):
            (self.stage / name).mkdir(parents=True)
        told = describe_conditions(self.conditions, self.root)
        write_text(self.part(CONDITIONS), json.dumps(told, ensure_ascii=False))

    def part(self, name: str) -> Path:
        """Return the file of what a chapter recorded."""
        return self.stage / "parts" / f"{name}.json"

    def key(self, task: Task) -> dict[str, Any] | None:
        """Return all that an executed chapter depends on, if that can be known."""
        needs = {name: json.loads(self.part(name).read_text("utf-8")) for name in task.takes}
        return chapter_key(task.source, self.profile, needs, self.conditions.unmet)

    def outputs(self, task: Task) -> list[Path]:
        """List the files of a chapter in the stage, as its part says."""
        part = self.part(task.name)
        if not part.is_file():
            raise UserError(f"{task.source.name} recorded nothing under its own name.")
        recorded = json.loads(part.read_text("utf-8"))
        files = [own["file"] for own in (*recorded["figures"], *recorded["pages"])]
        figures = [self.stage / "figures" / name for name in files]
        return [part, self.stage / "reports" / task.source.name, *figures]

    def restore(self, task: Task, key: dict[str, Any] | None) -> float | None:
        """Take a chapter from the cache; return the seconds it once took, or nothing."""
        entry = find_chapter(task.name, key, Store(self.paths.cache))
        if entry is None or task.name in self.fresh:
            return None
        shutil.copy(entry / f"{task.name}.json", self.part(task.name))
        for path in self.outputs(task):
            shutil.copy(entry / path.name, path)
        self.share(task)
        return float(json.loads((entry / "seconds.json").read_text("utf-8")))

    def start(self, task: Task, notes: Path) -> Process:
        """Begin to execute a chapter."""
        variables = {STAGE_VARIABLE: str(self.stage), NEEDS_VARIABLE: json.dumps(task.needs)}
        if task.one_thread:
            variables |= dict.fromkeys(THREAD_VARIABLES, "1")
        copy, parameters = (
            self.stage / "reports" / task.source.name,
            chapter_parameters(self.profile),
        )
        unmet, timeout = self.conditions.unmet, self.profile.notebook_timeout
        return Process(task.source, copy, parameters, notes, variables, unmet, timeout, self.root)

    def is_done(self, process: Process) -> bool:
        """Tell whether a chapter is complete; if it failed, its copy is kept to be read."""
        try:
            return process.is_done()
        except UserError as error:
            if not process.copy.is_file():
                raise UserError(f"{error}\nIt did not start.") from None
            self.paths.failed.mkdir(parents=True, exist_ok=True)
            kept = Path(shutil.copy(process.copy, self.paths.failed)).relative_to(self.root)
            raise UserError(f"{error}\nThe notebook as far as it got: {kept}") from None

    def keep(self, task: Task, key: dict[str, Any] | None, seconds: float) -> None:
        """Put an executed chapter into the cache, unless something was edited meanwhile."""
        outputs, store = self.outputs(task), Store(self.paths.cache)

        def fill(folder: Path) -> None:
            for path in outputs:
                shutil.copy(path, folder)
            write_text(folder / "seconds.json", json.dumps(seconds))

        if key and key == self.key(task):
            shutil.rmtree(store.place(KIND, key), ignore_errors=True)
            store.put(KIND, key, fill)
        self.share(task)

    def share(self, task: Task) -> None:
        """Leave what a chapter recorded where notebooks that are run by hand find it."""
        self.paths.parts.mkdir(parents=True, exist_ok=True)
        for name in (CONDITIONS, task.name):
            shutil.copy(self.part(name), self.paths.parts)


def run_chapters(tasks: Sequence[Task], run: Run, target: str | None = None) -> dict[str, float]:
    """Put chapters into the emptied stage of a run, several at the same time where possible.

    Where there is a target, the others are only needed by it. The seconds that each took when it
    was executed are returned.
    """
    run.prepare()
    waiting, seconds = list(tasks), dict[str, float]()
    running: dict[str, tuple[Task, Process, Any]] = {}
    notes, at_once = run.stage / "notes", min(MOST_AT_ONCE, int(cpu_count()))
    with RunProgress(len(tasks), notes) as progress:
        try:
            while waiting or running:
                ready = [task for task in waiting if seconds.keys() >= set(task.needs)]
                ready.sort(key=lambda task: -task.minutes)  # the longest begins
                for task in ready[: at_once - len(running)]:
                    waiting.remove(task)
                    key = run.key(task)
                    found = run.restore(task, key)
                    if found is not None:
                        seconds[task.name] = found
                        progress.reuse(task.name)
                        break  # others may be ready now
                    if target not in (None, task.name):
                        progress.line(f"{task.name} is not in the cache: executed first.")
                    running[task.name] = task, run.start(task, notes), key
                    progress.start(task.name)
                for name, (task, process, key) in list(running.items()):
                    if run.is_done(process):
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
