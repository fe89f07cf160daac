"""Progress: bars in a terminal and in JupyterLab, a few plain lines everywhere else."""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, RLock, Thread
from types import TracebackType
from typing import Any, Self, TextIO, TypeVar

from IPython import get_ipython
from tqdm import tqdm
from tqdm.auto import tqdm as auto_tqdm

from sentigeo.files import write_text

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


@dataclass
class Running:
    """A notebook that runs: how many cells it has, which one it is at, and since when."""

    cells: int
    number: int = 0
    began: float = field(default_factory=time.monotonic)
    bar: Any = None


class RunProgress:
    """Shows which notebooks run, which of their cells, and what is left.

    Args:
        notebooks: How many notebooks will run.
        notes: Folder in which each running notebook says how far it is, in a file of its name.
        stream: Where to show it; bars if that is a terminal, else a line a notebook.
        every: Seconds between lines about a notebook that is still running.
    """

    def __init__(
        self, notebooks: int, notes: Path, stream: TextIO = sys.stderr, every: float = EVERY
    ) -> None:
        self.notebooks, self.notes, self.stream = notebooks, notes, stream
        self.every = 1.0 if stream.isatty() else every
        self.done = 0
        self.running: dict[str, Running] = {}
        self.total: Any = None
        if stream.isatty():
            self.total = tqdm(total=notebooks, unit="notebook", file=stream, desc="report")
        self.free: list[Any] = []  # bars of notebooks that are complete
        self.lock = RLock()  # several notebooks run at the same time
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
        for bar in [*self.free, *(own.bar for own in self.running.values()), self.total]:
            if bar is not None:
                bar.close()

    def start(self, name: str, cells: int) -> None:
        """A notebook of so many cells begins."""
        with self.lock:
            own = self.running[name] = Running(cells)
            if self.total is not None:
                own.bar = self.free.pop() if self.free else tqdm(unit="cell", file=self.stream)
                own.bar.reset(total=cells)
                own.bar.set_description(name)

    def cell(self, name: str, number: int) -> None:
        """Cell `number`, counted from 1, of a running notebook begins."""
        with self.lock:
            own = self.running[name]
            own.number = number
            (self.notes / name).unlink(missing_ok=True)
            if own.bar is not None:
                own.bar.n = number - 1
                own.bar.refresh()

    def finish(self, name: str, seconds: float) -> None:
        """A running notebook is complete."""
        with self.lock:
            own = self.running.pop(name)
            self.done += 1
            if own.bar is None:
                self._line(f"[{self.done}/{self.notebooks}] {name} in {seconds:.1f} s")
                return
            own.bar.n = own.cells
            own.bar.refresh()
            self.free.append(own.bar)
            self.total.update()

    def reuse(self, name: str) -> None:
        """A notebook need not run: what it would make is in the cache."""
        with self.lock:
            self.done += 1
            self._line(f"[{self.done}/{self.notebooks}] {name} unchanged, from the cache")
            if self.total is not None:
                self.total.update()

    def _tick(self) -> None:
        """Show from time to time what the running notebooks last said."""
        while not self.closed.wait(self.every):
            with self.lock:
                for name, own in self.running.items():
                    self._show(name, own)

    def _show(self, name: str, own: Running) -> None:
        file = self.notes / name
        note = file.read_text("utf-8") if file.is_file() else ""
        if own.bar is not None:
            own.bar.set_postfix_str(note)
        else:
            seconds = time.monotonic() - own.began
            where = f"{name}: cell {own.number} of {own.cells} after {seconds:.0f} s"
            self._line(f"{where} ({note})" if note else where)

    def _line(self, text: str) -> None:
        if self.total is None:
            print(text, file=self.stream, flush=True)
        else:
            self.total.write(text, file=self.stream)
