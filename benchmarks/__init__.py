"""How fast this is, against what a user would pick instead; needs the development packages."""

import statistics
import time
from collections.abc import Callable
from typing import Any

from sentigeo.cores import track

REPEATS = 3


def take_turns(contestants: dict[str, Callable[[], Any]], name: str) -> dict[str, float]:
    """Run every contestant in turn, several times; return the median seconds of each."""
    seconds: dict[str, list[float]] = {contestant: [] for contestant in contestants}
    turns = [contestant for _ in range(REPEATS) for contestant in contestants]
    for contestant in track(turns, name):
        began = time.perf_counter()
        contestants[contestant]()
        seconds[contestant].append(time.perf_counter() - began)
    return {contestant: statistics.median(values) for contestant, values in seconds.items()}
