"""Run the numbered notebooks and publish what they made, all of it or nothing."""

import fcntl
import json
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from sentigeo.errors import UserError
from sentigeo.files import write_text
from sentigeo.ledger.claims import LEDGER, Claim, judge_claim, load_claims
from sentigeo.ledger.metrics import merge_parts
from sentigeo.paths import ROOT, RunPaths, list_chapters, run_paths
from sentigeo.profile import Profile
from sentigeo.report.headline import fill_readme
from sentigeo.report.notebook import SKIPPED, list_versions
from sentigeo.report.runner import (
    Task,
    chapter_parameters,
    check_parameters,
    read_tasks,
    run_chapters,
)
from sentigeo.report.site import build_site

SCHEMA = Path(__file__).with_name("results.schema.json")
COMPLETE = "complete.json"  # lists the files of a stage that may be published


def run_report(
    profile: Profile,
    root: Path = ROOT,
    skipped: dict[str, str] | None = None,
    fresh: bool = False,
) -> RunPaths:
    """Execute the numbered notebooks, then put figures, copies, results and site in place.

    Everything is written to a stage first. A run that fails or is killed leaves the last report
    as it was; one that is killed while publishing is finished by the next.

    Args:
        profile: What the run is; the notebooks load it again.
        root: The repository.
        skipped: Chapters that make no sense for this run, and why.
        fresh: Whether to execute chapters that are in the cache, unchanged.
    """
    paths = run_paths(profile.run_name, root)
    tasks = plan_chapters(profile, root, skipped or {})
    with lock_run(paths):
        _publish(paths)
        stage_chapters(tasks, profile, paths, root, skipped or {}, fresh)
        build_site(paths.stage / "reports", paths.stage / "figures", paths.site_scratch)
        write_text(paths.stage / COMPLETE, _list_outputs(paths.stage))
        _publish(paths)
    return paths


def plan_chapters(profile: Profile, root: Path, skipped: Collection[str]) -> list[Task]:
    """Return the notebooks of a report, after a check that they take a profile."""
    sources = [source for source in list_chapters(root) if source.stem not in skipped]
    if not sources:
        raise UserError(f"There are no numbered notebooks in {root / 'notebooks'}.")
    for source in sources:
        check_parameters(source, chapter_parameters(profile))
    return read_tasks(sources)


def stage_chapters(
    tasks: list[Task],
    profile: Profile,
    paths: RunPaths,
    root: Path,
    skipped: dict[str, str],
    fresh: bool,
) -> None:
    """Put figures, executed notebooks and results into an empty stage; see `run_report`."""
    shutil.rmtree(paths.stage, ignore_errors=True)
    shutil.rmtree(paths.failed, ignore_errors=True)
    (paths.stage / "reports").mkdir(parents=True)
    (paths.stage / "figures").mkdir()
    _tell_skipped(skipped, paths, root)
    seconds = run_chapters(tasks, profile, paths, root, fresh)
    results = _merge([task.source for task in tasks], profile, seconds, skipped, paths, root)
    write_text(paths.stage / "reports" / "results.json", results)


def _tell_skipped(skipped: dict[str, str], paths: RunPaths, root: Path) -> None:
    """Leave word of the claims that skipped chapters would have tested, as a chapter would."""
    untestable = {c.id: skipped[c.chapter] for c in _load_ledger(root) if c.chapter in skipped}
    part = {"untestable": untestable}
    write_text(paths.stage / "parts" / f"{SKIPPED}.json", json.dumps(part, ensure_ascii=False))


def _load_ledger(root: Path) -> list[Claim]:
    """Return the claims that a repository declares."""
    path = root / "notebooks" / LEDGER.name
    return load_claims(path) if path.is_file() else []


def rebuild_site(profile: Profile, root: Path = ROOT) -> RunPaths:
    """Build the site of the last complete run again."""
    paths = run_paths(profile.run_name, root)
    with lock_run(paths):
        _publish(paths)
        build_site(paths.reports, paths.figures, paths.site_scratch)
    return paths


def _merge(
    sources: list[Path],
    profile: Profile,
    seconds: dict[str, float],
    skipped: dict[str, str],
    paths: RunPaths,
    root: Path,
) -> str:
    """Join what the chapters recorded, judge the claims, and return the text of `results.json`."""
    results: dict[str, Any] = {
        "profile": profile.run_name,
        "settings": profile.settings,
        "encoder": {},
        "data": {},
        "versions": list_versions(),
        "seconds": seconds,
        "skipped": skipped,
    }
    results |= merge_parts(paths.stage / "parts", [source.stem for source in sources])
    reasons = {**skipped, **results["untestable"]}
    results["claims"] = [
        judge_claim(claim, results["metrics"], reasons) for claim in _load_ledger(root)
    ]
    check_results(results)
    return json.dumps(results, indent=1, ensure_ascii=False) + "\n"


def check_results(results: dict[str, Any]) -> None:
    """Refuse results that are not as `results.schema.json` says."""
    schema = json.loads(SCHEMA.read_text("utf-8"))
    error = best_match(Draft202012Validator(schema).iter_errors(results))
    if error:
        raise UserError(
            f"results.json is not as its schema says: {error.json_path}: {error.message}"
        )


def _publish(paths: RunPaths) -> None:
    """Put a complete stage into place, file by file; safe to repeat after a kill.

    Pages, figures and copies of an earlier run that this one did not make are removed.
    """
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
    wanted = {paths.output / name for name in names}
    ours = (
        *paths.figures.glob("[0-8][0-9]_*.png"),
        *paths.figures.glob("[0-8][0-9]_*.html"),
        *paths.reports.glob("[0-8][0-9]_*.ipynb"),
        *(paths.reports / "site").rglob("*"),
    )
    for path in ours:
        if path.is_file() and path not in wanted:
            path.unlink()
    _update_readme(paths)
    complete.unlink()  # first: without it the rest of the stage means nothing
    shutil.rmtree(paths.stage)


def _update_readme(paths: RunPaths) -> None:
    """Put the numbers of a published run into the README beside it; other runs have none."""
    readme = paths.output / "README.md"
    if readme.is_file():
        results = json.loads((paths.reports / "results.json").read_text("utf-8"))
        write_text(readme, fill_readme(readme.read_text("utf-8"), results))


def _list_outputs(stage: Path) -> str:
    """List a stage's figures and reports, relative to the stage, as JSON."""
    files = [path for name in ("figures", "reports") for path in (stage / name).rglob("*")]
    return json.dumps(sorted(str(path.relative_to(stage)) for path in files if path.is_file()))


@contextmanager
def lock_run(paths: RunPaths) -> Iterator[None]:
    """Let one run of a name work at a time; a killed run's lock is released by the system."""
    paths.build.mkdir(parents=True, exist_ok=True)
    with (paths.build / f"{paths.name}.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"Another run of '{paths.name}' is in progress.") from None
        yield
