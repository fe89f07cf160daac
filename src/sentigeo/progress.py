"""Progress: bars in a terminal and in JupyterLab, a few plain lines everywhere else."""

import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
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
    written now and then. Weights say how much work each item is, and `unit` what they count.
    """
    weights = weights or [1] * len(items)
    note = os.environ.get(NOTE_VARIABLE)
    quiet = note is not None or not items or not (sys.stderr.isatty() or get_ipython())
    total, done, began = sum(weights), 0, time.monotonic()
    said = began
    with auto_tqdm(total=total, desc=name, unit=f" {unit}", unit_scale=True, disable=quiet) as bar:
        for item, weight in zip(items, weights, strict=True):
            yield item
            bar.update(weight)
            done, now = done + weight, time.monotonic()
            if note:
                write_text(Path(note), _describe(name, done, total, now - began, unit))
            elif quiet and now - said >= EVERY:
                said = now
                print(_describe(name, done, total, now - began, unit), file=sys.stderr, flush=True)


def _describe(name: str, done: int, total: int, seconds: float, unit: str) -> str:
    rate = max(done, 1) / max(seconds, 1e-9)
    speed = "" if unit == "it" else f", {rate:,.0f} {unit}/s"
    return f"{name} {done / max(total, 1):.0%}{speed}, {(total - done) / rate:.0f} s left"


@dataclass
class Running:
    """A notebook that runs: its bar, since when, and when a line was last written about it."""

    bar: Any
    began: float = field(default_factory=time.monotonic)
    said: float = field(default_factory=time.monotonic)


class RunProgress:
    """Shows which notebooks run, which of their cells, and what is left.

    In the folder of notes each running notebook says which cell it is at, in `<name>.cell`, and how
    far its long work is, in `<name>.note`. A terminal gets bars; any other stream one line per
    notebook, and one about each that is still running after so many seconds.
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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for bar in (*self.free, *(one.bar for one in self.running.values()), self.total):
            bar.close()

    def start(self, name: str) -> None:
        """A notebook begins."""
        bar = self.free.pop() if self.free else self._bar(unit="cell")
        bar.reset()
        bar.set_description(name)
        self.running[name] = Running(bar)

    def finish(self, name: str, seconds: float) -> None:
        """A running notebook is complete."""
        bar = self.running.pop(name).bar
        bar.n = bar.total
        bar.set_postfix_str("")
        self.free.append(bar)
        self._count(f"{name} in {seconds:.1f} s" if bar.disable else None)

    def reuse(self, name: str) -> None:
        """A notebook need not run: what it would make is in the cache."""
        self._count(f"{name} unchanged, from the cache")

    def _count(self, said: str | None) -> None:
        self.done += 1
        if said:
            self.line(f"[{self.done}/{self.total.total}] {said}")
        self.total.update()

    def show(self) -> None:
        """Show what the running notebooks last said: bars at once, lines from time to time."""
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
