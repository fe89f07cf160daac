"""Execute the chapters of a run into its stage, or take unchanged ones from the cache."""

import json
import shutil
import time
from contextlib import chdir
from functools import partial
from pathlib import Path
from typing import Any

from joblib import cpu_count

from sentigeo.chapter import NEEDS_VARIABLE, SKIPPED, STAGE_VARIABLE
from sentigeo.errors import UserError
from sentigeo.execute import execute
from sentigeo.fingerprint import chapter_key, imported_modules, inputs_key, machine_key
from sentigeo.kernels import THREAD_VARIABLES, Kernels
from sentigeo.paths import ROOT, RunPaths
from sentigeo.profile import Profile
from sentigeo.progress import NOTE_VARIABLE, RunProgress
from sentigeo.schedule import Task, run_tasks
from sentigeo.space import SPACE, is_whole_space
from sentigeo.store import Store, is_whole, write_text

KIND = "chapter"  # of an entry in the store
MOST_AT_ONCE = 4  # kernels; each needs a gigabyte or two


class ChapterRun:
    """One run of the chapters.

    Args:
        tasks: The chapters.
        profile: What the run is.
        paths: Its folders.
        root: The repository.
        progress: Shows how far it is.
        fresh: Whether chapters are executed although they did not change.

    Attributes:
        seconds: What each complete chapter took when it was executed.
    """

    def __init__(
        self,
        tasks: list[Task],
        profile: Profile,
        paths: RunPaths,
        root: Path,
        progress: RunProgress,
        fresh: bool,
    ) -> None:
        self.profile, self.paths, self.root, self.progress = profile, paths, root, progress
        self.fresh = fresh
        self.store, self.kernels = Store(paths.cache), Kernels()
        self._machine = machine_key()
        # Here, in one thread: Python before 3.12 cannot read code in two at once.
        self._modules = {task.name: imported_modules(task.source) for task in tasks}
        self.seconds: dict[str, float] = {}

    def run(self, task: Task) -> None:
        """Put a chapter into the stage."""
        key = self._key(task)
        entry = self.store.find(KIND, key) if key and not self.fresh else None
        if entry is not None and _is_usable(entry / f"{task.name}.json"):
            self.seconds[task.name] = self._restore(task, entry)
            self.progress.reuse(task.name)
            return
        began = time.monotonic()
        self._execute(task)
        self.seconds[task.name] = round(time.monotonic() - began, 2)
        if key and key == self._key(task):  # nothing was edited meanwhile
            shutil.rmtree(self.store.place(KIND, key), ignore_errors=True)
            self.store.put(KIND, key, partial(self._keep, task))
        self.progress.finish(task.name, self.seconds[task.name])

    def _execute(self, task: Task) -> None:
        """Execute a chapter; if it fails, what it made so far is kept to be read."""
        copy = self.paths.stage / "reports" / task.source.name
        variables = {
            STAGE_VARIABLE: str(self.paths.stage),
            NOTE_VARIABLE: str(self.progress.notes / task.name),
            NEEDS_VARIABLE: json.dumps(task.needs),
        }
        if task.one_thread:
            variables |= dict.fromkeys(THREAD_VARIABLES, "1")
        kernel, timeout = self.kernels.kind(variables), self.profile.notebook_timeout
        parameters = chapter_parameters(self.profile)
        try:
            execute(task.source, copy, parameters, timeout, self.progress, kernel)
        except UserError as error:
            if self.kernels.ended:
                raise
            raise UserError(f"{error}\n{self._keep_failed(copy)}") from None

    def _key(self, task: Task) -> dict[str, Any] | None:
        """Return all that an executed chapter depends on, if that can be known."""
        inputs = inputs_key(self.profile)
        modules, parts = self._modules[task.name], self.paths.stage / "parts"
        own = chapter_key(task.source, modules, (SKIPPED, *task.needs), parts)
        return None if inputs is None else {**own, **inputs, **self._machine}

    def _keep(self, task: Task, folder: Path) -> None:
        """Copy what a chapter left in the stage into a folder."""
        for path in self._outputs(task):
            shutil.copy(path, folder)
        write_text(folder / "seconds.json", json.dumps(self.seconds[task.name]))

    def _restore(self, task: Task, entry: Path) -> float:
        """Copy a chapter from the cache into the stage; return the seconds it once took."""
        part = self._part(task)
        part.parent.mkdir(exist_ok=True)
        shutil.copy(entry / part.name, part)
        for path in self._outputs(task):
            shutil.copy(entry / path.name, path)
        return float(json.loads((entry / "seconds.json").read_text("utf-8")))

    def _part(self, task: Task) -> Path:
        return self.paths.stage / "parts" / f"{task.name}.json"

    def _outputs(self, task: Task) -> list[Path]:
        """List the files of a chapter in the stage, as its part says."""
        part = self._part(task)
        if not part.is_file():
            raise UserError(f"{task.source.name} recorded nothing under its own name.")
        recorded = json.loads(part.read_text("utf-8"))
        files = [own["file"] for own in (*recorded["figures"], *recorded["pages"])]
        figures = [self.paths.stage / "figures" / name for name in files]
        return [part, self.paths.stage / "reports" / task.source.name, *figures]

    def _keep_failed(self, copy: Path) -> str:
        """Keep the notebook of a failed run where it can be read, and say where that is."""
        if not copy.is_file():
            return "It did not start."
        self.paths.failed.mkdir(parents=True, exist_ok=True)
        kept = Path(shutil.copy(copy, self.paths.failed))
        return f"The notebook as far as it got: {kept.relative_to(self.root)}"


def run_chapters(
    tasks: list[Task], profile: Profile, paths: RunPaths, root: Path, fresh: bool
) -> dict[str, float]:
    """Put chapters into the stage of a run; return the seconds each took when it was executed."""
    notes = paths.stage / "notes"
    with chdir(root), RunProgress(len(tasks), notes) as progress:
        run = ChapterRun(tasks, profile, paths, root, progress, fresh)
        run_tasks(tasks, run.run, min(MOST_AT_ONCE, cpu_count()), run.kernels.end)
    return {task.name: run.seconds[task.name] for task in tasks}


def chapter_parameters(profile: Profile) -> dict[str, Any]:
    """Return the values for the parameters cell of every chapter."""
    return {"profile": profile.file or profile.name, "overrides": profile.changes}


def _is_usable(part: Path) -> bool:
    """Tell whether all that a chapter left to others, as its part says, is still in the cache."""
    recorded = json.loads(part.read_text("utf-8"))
    left = {ROOT / name for kind in ("arrays", "checkpoints") for name in recorded[kind].values()}
    spaces = [folder for folder in left if folder.parent.name == SPACE]
    return all(map(is_whole, left)) and all(map(is_whole_space, spaces))
