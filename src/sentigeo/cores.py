"""Long work: its processes and threads on this machine, and its progress."""

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any, TypeVar

import psutil
from IPython import get_ipython
from joblib import Parallel, cpu_count, delayed, parallel_config
from joblib.externals.loky.process_executor import TerminatedWorkerError
from threadpoolctl import threadpool_limits
from tqdm.auto import tqdm

from sentigeo.errors import UserError
from sentigeo.paths import write_text

MOST_PROCESSES = 4  # at the same time; each may need a gigabyte or two
# Where libraries read their number of threads.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS",
    "LOKY_MAX_CPU_COUNT",
)  # fmt: skip
RESTARTED = "A worker stopped while some jobs were given to the"  # how a warning of joblib begins
NOTE_VARIABLE = "SENTIGEO_NOTE"  # the file in which a notebook says how far its long work is
EVERY = 60.0  # seconds between plain lines
T = TypeVar("T")


def count_processes() -> int:
    """Return how many processes may work at the same time."""
    return min(MOST_PROCESSES, int(cpu_count()))


def run_in_processes(
    function: Callable[..., Any],
    jobs: Sequence[tuple[Any, ...]],
    name: str,
    weights: Sequence[int] | None = None,
) -> Iterator[Any]:
    """Call a function with the arguments of each job, one thread each; results come in order.

    Each job has one thread, whatever the number of jobs left, so that a resumed run ends with the
    same numbers. Where there is one core only, nothing but this process works. The function stands
    at the top of a module, so that other processes can import it; `name` says what is done, and
    weights how much work each job is, for the progress display.
    """
    if count_processes() == 1:
        with threadpool_limits(1):
            yield from (function(*job) for job in track(jobs, name, weights))
        return
    # A process that holds on to much memory is replaced between two jobs, and nothing is lost.
    warnings.filterwarnings("ignore", RESTARTED, UserWarning)
    calls = (delayed(function)(*job) for job in jobs)
    ends = {"initializer": _end_with, "initargs": (os.getpid(),)}
    with parallel_config("loky", n_jobs=count_processes(), inner_max_num_threads=1, **ends):
        results = iter(Parallel(return_as="generator", batch_size=1)(calls))
    try:
        for _ in track(jobs, name, weights):
            yield next(results)
        next(results, None)  # so that joblib knows that nothing was left
    except TerminatedWorkerError:
        raise UserError("A worker process was killed: perhaps memory ran out.") from None


def _end_with(parent: int) -> None:
    """End this process when its parent is gone; one that waits for work would stay for minutes."""

    def watch() -> None:
        with suppress(psutil.NoSuchProcess):
            psutil.Process(parent).wait()
        os._exit(1)

    Thread(target=watch, daemon=True).start()


def run_in_threads(
    function: Callable[..., Any], jobs: Iterable[Any], threads: int
) -> Iterator[Any]:
    """Call a function with each job in several threads of this process; results come in order."""
    calls = (delayed(function)(job) for job in jobs)
    return iter(Parallel(threads, backend="threading", return_as="generator", batch_size=1)(calls))


def track(
    items: Sequence[T], name: str, weights: Sequence[int] | None = None, unit: str = "it"
) -> Iterator[T]:
    """Yield items and show the progress, the rate and the time left.

    In a running report the notebook stays clean: it leaves a note, which the runner shows.
    Elsewhere a bar is drawn in a terminal or in JupyterLab, and without either a plain line is
    written now and then. Weights say how much work each item is, and `unit` what they count.
    """
    weights = weights or [1] * len(items)
    note = os.environ.get(NOTE_VARIABLE)
    quiet = note is not None or not items or not (sys.stderr.isatty() or get_ipython())
    total, done, began = sum(weights), 0, time.monotonic()
    said = began
    with tqdm(total=total, desc=name, unit=f" {unit}", unit_scale=True, disable=quiet) as bar:
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
