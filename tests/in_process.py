"""Notebooks executed where the tests run: no process and no kernel, but the same cells in order."""

import time

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_output
from threadpoolctl import threadpool_limits

from sentigeo.errors import UserError
from sentigeo.report.execute import leave_out


class InProcess:
    """Stands in for `Process`, which is tested by itself: executes a notebook when asked for it."""

    def __init__(self, source, copy, parameters, notes, variables, unmet, timeout, folder):
        self.source, self.copy, self.seconds = source, copy, 0.0
        self.notebook = nbformat.read(source, as_version=4)
        self.notebook.cells = leave_out(self.notebook.cells, unmet)
        given = "\n".join(f"{name} = {value!r}" for name, value in parameters.items())
        tags = [cell.metadata.get("tags", []) for cell in self.notebook.cells]
        place = next(n for n, own in enumerate(tags) if "parameters" in own) + 1
        self.notebook.cells.insert(place, new_code_cell(given, id="injected-parameters"))
        self.variables, self.folder = variables, folder

    def start(self):
        pass

    def poll(self):
        began = time.monotonic()
        with pytest.MonkeyPatch.context() as patch, threadpool_limits(1):  # of small arrays
            patch.chdir(self.folder)
            for name, value in self.variables.items():
                patch.setenv(name, value)
            try:
                self._execute(patch)
            except Exception as error:
                if isinstance(error, UserError):
                    raise UserError(f"{self.source.name}: {error}") from None
                said = f"{type(error).__name__}: {error}"
                raise UserError(f"{self.source.name}: {said}") from error
            finally:
                nbformat.write(self.notebook, self.copy)
        self.seconds = time.monotonic() - began
        return True

    def _execute(self, patch):
        names = {"__name__": "__main__"}
        for number, cell in enumerate(self.notebook.cells, 1):
            if cell.cell_type == "code":
                cell.execution_count = number
                patch.setattr("sentigeo.report.page.display", _Display(cell.outputs))
                exec(compile(cell.source, f"{self.source.name}, cell {number}", "exec"), names)

    def end(self):
        pass


class _Display:
    """Puts what is shown into the outputs of a cell."""

    def __init__(self, outputs):
        self.outputs = outputs

    def __call__(self, value, metadata=None, raw=False):
        data = value if raw else {"text/markdown": value.data}
        self.outputs.append(new_output("display_data", data, metadata=metadata or {}))
