"""Run the report again from an empty cache, and compare what it finds with what stands written."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sentigeo.errors import UserError
from sentigeo.paths import CACHE_VARIABLE, ROOT, run_paths
from sentigeo.profile import Profile
from sentigeo.report.fingerprint import Conditions
from sentigeo.report.publish import lock_run, stage_report
from sentigeo.report.runner import Run

# Another processor rounds otherwise, and training makes more of it. So a number may move by half
# the width of its interval, as far as other reviews could have moved it, and by this much in any
# case, because an interval over reviews knows nothing of a training that went otherwise.
LEAST_TOLERANCE = 0.02
# What a run rests on; results of other settings, texts or weights cannot be compared.
BASIS = ("profile", "settings", "encoder", "data", "skipped")
Results = dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """Something that is not as it was: a metric, a claim, or another part of the results."""

    what: str
    before: Any
    after: Any
    tolerance: float | None = None  # how far a number may move; nothing else may

    @property
    def outside(self) -> bool:
        """Whether this is more than may be."""
        return self.tolerance is None or abs(self.after - self.before) > self.tolerance

    def __str__(self) -> str:
        if self.tolerance is None:
            return f"{self.what}: {self.before} before, {self.after} now"
        moved = f"{self.after - self.before:+.4f} (allowed {self.tolerance:.4f})"
        return f"{self.what}: {self.before:.4f} before, {self.after:.4f} now, {moved}"


def run_again(
    profile: Profile, check: Callable[[Profile], Conditions], root: Path = ROOT, keep: bool = False
) -> tuple[Results, Results]:
    """Return the results that stand written, and those of a run from an empty cache.

    It works away from everything published, in `build/reproduce/<run>/`, whose cache is kept if a
    report should be made from it. What does not fit the run is checked once the cache is empty.
    """
    paths = run_paths(profile.run_name, root)
    path = paths.reports / "results.json"
    if not path.is_file():
        raise UserError("There is no report to compare with: run 'make report' first.")
    written = json.loads(path.read_text("utf-8"))
    if written["settings"] != profile.settings:
        raise UserError("The last report had other settings: run 'make report' first.")
    apart = paths.build / "reproduce" / paths.name
    paths = replace(paths, output=apart, build=apart, cache=apart / "cache")
    with lock_run(paths):
        shutil.rmtree(paths.cache, ignore_errors=True)
        os.environ[CACHE_VARIABLE] = str(paths.cache)  # for the notebooks too
        run = Run(profile, paths, paths.stage, root, check(profile))
        fresh = stage_report(run, fresh=True)
        if not keep:
            shutil.rmtree(paths.cache)  # gigabytes; the executed notebooks stay
    return written, fresh


def compare_results(written: Results, fresh: Results) -> list[Difference]:
    """List what differs between two results, however little, in the order of the first."""
    parts = [Difference(what, written.get(what), fresh.get(what)) for what in BASIS]
    found = [part for part in parts if part.before != part.after]
    found += _compare_metrics(written["metrics"], fresh["metrics"])
    old, new = (
        {claim["id"]: claim["verdict"] for claim in one["claims"]} for one in (written, fresh)
    )
    return found + [
        Difference(f"verdict on {name}", old.get(name), new.get(name))
        for name in dict.fromkeys([*old, *new])
        if old.get(name) != new.get(name)
    ]


def _compare_metrics(written: Results, fresh: Results) -> Iterator[Difference]:
    """Yield the metrics that came, went, or are not the same."""
    for name in dict.fromkeys([*written, *fresh]):
        before, after = written.get(name), fresh.get(name)
        if before is None or after is None:
            yield Difference(name, before and before["value"], after and after["value"])
            continue
        width = 0.0 if before["low"] is None else before["high"] - before["low"]
        tolerance = max(LEAST_TOLERANCE, float(width) / 2)
        for part in ("n", "unit", "value", "low", "high"):
            pair = before[part], after[part]
            exact = part in ("n", "unit") or None in pair
            if pair[0] != pair[1]:
                yield Difference(f"{name}, {part}", *pair, None if exact else tolerance)


def describe(found: list[Difference]) -> str:
    """Say what differs, what is outside its tolerance first."""
    if not found:
        return "Reproduced: every metric and verdict is the same."
    lines = [f"OUTSIDE  {one}" for one in found if one.outside]
    said = f"Reproduced: {len(found)} differences, all within their tolerance."
    if lines:
        said = f"Not reproduced: {len(lines)} of {len(found)} differences are too large."
    return "\n".join([*lines, *(f"within   {one}" for one in found if not one.outside), said])
