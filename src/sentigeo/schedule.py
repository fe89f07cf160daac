"""Notebooks at the same time: which of them need which, and how many cores each has."""

from collections.abc import Callable, Collection, Sequence
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
        alone: Whether it uses all cores, so that nothing else runs beside it; others use one.
    """

    source: Path
    needs: tuple[str, ...]
    alone: bool

    @property
    def name(self) -> str:
        """The notebook's name, such as `01_reviews`."""
        return self.source.stem


def read_tasks(sources: Sequence[Path]) -> list[Task]:
    """Read what notebooks need from their metadata, as `{"sentigeo": {"needs": [], "cores": 1}}`.

    A notebook that says nothing needs all before it, and all cores. What is left out of a run is
    needed by none.
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
        tasks.append(Task(source, kept, alone=said.get("cores") != 1))
    return tasks


def run_tasks(
    tasks: Sequence[Task], run: Callable[[Task], None], cores: int, stop: Callable[[], None]
) -> None:
    """Run tasks, those at the same time that neither need each other nor lack a core.

    Args:
        tasks: In the order in which they begin if nothing keeps them.
        run: Runs one of them, in a thread.
        cores: How many tasks may run at once.
        stop: Makes running tasks fail soon; called when one failed, or after Ctrl-C.
    """
    waiting, done = list(tasks), set[str]()
    running: dict[Future[None], Task] = {}
    with ThreadPoolExecutor(cores) as threads:
        try:
            while waiting or running:
                while task := _next(waiting, running.values(), done, cores):
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


def _next(
    waiting: Sequence[Task], running: Collection[Task], done: set[str], cores: int
) -> Task | None:
    """Return the first task that can begin now."""
    if len(running) >= cores or any(task.alone for task in running):
        return None
    for task in waiting:
        if done.issuperset(task.needs) and not (task.alone and running):
            return task
    return None
