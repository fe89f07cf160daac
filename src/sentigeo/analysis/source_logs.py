"""What the training logs of a source imply: how many texts, which values cannot be, how sure."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pandas as pd
import yaml
from scipy.stats import fisher_exact

from sentigeo.paths import DATA

SOURCES_FILE = DATA / "sources.yaml"
LAST_DIGIT = 1e-4  # of the accuracies that were printed


@dataclass(frozen=True)
class SourceLog:
    """What one run of the source printed: steps per epoch, and (epochs,) values of each kind."""

    steps: int
    validation: dict[str, int]  # texts of each class
    recall: dict[str, float]  # of each class, after the last epoch
    loss: list[float]
    accuracy: list[float]
    val_loss: list[float]
    val_accuracy: list[float]

    @property
    def validated(self) -> int:
        """Number of validation texts."""
        return sum(self.validation.values())

    def hits(self, epoch: int) -> int:
        """Return how many validation texts were right after an epoch, rounded down."""
        return math.floor(self.val_accuracy[epoch] * self.validated + 0.01)

    @property
    def best(self) -> int:
        """The epoch with the highest validation accuracy among those that are possible."""
        possible = [rate if is_share(rate, self.validated) else -1.0 for rate in self.val_accuracy]
        return possible.index(max(possible))


def load_sources() -> tuple[pd.DataFrame, dict[str, SourceLog], dict[str, Any]]:
    """Return the documents as a table, the logs by condition, and what else is computed with."""
    held = yaml.safe_load(SOURCES_FILE.read_text("utf-8"))
    logs = {name: SourceLog(**log) for name, log in held.pop("logs").items()}
    return pd.DataFrame(held.pop("documents")), logs, held


def is_share(rate: float, n: int) -> bool:
    """Tell whether a printed rate can be a number of hits among n texts (the GRIM test)."""
    return abs(round(rate * n) / n - rate) <= LAST_DIGIT / 2 + 1e-9


def implied_sizes(rates: list[float], most: int) -> list[int]:
    """Return every n up to a limit for which all the printed rates can be hits among n texts."""
    return [n for n in range(1, most + 1) if all(is_share(rate, n) for rate in rates)]


def batch_sizes(texts: int, steps: int) -> list[int]:
    """Return the batch sizes that cut texts into that many steps, the last one full or not."""
    sizes = range(1, texts + 1)
    return [size for size in sizes if steps in (texts // size, math.ceil(texts / size))]


def compare_epochs(logs: dict[str, SourceLog]) -> pd.DataFrame:
    """Compare the two runs by Fisher's exact test, at their last and at their best epochs."""
    rows = []
    for epoch in ("last", "best"):
        hits = {name: log.hits(log.best if epoch == "best" else -1) for name, log in logs.items()}
        table = [[hits[name], log.validated - hits[name]] for name, log in logs.items()]
        told = {name: f"{hits[name]} of {log.validated}" for name, log in logs.items()}
        rows.append({"epoch": epoch, **told, "p": float(fisher_exact(table).pvalue)})
    return pd.DataFrame(rows)


def refusal_of(function: Callable[[Any], Any], argument: Any) -> str:
    """Return what a function says against its argument; nothing if it takes it."""
    try:
        function(argument)
    except (IndexError, RuntimeError, TypeError, ValueError) as error:
        return str(error)
    return ""
