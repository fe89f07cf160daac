"""Run the numbered notebooks and publish what they made, all of it or nothing."""

import fcntl
import json
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sentigeo.chapter import list_versions
from sentigeo.chapters import chapter_parameters, run_chapters
from sentigeo.errors import UserError
from sentigeo.execute import check_parameters
from sentigeo.paths import ROOT, RunPaths, list_chapters, run_paths
from sentigeo.profile import Profile
from sentigeo.schedule import Task, read_tasks
from sentigeo.site import build_site
from sentigeo.store import write_text

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
    seconds = run_chapters(tasks, profile, paths, root, fresh)
    results = _merge([task.source for task in tasks], profile, seconds, skipped, paths)
    write_text(paths.stage / "reports" / "results.json", results)


def rebuild_site(profile: Profile, root: Path = ROOT) -> RunPaths:
    """Build the site of the last complete run again."""
    paths = run_paths(profile.run_name, root)
    with lock_run(paths):
        build_site(paths.reports, paths.figures, paths.site_scratch)
    return paths


def _merge(
    sources: list[Path],
    profile: Profile,
    seconds: dict[str, float],
    skipped: dict[str, str],
    paths: RunPaths,
) -> str:
    """Join what the chapters recorded into the text of `results.json`."""
    results: dict[str, Any] = {
        "profile": profile.run_name,
        "settings": profile.settings,
        "encoder": {},
        "data": {},
        "versions": list_versions(),
        "seconds": seconds,
        "skipped": skipped,
        "metrics": {},
        "figures": {},
        "pages": {},
        "claims": [],
        "checkpoints": {},
        "arrays": {},
    }
    for source in sources:
        path = paths.stage / "parts" / f"{source.stem}.json"
        if not path.is_file():
            raise UserError(f"{source.name} recorded nothing under its own name.")
        part = json.loads(path.read_text("utf-8"))
        results |= part["facts"]
        results["figures"][source.stem] = part["figures"]
        results["pages"][source.stem] = part["pages"]
        repeated = results["metrics"].keys() & part["metrics"].keys()
        if repeated:
            raise UserError(f"{source.name} records '{min(repeated)}', which stands already.")
        results["metrics"] |= part["metrics"]
        results["claims"] += part["claims"]
        results["checkpoints"] |= part["checkpoints"]
        results["arrays"] |= part["arrays"]
    return json.dumps(results, indent=1, ensure_ascii=False) + "\n"


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
    shutil.rmtree(paths.stage)


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
