"""Run the numbered notebooks and publish all that they made or nothing; or compare results."""

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from sentigeo.errors import UserError
from sentigeo.ledger.claims import find_claims, merge_parts
from sentigeo.paths import CACHE_VARIABLE, ROOT, RunPaths, run_paths, write_text
from sentigeo.profile import Profile
from sentigeo.report.fingerprint import Conditions, describe_code
from sentigeo.report.headline import fill_readme
from sentigeo.report.notebook import list_versions
from sentigeo.report.runner import ChapterTask, ReportRun, find_name, needed_by, run_chapters
from sentigeo.report.site import build_site

SCHEMA = ROOT / "reports" / "results.schema.json"
COMPLETE = "complete.json"  # lists the files of a stage that is ready to be published
OURS = (  # files that a new report replaces or removes
    "figures/[0-8][0-9]_*.png",
    "figures/[0-8][0-9]_*.html",
    "reports/[0-8][0-9]_*.ipynb",
    "reports/site/**/*",
)
# Another processor rounds otherwise, and training makes more of it. So a number may move by a
# quarter of its interval's width, which is half of what other reviews could have moved it, and by
# the least tolerance of its unit where it has no interval or hardly any.
SHARE_OF_WIDTH = 0.25
LEAST_TOLERANCE = 0.002  # four of 2,000 reviews
LEAST_TOLERANCES = {"count": 0.0, "p-value": 0.01}  # of units for which it is another
# What a run rests on; results with other settings, texts or weights cannot be compared.
BASIS = ("profile", "settings", "encoder", "data", "skipped")
Results = dict[str, Any]


def run_report(
    profile: Profile, root: Path = ROOT, conditions: Conditions | None = None, fresh: bool = False
) -> RunPaths:
    """Execute the numbered notebooks, then put figures, copies, results and site in place.

    Everything is written to a stage first. A run that fails or is killed leaves the last report
    as it was; if it is killed while publishing, the next run finishes that. A fresh run also
    executes chapters that have not changed.
    """
    paths = run_paths(profile.run_name, root)
    with lock_run(paths):
        _publish(paths)
        run = ReportRun(profile, paths, paths.stage, root, conditions or Conditions())
        stage_report(run, fresh)
        build_site(paths.stage / "reports", paths.stage / "figures", paths.site_scratch)
        files = [*(paths.stage / "figures").rglob("*"), *(paths.stage / "reports").rglob("*")]
        names = sorted(str(path.relative_to(paths.stage)) for path in files if path.is_file())
        write_text(paths.stage / COMPLETE, json.dumps(names))
        _publish(paths)
    return paths


def stage_report(run: ReportRun, fresh: bool) -> Results:
    """Put figures, executed notebooks and results into the stage, and return the results."""
    tasks = run.plan()
    results = _merge(run, tasks, run_chapters(tasks, run, fresh=fresh))
    results["checkpoints"] = _link(results["checkpoints"], run.paths, run.root)
    check_results(results)
    text = json.dumps(results, indent=1, ensure_ascii=False) + "\n"
    write_text(run.stage / "reports" / "results.json", text)
    return results


def run_chapter(
    name: str,
    profile: Profile,
    root: Path = ROOT,
    conditions: Conditions | None = None,
    fresh: bool = False,
) -> Path:
    """Execute one chapter, and before it what it needs and the cache lacks; return its copy."""
    conditions, paths = conditions or Conditions(), run_paths(profile.run_name, root)
    chapter = find_name(name, root)
    if chapter in conditions.skipped:
        raise UserError(f"{chapter} does not apply to this run: {conditions.skipped[chapter]}")
    stage = paths.stage.with_name(f"{paths.name}-chapter")
    run = ReportRun(profile, paths, stage, root, conditions)
    tasks = needed_by(chapter, run.plan())
    with lock_run(paths):
        run_chapters(tasks, run, chapter, fresh)
        for path in run.outputs(tasks[-1]):
            target = paths.chapters / path.relative_to(stage)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
        shutil.rmtree(stage)
    return paths.chapters / "reports" / tasks[-1].source.name


def rebuild_site(profile: Profile, root: Path = ROOT) -> RunPaths:
    """Build the site of the last complete run again."""
    paths = run_paths(profile.run_name, root)
    with lock_run(paths):
        _publish(paths)
        build_site(paths.reports, paths.figures, paths.site_scratch)
    return paths


def _merge(run: ReportRun, tasks: list[ChapterTask], seconds: dict[str, float]) -> Results:
    """Join what the chapters recorded, and check that every claim was judged."""
    unfit = run.describe_conditions()
    results = {
        "profile": run.profile.run_name,
        "settings": run.profile.settings,
        "encoder": {},
        "data": {},
        "versions": list_versions(),
        **describe_code([task.source for task in tasks], run.root),
        "seconds": seconds,
        "skipped": unfit["skipped"],
        "conditions": unfit["conditions"],
    }
    results |= merge_parts(run.stage / "parts", [task.name for task in tasks])
    judged = results["claims"] | unfit["claims"]
    results["untestable"] |= unfit["untestable"]
    for claim in find_claims(run.root / "notebooks"):
        if claim.id not in judged:
            what = "judged" if claim.metric in results["metrics"] else "measured"
            named = f"The claim {claim.id} names '{claim.metric}'"
            raise UserError(f"{named}, which no chapter {what}.")
    return results | {"claims": [judged[number] for number in sorted(judged)]}


def _link(checkpoints: dict[str, str], paths: RunPaths, root: Path) -> dict[str, str]:
    """Link trained models under stable names; return these, relative to the repository."""
    shutil.rmtree(paths.checkpoints, ignore_errors=True)
    for name, model in checkpoints.items():
        link = paths.checkpoints / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath((paths.cache / model).resolve(), link.parent.resolve()))
    return {name: str((paths.checkpoints / name).relative_to(root)) for name in checkpoints}


def check_results(results: Results) -> None:
    """Refuse results that violate `results.schema.json`."""
    schema = json.loads(SCHEMA.read_text("utf-8"))
    error = best_match(Draft202012Validator(schema).iter_errors(results))
    if error:
        where = f"{error.json_path}: {error.message}"
        raise UserError(f"results.json violates its schema: {where}")


def _publish(paths: RunPaths) -> None:
    """Replace the last report by a complete stage; safe to repeat after a kill."""
    complete = paths.stage / COMPLETE
    if not complete.is_file():
        return
    names = json.loads(complete.read_text("utf-8"))
    for name in names:
        target = paths.output / name
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}.part")
        shutil.copyfile(paths.stage / name, part)
        part.replace(target)
    ours = [path for pattern in OURS for path in paths.output.glob(pattern) if path.is_file()]
    for path in set(ours) - {paths.output / name for name in names}:
        path.unlink()
    readme = paths.output / "README.md"  # beside the published profile's results only
    if readme.is_file():
        results = json.loads((paths.reports / "results.json").read_text("utf-8"))
        write_text(readme, fill_readme(readme.read_text("utf-8"), results))
    complete.unlink()  # first: without it the rest of the stage means nothing
    shutil.rmtree(paths.stage)


@contextmanager
def lock_run(paths: RunPaths) -> Iterator[None]:
    """Allow one run of a name at a time; the system releases the lock of a killed run."""
    paths.build.mkdir(parents=True, exist_ok=True)
    with (paths.build / f"{paths.name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"Another run of '{paths.name}' is in progress.") from None
        yield


@dataclass(frozen=True)
class Difference:
    """Something that is not as it was: a metric, a claim, or another part of the results."""

    what: str
    before: Any
    after: Any
    tolerance: float | None = None  # how far a number may move; anything else must be equal

    @property
    def outside(self) -> bool:
        """Whether the difference is larger than its tolerance."""
        return self.tolerance is None or abs(self.after - self.before) > self.tolerance

    def __str__(self) -> str:
        if self.tolerance is None:
            return f"{self.what}: {self.before} before, {self.after} now"
        moved = f"{self.after - self.before:+.4f} (allowed {self.tolerance:.4f})"
        return f"{self.what}: {self.before:.4f} before, {self.after:.4f} now, {moved}"


def run_again(
    profile: Profile, check: Callable[[Profile], Conditions], root: Path = ROOT, keep: bool = False
) -> tuple[Results, Results]:
    """Return the results of the last report, and those of a new run from an empty cache.

    The new run touches nothing published: it works in `build/reproduce/<run>/`, whose cache can be
    kept to make a report from. Its conditions are checked once the cache is empty.
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
        run = ReportRun(profile, paths, paths.stage, root, check(profile))
        fresh = stage_report(run, fresh=True)
        if not keep:
            shutil.rmtree(paths.cache)  # gigabytes; the executed notebooks stay
    return written, fresh


def compare_results(written: Results, fresh: Results) -> list[Difference]:
    """List all differences between two results, even the smallest, in the order of the first."""
    parts = [Difference(what, written.get(what), fresh.get(what)) for what in BASIS]
    found = [part for part in parts if part.before != part.after]
    found += _compare_metrics(written["metrics"], fresh["metrics"])
    both = written, fresh
    old, new = ({claim["id"]: claim["verdict"] for claim in one["claims"]} for one in both)
    return found + [
        Difference(f"verdict on {name}", old.get(name), new.get(name))
        for name in dict.fromkeys([*old, *new])
        if old.get(name) != new.get(name)
    ]


def _compare_metrics(written: Results, fresh: Results) -> Iterator[Difference]:
    """Yield the metrics that were added, removed or changed."""
    for name in dict.fromkeys([*written, *fresh]):
        before, after = written.get(name), fresh.get(name)
        if before is None or after is None:
            yield Difference(name, before and before["value"], after and after["value"])
            continue
        width = 0.0 if before["low"] is None else before["high"] - before["low"]
        least = LEAST_TOLERANCES.get(before["unit"], LEAST_TOLERANCE)
        tolerance = max(least, SHARE_OF_WIDTH * float(width))
        for part in ("n", "unit", "value", "low", "high"):
            pair = before[part], after[part]
            exact = part in ("n", "unit") or None in pair
            if pair[0] != pair[1]:
                yield Difference(f"{name}, {part}", *pair, None if exact else tolerance)


def describe_differences(found: list[Difference]) -> str:
    """Describe the differences; those outside their tolerance come first."""
    if not found:
        return "Reproduced: every metric and verdict is the same."
    lines = [f"OUTSIDE  {one}" for one in found if one.outside]
    said = f"Reproduced: {len(found)} differences, all within their tolerance."
    if lines:
        said = f"Not reproduced: {len(lines)} of {len(found)} differences are too large."
    return "\n".join([*lines, *(f"within   {one}" for one in found if not one.outside), said])
