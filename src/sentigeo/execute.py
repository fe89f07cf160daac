"""Execute one notebook with papermill, and say in a sentence what went wrong if something did."""

import errno
import os
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("JUPYTER_PREFER_ENV_PATH", "1")  # this environment's kernel, not the user's

import nbformat
import papermill
from jupyter_client.manager import AsyncKernelManager
from nbclient.exceptions import CellTimeoutError, DeadKernelError
from papermill.exceptions import PapermillExecutionError

from sentigeo.errors import UserError
from sentigeo.progress import RunProgress
from sentigeo.store import write_text


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
