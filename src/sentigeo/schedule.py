"""Notebooks at the same time: which of them need which, and how many threads each has."""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

import nbformat

from sentigeo.errors import UserError


@dataclass(frozen=True)
class Task:
    """A notebook to be run.

    Attributes:
        source: The notebook.
        needs: Names of the notebooks that it takes something from.
        minutes: What it takes, roughly; of those that are ready the longest begins.
        one_thread: Whether its libraries are held to one thread; it leaves the other cores alone,
            and its numbers do not depend on how many there are.
    """

    source: Path
    needs: tuple[str, ...]
    one_thread: bool
    minutes: float = 0.0

    @property
    def name(self) -> str:
        """The notebook's name, such as `01_reviews`."""
        return self.source.stem


def read_tasks(sources: Sequence[Path]) -> list[Task]:
    """Read what notebooks need from their metadata: `{"sentigeo": {"needs": [], "threads": 1}}`.

    How many `minutes` it takes may be there too. A notebook that says nothing needs all before it,
    and as many threads as there are cores. What is left out of a run is needed by none.
    """
    tasks: list[Task] = []
    for source in sources:
        said = nbformat.read(source, as_version=4).metadata.get("sentigeo", {})
        before = [task.name for task in tasks]
        needs = said.get("needs", before)
        for name in needs:
            if name >= source.stem:
                raise UserError(f"{source.name} needs '{name}', which does not come before it.")
        kept = tuple(name for name in needs if name in before)
        tasks.append(Task(source, kept, said.get("threads") == 1, said.get("minutes", 0.0)))
    return tasks


def run_tasks(
    tasks: Sequence[Task], run: Callable[[Task], None], at_once: int, stop: Callable[[], None]
) -> None:
    """Run tasks, several at the same time where they do not need each other.

    Args:
        tasks: Of those that take equally long the first begins.
        run: Runs one of them, in a thread.
        at_once: How many may run at the same time.
        stop: Makes running tasks fail soon; called when one failed, or after Ctrl-C.
    """
    waiting, done = list(tasks), set[str]()
    running: dict[Future[None], Task] = {}
    with ThreadPoolExecutor(at_once) as threads:
        try:
            while waiting or running:
                ready = [task for task in waiting if done.issuperset(task.needs)]
                ready.sort(key=lambda task: -task.minutes)
                for task in ready[: at_once - len(running)]:
                    waiting.remove(task)
                    running[threads.submit(run, task)] = task
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    done.add(running.pop(future).name)
                    future.result()
        except BaseException:
            left = set(running)
            while left:
                stop()  # more than once: a kernel may just have been about to start
                left = wait(left, timeout=0.2).not_done
            raise
