"""Progress of a run: bars in a terminal, a few plain lines everywhere else."""

import sys
import time
from types import TracebackType
from typing import Self, TextIO

from tqdm import tqdm


class RunProgress:
    """Shows which notebook runs, which of its cells, and what is left.

    Args:
        notebooks: How many notebooks will run.
        stream: Where to show it; bars if that is a terminal, else a line a notebook.
        every: Seconds between lines about a notebook that is still running.
    """

    def __init__(self, notebooks: int, stream: TextIO = sys.stderr, every: float = 60.0) -> None:
        self.notebooks = notebooks
        self.stream = stream
        self.every = every
        self.done = 0
        self.bars = [
            tqdm(total=notebooks, unit="notebook", position=1, file=stream, desc="report"),
            tqdm(total=1, unit="cell", position=0, file=stream),
        ] if stream.isatty() else []  # fmt: skip

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        for bar in self.bars:
            bar.close()

    def start(self, name: str, cells: int) -> None:
        """A notebook of so many cells begins."""
        self.name, self.cells, self.began, self.said = name, cells, time.monotonic(), 0.0
        if self.bars:
            self.bars[1].reset(total=cells)
            self.bars[1].set_description(name)

    def cell(self, number: int) -> None:
        """Cell `number`, counted from 1, of the running notebook begins."""
        seconds = time.monotonic() - self.began
        if self.bars:
            self.bars[1].n = number - 1
            self.bars[1].refresh()
        elif seconds - self.said >= self.every:
            self.said = seconds
            self._line(f"{self.name}: cell {number} of {self.cells} after {seconds:.0f} s")

    def finish(self, seconds: float) -> None:
        """The running notebook is complete."""
        self.done += 1
        if self.bars:
            self.bars[1].n = self.cells
            self.bars[1].refresh()
            self.bars[0].update()
        else:
            self._line(f"[{self.done}/{self.notebooks}] {self.name} in {seconds:.1f} s")

    def _line(self, text: str) -> None:
        print(text, file=self.stream, flush=True)
