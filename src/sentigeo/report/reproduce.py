"""Run the report again from an empty cache, and compare what it finds with what stands written."""

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sentigeo.errors import UserError
from sentigeo.paths import CACHE_VARIABLE, ROOT, RunPaths, run_paths
from sentigeo.profile import Profile
from sentigeo.report.fingerprint import Conditions
from sentigeo.report.plan import plan_chapters
from sentigeo.report.publish import lock_run, stage_report

# On a machine with as many cores as the first, numbers come out the same. Another processor rounds
# otherwise, and training makes more of it. So a number may move by half the width of its interval,
# which is what other reviews could have moved it by; and by this much in any case, because an
# interval over reviews knows nothing of a training that went otherwise. The rest must be equal.
LEAST_TOLERANCE = 0.02
# What a run rests on; results of other settings, texts or weights cannot be compared.
BASIS = ("profile", "settings", "encoder", "data", "skipped")
RENAMED = {"head+tail": "first+last"}  # values of `truncation` in older results
Results = dict[str, Any]


@dataclass(frozen=True)
class Difference:
    """Something that is not as it was.

    Attributes:
        what: A metric, a claim, or another part of the results.
        before: As it stands written.
        after: As it is now.
        tolerance: How far a number may move; nothing else may.
    """

    what: str
    before: Any
    after: Any
    tolerance: float | None = None

    @property
    def outside(self) -> bool:
        """Whether this is more than may be."""
        return self.tolerance is None or abs(self.after - self.before) > self.tolerance

    def __str__(self) -> str:
        if self.tolerance is None:
            return f"{self.what}: {self.before} before, {self.after} now"
        return (
            f"{self.what}: {self.before:.4f} before, {self.after:.4f} now, "
            f"{self.after - self.before:+.4f} (allowed {self.tolerance:.4f})"
        )


def run_again(
    profile: Profile,
    check: Callable[[Profile], Conditions],
    root: Path = ROOT,
    keep: bool = False,
) -> tuple[Results, Results]:
    """Run the report from nothing, away from everything published, in `build/reproduce/<run>/`.

    Args:
        profile: What the run is.
        check: Finds out what does not fit it; called once the cache is an empty one.
        root: The repository.
        keep: Whether the cache is kept, in `cache/` there, so that a report can be made from it.

    Returns:
        The results that stand written, and those of the new run.
    """
    path = run_paths(profile.run_name, root).reports / "results.json"
    if not path.is_file():
        raise UserError("There is no report to compare with: run 'make report' with it first.")
    written = json.loads(path.read_text("utf-8"))
    if _basis(written)["settings"] != _basis({"settings": profile.settings})["settings"]:
        raise UserError("The last report had other settings: run 'make report' first.")
    paths = _paths_apart(profile, root)
    with lock_run(paths):
        shutil.rmtree(paths.cache, ignore_errors=True)
        os.environ[CACHE_VARIABLE] = str(paths.cache)  # for the notebooks too
        conditions = check(profile)
        tasks = plan_chapters(profile, root, conditions)
        stage_report(tasks, profile, paths, root, conditions, fresh=True)
        if not keep:
            shutil.rmtree(paths.cache)  # gigabytes; the executed notebooks stay
    fresh = paths.stage / "reports" / "results.json"
    return written, json.loads(fresh.read_text("utf-8"))


def _basis(results: Results) -> Results:
    """Return what results rest on, in today's words."""
    found = {what: results.get(what) for what in BASIS}
    settings = dict(found["settings"] or {})
    if settings.get("truncation") in RENAMED:
        found["settings"] = settings | {"truncation": RENAMED[settings["truncation"]]}
    return found


def compare_results(written: Results, fresh: Results) -> list[Difference]:
    """List what differs between two results, however little, in the order of the first."""
    before, now = _basis(written), _basis(fresh)
    found = [
        Difference(what, before[what], now[what]) for what in BASIS if before[what] != now[what]
    ]
    found += _compare_metrics(written["metrics"], fresh["metrics"])
    verdicts = [{c["id"]: c["verdict"] for c in own["claims"]} for own in (written, fresh)]
    names = dict.fromkeys([*verdicts[0], *verdicts[1]])
    return found + [
        Difference(f"verdict on {name}", verdicts[0].get(name), verdicts[1].get(name))
        for name in names
        if verdicts[0].get(name) != verdicts[1].get(name)
    ]


def _compare_metrics(written: Results, fresh: Results) -> list[Difference]:
    """List the metrics that came, went, or are not the same."""
    found = []
    for name in dict.fromkeys([*written, *fresh]):
        before, after = written.get(name), fresh.get(name)
        if before is None or after is None:
            found.append(Difference(name, before and before["value"], after and after["value"]))
            continue
        found += [
            Difference(f"{name}, {part}", before[part], after[part])
            for part in ("n", "unit")
            if before[part] != after[part]
        ]
        for part in ("value", "low", "high"):
            pair = before[part], after[part]
            if pair[0] != pair[1]:
                tolerance = None if None in pair else tolerate(before)
                found.append(Difference(f"{name}, {part}", *pair, tolerance))
    return found


def tolerate(metric: dict[str, Any]) -> float:
    """Return how far a metric, and each end of its interval, may move."""
    width = 0.0 if metric["low"] is None else metric["high"] - metric["low"]
    return max(LEAST_TOLERANCE, float(width) / 2)


def describe(found: list[Difference]) -> str:
    """Say what differs, what is outside its tolerance first."""
    if not found:
        return "Reproduced: every metric and verdict is the same."
    outside = [one for one in found if one.outside]
    lines = [f"OUTSIDE  {one}" for one in outside]
    lines += [f"within   {one}" for one in found if not one.outside]
    if outside:
        lines.append(f"Not reproduced: {len(outside)} of {len(found)} differences are too large.")
    else:
        lines.append(f"Reproduced: {len(found)} differences, all within their tolerance.")
    return "\n".join(lines)


def _paths_apart(profile: Profile, root: Path) -> RunPaths:
    """Return the folders of a run that shares nothing with any other."""
    paths = run_paths(profile.run_name, root)
    apart = paths.build / "reproduce" / paths.name
    return replace(paths, output=apart, build=apart, cache=apart / "cache")
