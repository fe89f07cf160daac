"""Notebooks at the same time: which of them need which, and how many threads each has."""

import errno
import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import chdir, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
import papermill
from joblib import cpu_count
from jupyter_client.manager import AsyncKernelManager
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.exceptions import PapermillExecutionError

from sentigeo.cache import Store, is_whole
from sentigeo.cores import THREAD_VARIABLES
from sentigeo.errors import UserError
from sentigeo.files import write_text
from sentigeo.paths import ROOT, RunPaths
from sentigeo.profile import Profile
from sentigeo.progress import NOTE_VARIABLE, RunProgress
from sentigeo.report.fingerprint import chapter_key, imported_modules, inputs_key, machine_key
from sentigeo.report.notebook import NEEDS_VARIABLE, SKIPPED, STAGE_VARIABLE

os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")  # this environment's kernel, not the user's
KIND = "chapter"  # of an entry in the store
MOST_AT_ONCE = 4  # kernels; each needs a gigabyte or two


@dataclass(frozen=True)
class Task:
    """A notebook to be run.

    Attributes:
        source: The notebook.
        needs: Names of the notebooks that it takes something from.
        minutes: What it takes, roughly; of those that are ready the longest begins.
        one_thread: Whether its libraries are held to one thread; it leaves the other cores alone,
            and its numbers do not depend on how many there are.
    """

    source: Path
    needs: tuple[str, ...]
    one_thread: bool
    minutes: float = 0.0

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
        tasks.append(Task(source, kept, said.get("threads") == 1, said.get("minutes", 0.0)))
    return tasks


def run_tasks(
    tasks: Sequence[Task], run: Callable[[Task], None], at_once: int, stop: Callable[[], None]
) -> None:
    """Run tasks, several at the same time where they do not need each other.

    Args:
        tasks: Of those that take equally long the first begins.
        run: Runs one of them, in a thread.
        at_once: How many may run at the same time.
        stop: Makes running tasks fail soon; called when one failed, or after Ctrl-C.
    """
    waiting, done = list(tasks), set[str]()
    running: dict[Future[None], Task] = {}
    with ThreadPoolExecutor(at_once) as threads:
        try:
            while waiting or running:
                ready = [task for task in waiting if done.issuperset(task.needs)]
                ready.sort(key=lambda task: -task.minutes)
                for task in ready[: at_once - len(running)]:
                    waiting.remove(task)
                    running[threads.submit(run, task)] = task
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    done.add(running.pop(future).name)
                    future.result()
        except BaseException:
            left = set(running)
            while left:
                stop()  # more than once: a kernel may just have been about to start
                left = wait(left, timeout=0.2).not_done
            raise


class Kernels:
    """Starts kernels, and knows those that were started.

    Attributes:
        ended: Whether they were told to end.
    """

    def __init__(self) -> None:
        self.ended = False
        self._started: list[AsyncKernelManager] = []

    def kind(self, variables: dict[str, str]) -> type[AsyncKernelManager]:
        """Return a kind of kernel that has some environment variables besides those of all."""
        started = self._started

        class Kernel(AsyncKernelManager):
            async def start_kernel(self, **settings: Any) -> None:  # type: ignore[override]
                started.append(self)
                await super().start_kernel(env=os.environ | variables, **settings)

        return Kernel

    def end(self) -> None:
        """End every kernel that still runs, and the processes that it started."""
        self.ended = True
        for kernel in self._started:
            process = getattr(kernel.provisioner, "process", None)
            if process is not None and process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # a kernel leads a group of its own


def check_parameters(notebook: Path, parameters: dict[str, Any]) -> None:
    """Refuse parameters that a notebook does not have, which papermill would only warn about."""
    known = set(papermill.inspect_notebook(str(notebook)))
    for name in parameters:
        if name not in known:
            raise UserError(
                f"{notebook.name} has no parameter '{name}'; it has {', '.join(sorted(known))}."
            )


def execute(
    source: Path,
    copy: Path,
    parameters: dict[str, Any],
    timeout: int | None,
    progress: RunProgress,
    kernel: type[AsyncKernelManager],
) -> None:
    """Execute a notebook in the current folder and write its executed copy.

    Args:
        source: The notebook.
        copy: Where its executed copy goes.
        parameters: Values for its parameters cell.
        timeout: Seconds it may take; none sets no limit.
        progress: Shows how far it is.
        kernel: Starts its kernel.

    Raises:
        UserError: It failed; one sentence if that was foreseen, else the traceback comes first.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    progress.start(source.stem, len(nbformat.read(source, as_version=4).cells) + 1)
    try:
        papermill.execute_notebook(
            str(source),
            str(copy),
            parameters,
            kernel_name="python3",
            progress_bar=False,
            record_timing=False,
            extra_arguments=["--log-level=CRITICAL"],
            timeout_func=lambda cell: deadline and max(1, int(deadline - time.monotonic())),
            on_cell_start=lambda cell, cell_index: progress.cell(source.stem, cell_index + 1),
            kernel_manager_class=kernel,
        )
    except PapermillExecutionError as error:
        raise UserError(_explain(source, error)) from None
    except CellTimeoutError:
        raise UserError(f"{source.name} took longer than its {timeout} seconds.") from None
    except DeadKernelError:
        raise UserError(f"{source.name}: the kernel died, perhaps out of memory.") from None
    _tidy(copy)


def _explain(source: Path, error: PapermillExecutionError) -> str:
    """Name notebook, cell and error; show the traceback unless the error speaks for itself."""
    if error.ename == "UserError" or os.strerror(errno.ENOSPC) in error.evalue:
        return f"{source.name}: {error.evalue}"
    head = f"{source.name}, cell {error.cell_index + 1}: {error.ename}: {error.evalue}"
    trace = papermill.exceptions.strip_color("\n".join(error.traceback))
    return f"{trace}\n{head}"


def _tidy(copy: Path) -> None:
    """Drop what differs between equal runs: timings, random cell ids, paths."""
    notebook = nbformat.read(copy, as_version=4)
    notebook.metadata.pop("papermill", None)
    for cell in notebook.cells:
        cell.metadata.pop("papermill", None)
        if "injected-parameters" in cell.metadata.get("tags", []):
            cell.id = "injected-parameters"
    write_text(copy, nbformat.writes(notebook) + "\n")


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
    return all(map(is_whole, left))
