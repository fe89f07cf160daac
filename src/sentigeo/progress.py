"""Progress: bars in a terminal and in JupyterLab, a few plain lines everywhere else."""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import Self, TextIO, TypeVar

from IPython import get_ipython
from tqdm import tqdm
from tqdm.auto import tqdm as auto_tqdm

from sentigeo.store import write_text

NOTE_VARIABLE = "SENTIGEO_NOTE"  # the file in which a notebook says how far its long work is

EVERY = 60.0  # seconds between plain lines

T = TypeVar("T")


def track(
    items: Sequence[T], name: str, weights: Sequence[int] | None = None, unit: str = "it"
) -> Iterator[T]:
    """Yield items and show how far they are, at what rate, and the time left.

    In a running report the notebook stays clean: it leaves a note, which the runner shows.
    Elsewhere a bar is drawn in a terminal or in JupyterLab, and without either a plain line is
    written now and then.

    Args:
        items: What to go through.
        name: What is being done.
        weights: How much work each item is; one unit each by default.
        unit: What the weights count.
    """
    weights = weights or [1] * len(items)
    note = os.environ.get(NOTE_VARIABLE)
    quiet = note is not None or not items or not (sys.stderr.isatty() or get_ipython())
    began, done = time.monotonic(), 0
    said = began
    with auto_tqdm(
        total=sum(weights), desc=name, unit=f" {unit}", unit_scale=True, disable=quiet
    ) as bar:
        for item, weight in zip(items, weights, strict=True):
            yield item
            bar.update(weight)
            done += weight
            now = time.monotonic()
            if note:
                write_text(Path(note), _describe(name, done, sum(weights), now - began, unit))
            elif quiet and now - said >= EVERY:
                text = _describe(name, done, sum(weights), now - began, unit)
                print(text, file=sys.stderr, flush=True)
                said = now


def _describe(name: str, done: int, total: int, seconds: float, unit: str) -> str:
    rate = max(done, 1) / max(seconds, 1e-9)
    speed = "" if unit == "it" else f", {rate:,.0f} {unit}/s"
    return f"{name} {done / max(total, 1):.0%}{speed}, {(total - done) / rate:.0f} s left"


class RunProgress:
    """Shows which notebook runs, which of its cells, and what is left.

    Args:
        notebooks: How many notebooks will run.
        note: The file in which the running notebook says how far it is.
        stream: Where to show it; bars if that is a terminal, else a line a notebook.
        every: Seconds between lines about a notebook that is still running.
    """

    def __init__(
        self, notebooks: int, note: Path, stream: TextIO = sys.stderr, every: float = EVERY
    ) -> None:
        self.notebooks = notebooks
        self.note = note
        self.stream = stream
        self.every = 1.0 if stream.isatty() else every
        self.done = 0
        self.name = ""
        self.bars = [
            tqdm(total=notebooks, unit="notebook", position=1, file=stream, desc="report"),
            tqdm(total=1, unit="cell", position=0, file=stream),
        ] if stream.isatty() else []  # fmt: skip
        self.closed = Event()
        self.ticking = Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Self:
        self.ticking.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        self.closed.set()
        self.ticking.join()
        for bar in self.bars:
            bar.close()

    def start(self, name: str, cells: int) -> None:
        """A notebook of so many cells begins."""
        self.name, self.cells, self.number = name, cells, 0
        self.began = time.monotonic()
        self.note.unlink(missing_ok=True)
        if self.bars:
            self.bars[1].reset(total=cells)
            self.bars[1].set_description(name)

    def cell(self, number: int) -> None:
        """Cell `number`, counted from 1, of the running notebook begins."""
        self.number = number
        self.note.unlink(missing_ok=True)
        if self.bars:
            self.bars[1].n = number - 1
            self.bars[1].refresh()

    def finish(self, seconds: float) -> None:
        """The running notebook is complete."""
        self.done += 1
        if self.bars:
            self.bars[1].n = self.cells
            self.bars[1].refresh()
            self.bars[0].update()
        else:
            self._line(f"[{self.done}/{self.notebooks}] {self.name} in {seconds:.1f} s")
        self.name = ""

    def _tick(self) -> None:
        """Show from time to time what the running notebook last said."""
        while not self.closed.wait(self.every):
            note = self.note.read_text("utf-8") if self.note.is_file() else ""
            if self.bars:
                self.bars[1].set_postfix_str(note)
            elif self.name:
                seconds = time.monotonic() - self.began
                where = f"{self.name}: cell {self.number} of {self.cells} after {seconds:.0f} s"
                self._line(f"{where} ({note})" if note else where)

    def _line(self, text: str) -> None:
        print(text, file=self.stream, flush=True)
