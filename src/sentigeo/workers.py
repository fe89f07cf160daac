"""Processes that work side by side, each on an object of its own, and end with their parent."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context, parent_process
from threading import Thread
from typing import Any

from sentigeo.errors import UserError

_held: Any = None  # what a worker works on


@contextmanager
def start_workers(
    count: int, make: Callable[[], Any] | None = None
) -> Iterator[ProcessPoolExecutor]:
    """Start processes; they end at once if something fails here, or if this process is killed.

    Args:
        count: How many.
        make: Makes what each of them works on, for tasks of `ask`.

    Raises:
        UserError: One of them was killed.
    """
    others = set(active_children())
    pool = ProcessPoolExecutor(count, get_context("spawn"), _begin, (make,))
    try:
        yield pool
    except BaseException as error:
        for worker in set(active_children()) - others:
            worker.terminate()
        if isinstance(error, BrokenProcessPool):
            raise UserError("A process at work was killed, perhaps out of memory.") from None
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def ask(method: str, *arguments: Any) -> Any:
    """In a worker: call a method of what it works on."""
    return getattr(_held, method)(*arguments)


def _begin(make: Callable[[], Any] | None) -> None:
    global _held
    Thread(target=_end_with_parent, daemon=True).start()
    _held = make and make()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()  # returns when it is gone, whatever ended it
        os._exit(1)
