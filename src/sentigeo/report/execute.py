"""A notebook in a process of its own, which is `python -m sentigeo.report.execute JOB.json`."""

import errno
import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from threading import Thread
from typing import Any

import nbformat
import papermill
import psutil
from nbclient.exceptions import DeadKernelError
from nbformat.v4 import new_markdown_cell
from papermill.exceptions import PapermillExecutionError

from sentigeo.errors import UserError
from sentigeo.files import write_text
from sentigeo.paths import ROOT
from sentigeo.progress import NOTE_VARIABLE, RunProgress

POLL = 0.1  # seconds between looks at what runs
QUIETLY: dict[str, Any] = {"progress_bar": False, "record_timing": False}
QUIETLY |= {"extra_arguments": ["--log-level=CRITICAL"]}
os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")  # this environment's kernel, not the user's


class Process:
    """A notebook that is executed in a process of its own.

    Args:
        source: The notebook; `copy` is where its executed copy goes.
        parameters: Values for its parameters cell.
        notes: Folder in which it says how far it is.
        variables: Its environment variables, besides those of this process.
        unmet: Conditions that do not hold, and why.
        timeout: Seconds it may take; none sets no limit.
        folder: Where it works.
    """

    def __init__(
        self,
        source: Path,
        copy: Path,
        parameters: dict[str, Any],
        notes: Path,
        variables: dict[str, str],
        unmet: dict[str, str] | None = None,
        timeout: int | None = None,
        folder: Path = ROOT,
    ) -> None:
        self.source, self.copy, self.timeout = source, copy, timeout
        self.began = time.monotonic()
        self._job = notes.resolve() / f"{source.stem}.json"
        paths = {"source": str(source.resolve()), "copy": str(copy.resolve())}
        write_text(self._job, json.dumps({**paths, "parameters": parameters, "unmet": unmet or {}}))
        variables = {NOTE_VARIABLE: str(self._job.with_suffix(".note")), **variables}
        command = [sys.executable, "-m", "sentigeo.report.execute", str(self._job)]
        with self._job.with_suffix(".log").open("w") as log:
            # It leads a session, and ends when this end of its standard input is gone.
            told: dict[str, Any] = {"stdin": subprocess.PIPE, "start_new_session": True}
            told |= {"env": os.environ | variables, "cwd": folder}
            self._process = subprocess.Popen(command, stdout=log, stderr=log, **told)

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return time.monotonic() - self.began

    def is_done(self) -> bool:
        """Tell whether the copy is complete; a notebook that failed or took too long is told."""
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
        """Kill it, its kernel and what that started, if they still run."""
        end_tree(self._process.pid)
        self._process.wait()


def run_notebook(process: Process, progress: RunProgress) -> None:
    """Wait for a notebook that runs alone, and show how far it is."""
    try:
        progress.start(process.source.stem)
        while not process.is_done():
            progress.show()
            time.sleep(POLL)
        progress.finish(process.source.stem, process.seconds)
    finally:
        process.end()


def main(job_file: str) -> int:
    """Execute a notebook as a job file says; what went wrong is written beside it."""
    Thread(target=_end_with_parent, daemon=True).start()
    path = Path(job_file)
    job = json.loads(path.read_text("utf-8"))
    try:
        execute(Path(job["source"]), Path(job["copy"]), job["parameters"], job["unmet"], path)
    except UserError as error:
        write_text(path.with_suffix(".error"), str(error))
        return 1
    return 0


def execute(
    source: Path, copy: Path, parameters: dict[str, Any], unmet: dict[str, str], job: Path
) -> None:
    """Execute a notebook in the current folder and write its executed copy; see `Process`.

    Beside the file `job` the number of the cell at work is written. An error that was foreseen is
    one sentence; before any other comes its traceback.
    """
    notebook = nbformat.read(source, as_version=4)
    notebook.cells = leave_out(notebook.cells, unmet)

    def tell(cell: Any, cell_index: int) -> None:
        job.with_suffix(".note").unlink(missing_ok=True)
        write_text(job.with_suffix(".cell"), f"{cell_index + 1} {len(notebook.cells) + 1}")

    try:
        papermill.execute_notebook(
            notebook, str(copy), parameters, **QUIETLY, kernel_name="python3", on_cell_start=tell
        )
    except PapermillExecutionError as error:
        raise UserError(_explain(source, error)) from None
    except DeadKernelError:
        raise UserError(f"{source.name}: the kernel died, perhaps out of memory.") from None
    tidy(copy)


def leave_out(cells: list[Any], unmet: dict[str, str]) -> list[Any]:
    """Put a sentence that says why in the place of cells whose tags name an unmet condition."""
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
    if error.ename == "UserError" or os.strerror(errno.ENOSPC) in error.evalue:
        return f"{source.name}: {error.evalue}"
    head = f"{source.name}, cell {error.cell_index + 1}: {error.ename}: {error.evalue}"
    return str(papermill.exceptions.strip_color("\n".join([*error.traceback, head])))


def tidy(copy: Path) -> None:
    """Drop from an executed copy what differs between equal runs: timings, random ids, paths."""
    notebook = nbformat.read(copy, as_version=4)
    notebook.metadata.pop("papermill", None)
    for cell in notebook.cells:
        cell.metadata.pop("papermill", None)
        if "injected-parameters" in cell.metadata.get("tags", []):
            cell.id = "injected-parameters"
    write_text(copy, nbformat.writes(notebook) + "\n")


def end_tree(pid: int) -> None:
    """Kill a process and all that it started; a kernel leads a session of its own."""
    try:
        process = psutil.Process(pid)
        tree = [*process.children(recursive=True), process]
    except psutil.NoSuchProcess:
        return
    for one in tree:
        with suppress(psutil.NoSuchProcess):
            one.kill()


def _end_with_parent() -> None:
    sys.stdin.read()  # until the process that began this one is gone
    end_tree(os.getpid())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
