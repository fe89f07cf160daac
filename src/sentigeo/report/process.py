"""A notebook that is executed in a process of its own."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from sentigeo.errors import UserError
from sentigeo.files import write_text
from sentigeo.paths import ROOT
from sentigeo.progress import NOTE_VARIABLE, RunProgress
from sentigeo.report.execute import end_tree

PROGRAM = "sentigeo.report.execute"
POLL = 0.1  # seconds between looks at what runs


class Process:
    """A notebook that is executed in a process of its own, which leads a session.

    Args:
        source: The notebook.
        copy: Where its executed copy goes.
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
        with self._job.with_suffix(".log").open("w") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", PROGRAM, str(self._job)],
                stdin=subprocess.PIPE,  # it ends when this end of the pipe is gone
                stdout=log,
                stderr=log,
                env=os.environ | variables,
                cwd=folder,
                start_new_session=True,
            )

    @property
    def seconds(self) -> float:
        """How long it has been running."""
        return time.monotonic() - self.began

    def is_done(self) -> bool:
        """Tell whether the copy is complete.

        Raises:
            UserError: The notebook failed or took too long.
        """
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
