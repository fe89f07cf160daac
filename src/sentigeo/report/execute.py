"""A notebook in a process of its own, which is `python -m sentigeo.report.execute JOB.json`."""

import errno
import json
import os
import subprocess
import sys
import time
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from threading import Thread
from typing import Any, TextIO

import nbformat
import papermill
import psutil
from nbclient.exceptions import DeadKernelError
from nbformat.v4 import new_markdown_cell
from papermill.exceptions import PapermillExecutionError
from tqdm import tqdm

from sentigeo.cores import EVERY, NOTE_VARIABLE
from sentigeo.errors import UserError
from sentigeo.paths import ROOT, write_text

POLL = 0.1  # seconds between checks of what runs
os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")  # this environment's kernel, not the user's


@dataclass
class Process:
    """A notebook that is executed in a process of its own."""

    source: Path
    copy: Path  # receives its executed copy
    parameters: dict[str, Any]
    notes: Path  # the folder in which it says how far it is
    variables: dict[str, str]  # added to the environment of this process
    unmet: dict[str, str] = field(default_factory=dict)  # conditions that do not hold; why
    timeout: int | None = None  # in seconds
    folder: Path = ROOT  # in which it works

    def start(self) -> None:
        """Start the process, which executes the notebook."""
        self.began = time.monotonic()
        self._job = self.notes.resolve() / f"{self.source.stem}.json"
        paths = {"source": str(self.source.resolve()), "copy": str(self.copy.resolve())}
        given = {"parameters": self.parameters, "unmet": self.unmet}
        write_text(self._job, json.dumps(paths | given))
        variables = {NOTE_VARIABLE: str(self._job.with_suffix(".note")), **self.variables}
        command = [sys.executable, "-m", "sentigeo.report.execute", str(self._job)]
        with self._job.with_suffix(".log").open("w") as log:
            # It leads a session of its own, and ends when this process closes its standard input.
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True,
                env=os.environ | variables, cwd=self.folder,
            )  # fmt: skip

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return time.monotonic() - self.began

    def poll(self) -> bool:
        """Return whether the copy is complete; kill it after its timeout, and raise its error."""
        code = self._process.poll()
        if code is None and self.timeout is not None and self.seconds > self.timeout:
            self.end()
            raise UserError(f"{self.source.name} took longer than its {self.timeout} seconds.")
        if code:
            error = self._job.with_suffix(".error")
            log = self._job.with_suffix(".log").read_text("utf-8").strip()
            died = f"{log}\n{self.source.name}: its process died, perhaps out of memory.".strip()
            raise UserError(error.read_text("utf-8") if error.is_file() else died)
        return code == 0

    def end(self) -> None:
        """Kill the process, its kernel and whatever that started."""
        end_tree(self._process.pid)
        self._process.wait()


@dataclass
class Running:
    """A running notebook: its bar, when it began, and when a line about it was last written."""

    bar: Any
    began: float = field(default_factory=time.monotonic)
    said: float = field(default_factory=time.monotonic)


class RunProgress(AbstractContextManager["RunProgress"]):
    """Shows which notebooks are running, at which cell, and how many are left.

    In the folder of notes each running notebook writes the cell it is at, to `<name>.cell`, and the
    progress of long work, to `<name>.note`. A terminal gets bars; any other stream one line per
    finished notebook, and every `every` seconds one per running notebook.
    """

    def __init__(
        self, notebooks: int, notes: Path, stream: TextIO | None = None, every: float = EVERY
    ) -> None:
        self.notes, self.every, self.stream = notes, every, stream or sys.stderr
        self.total = self._bar(total=notebooks, unit="notebook", desc="report")
        self.done = 0
        self.running: dict[str, Running] = {}
        self.free: list[Any] = []  # bars of notebooks that are complete

    def _bar(self, **options: Any) -> Any:
        return tqdm(file=self.stream, disable=None, **options)  # None: drawn in a terminal only

    def __exit__(self, *_: object) -> None:
        for bar in (*self.free, *(one.bar for one in self.running.values()), self.total):
            bar.close()

    def start(self, name: str) -> None:
        """Show that a notebook has begun."""
        bar = self.free.pop() if self.free else self._bar(unit="cell")
        bar.reset()
        bar.set_description(name)
        self.running[name] = Running(bar)

    def finish(self, name: str, seconds: float) -> None:
        """Show that a running notebook is complete."""
        bar = self.running.pop(name).bar
        bar.n = bar.total
        bar.set_postfix_str("")
        self.free.append(bar)
        self._count(f"{name} in {seconds:.1f} s" if bar.disable else None)

    def reuse(self, name: str) -> None:
        """Show that a notebook need not run because its results are in the cache."""
        self._count(f"{name} unchanged, from the cache")

    def _count(self, said: str | None) -> None:
        self.done += 1
        if said:
            self.line(f"[{self.done}/{self.total.total}] {said}")
        self.total.update()

    def show(self) -> None:
        """Show where the running notebooks are: bars at once, lines from time to time."""
        for name, running in self.running.items():
            number, _, cells = self._read(f"{name}.cell").partition(" ")
            note, now = self._read(f"{name}.note"), time.monotonic()
            if not cells:
                continue
            running.bar.total, running.bar.n = int(cells), int(number) - 1
            running.bar.set_postfix_str(note)
            if running.bar.disable and now - running.said >= self.every:
                running.said = now
                where = f"{name}: cell {number} of {cells} after {now - running.began:.0f} s"
                self.line(f"{where} ({note})" if note else where)

    def line(self, text: str) -> None:
        """Write a line of its own."""
        self.total.write(text, file=self.stream)
        self.stream.flush()

    def _read(self, name: str) -> str:
        try:
            return (self.notes / name).read_text("utf-8")
        except FileNotFoundError:
            return ""


def run_notebook(process: Process, progress: RunProgress) -> None:
    """Execute a single notebook and show its progress."""
    process.start()
    try:
        progress.start(process.source.stem)
        while not process.poll():
            progress.show()
            time.sleep(POLL)
        progress.finish(process.source.stem, process.seconds)
    finally:
        process.end()


def check_parameters(notebook: Path, parameters: dict[str, Any]) -> None:
    """Refuse parameters that a notebook lacks; papermill would only warn about them."""
    known = set(papermill.inspect_notebook(str(notebook)))
    for name in sorted(parameters.keys() - known):
        there = ", ".join(sorted(known))
        raise UserError(f"{notebook.name} has no parameter '{name}'; it has {there}.")


def main(job_file: str) -> int:
    """Execute the notebook of a job file; an error is written to a file beside it."""
    Thread(target=_end_with_parent, daemon=True).start()
    try:
        execute(Path(job_file))
    except UserError as error:
        write_text(Path(job_file).with_suffix(".error"), str(error))
        return 1
    return 0


def execute(job: Path) -> None:
    """Execute the notebook of a job file; the number of the current cell is written beside it."""
    given = json.loads(job.read_text("utf-8"))
    source, copy = Path(given["source"]), Path(given["copy"])
    notebook = nbformat.read(source, as_version=4)
    notebook.cells = leave_out(notebook.cells, given["unmet"])

    def tell(cell: Any, cell_index: int) -> None:
        job.with_suffix(".note").unlink(missing_ok=True)
        write_text(job.with_suffix(".cell"), f"{cell_index + 1} {len(notebook.cells) + 1}")

    try:
        papermill.execute_notebook(
            notebook, str(copy), given["parameters"], kernel_name="python3", on_cell_start=tell,
            progress_bar=False, record_timing=False, extra_arguments=["--log-level=CRITICAL"],
        )  # fmt: skip
    except PapermillExecutionError as error:
        raise UserError(_explain(source, error)) from None
    except DeadKernelError:
        raise UserError(f"{source.name}: the kernel died, perhaps out of memory.") from None
    tidy(copy)


def leave_out(cells: list[Any], unmet: dict[str, str]) -> list[Any]:
    """Replace cells tagged with an unmet condition by a sentence that says why."""
    kept: list[Any] = []

    def reason(cell: Any) -> str:
        return next((unmet[tag] for tag in cell.metadata.get("tags", []) if tag in unmet), "")

    for why, run in groupby(cells, reason):
        if why:
            kept.append(new_markdown_cell(f"*Left out: {why}*", id=f"left-out-{len(kept)}"))
        else:
            kept += run
    return kept


def _explain(source: Path, error: PapermillExecutionError) -> str:
    """Return an expected error as one sentence, and any other with its traceback."""
    if error.ename == "UserError" or os.strerror(errno.ENOSPC) in error.evalue:
        return f"{source.name}: {error.evalue}"
    head = f"{source.name}, cell {error.cell_index + 1}: {error.ename}: {error.evalue}"
    return str(papermill.exceptions.strip_color("\n".join([*error.traceback, head])))


def tidy(copy: Path) -> None:
    """Remove from an executed copy what differs between equal runs: timings, random ids, paths."""
    notebook = nbformat.read(copy, as_version=4)
    notebook.metadata.pop("papermill", None)
    for cell in notebook.cells:
        cell.metadata.pop("papermill", None)
        if "injected-parameters" in cell.metadata.get("tags", []):
            cell.id = "injected-parameters"
    write_text(copy, nbformat.writes(notebook) + "\n")


def end_tree(pid: int) -> None:
    """Kill a process and all that it started; a kernel leads a session of its own."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for one in (*process.children(recursive=True), process):
            with suppress(psutil.NoSuchProcess):
                one.kill()


def _end_with_parent() -> None:
    sys.stdin.read()  # until the process that began this one is gone
    end_tree(os.getpid())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
