"""One notebook in a process of its own: `python -m sentigeo.report.execute JOB.json`."""

import errno
import json
import os
import sys
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

os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")  # this environment's kernel, not the user's


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
    """Execute a notebook in the current folder and write its executed copy.

    Args:
        source: The notebook.
        copy: Where its executed copy goes.
        parameters: Values for its parameters cell.
        unmet: Conditions that do not hold, and why; cells that carry one as a tag are left out.
        job: A file; beside it the number of the cell at work is written.

    Raises:
        UserError: It failed; one sentence if that was foreseen, else the traceback comes first.
    """
    notebook = nbformat.read(source, as_version=4)
    notebook.cells = leave_out(notebook.cells, unmet)

    def tell(cell: Any, cell_index: int) -> None:
        job.with_suffix(".note").unlink(missing_ok=True)
        write_text(job.with_suffix(".cell"), f"{cell_index + 1} {len(notebook.cells) + 1}")

    try:
        papermill.execute_notebook(
            notebook,
            str(copy),
            parameters,
            kernel_name="python3",
            progress_bar=False,
            record_timing=False,
            extra_arguments=["--log-level=CRITICAL"],
            on_cell_start=tell,
        )
    except PapermillExecutionError as error:
        raise UserError(_explain(source, error)) from None
    except DeadKernelError:
        raise UserError(f"{source.name}: the kernel died, perhaps out of memory.") from None
    tidy(copy)


def leave_out(cells: list[Any], unmet: dict[str, str]) -> list[Any]:
    """Return cells without those whose tags name a condition that does not hold.

    In the place of each run of such cells stands a sentence that says why.
    """
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
    """Name notebook, cell and error; show the traceback unless the error speaks for itself."""
    if error.ename == "UserError" or os.strerror(errno.ENOSPC) in error.evalue:
        return f"{source.name}: {error.evalue}"
    head = f"{source.name}, cell {error.cell_index + 1}: {error.ename}: {error.evalue}"
    trace = papermill.exceptions.strip_color("\n".join(error.traceback))
    return f"{trace}\n{head}"


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
        try:
            one.kill()
        except psutil.NoSuchProcess:
            continue


def _end_with_parent() -> None:
    """Wait until the process that began this one is gone, then end with all that was started."""
    sys.stdin.read()
    end_tree(os.getpid())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
