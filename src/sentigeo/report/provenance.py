"""Which code a report was made by, and on which machine."""

import json
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from joblib import cpu_count
from threadpoolctl import threadpool_info

from sentigeo.files import hash_file
from sentigeo.report.fingerprint import hash_chapter

MADE = ("reports/", "figures/", "README.md")  # what a report writes into the repository


def describe_code(sources: Sequence[Path], root: Path) -> dict[str, Any]:
    """Return the hash of each chapter's code, the commit, the hash of the lock, and the machine."""
    lock = root / "requirements.lock"
    return {
        "code": {source.stem: hash_chapter(source) for source in sources},
        "commit": find_commit(root),
        "lock": hash_file(lock) if lock.is_file() else None,
        "machine": {
            "processor": find_processor(),
            "system": platform.platform(),
            "threads": cpu_count(),
            "blas": find_blas(),
        },
    }


def find_commit(root: Path) -> str | None:
    """Return what is checked out, with `+changes` if files differ from it; nothing outside git."""
    head, changed = _git(root, "rev-parse", "HEAD"), _git(root, "status", "--porcelain")
    if head is None or changed is None:
        return None
    names = [line[3:].split(" -> ")[-1].strip('"') for line in changed.splitlines()]
    return head.strip() + "+changes" * any(not name.startswith(MADE) for name in names)


def find_processor() -> str:
    """Return the model of the processor, or its kind where the system does not tell."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()


def find_blas() -> str:
    """Return the libraries for linear algebra that numpy and scipy have loaded."""
    import scipy.linalg  # noqa: F401  (loads them)

    found = [own for own in threadpool_info() if own["user_api"] == "blas"]
    names = [
        " ".join(filter(None, (own["internal_api"], own["version"], own.get("architecture"))))
        for own in found
    ]
    return ", ".join(sorted(set(names)))


def stale_chapters(results: Path, sources: Sequence[Path]) -> list[str]:
    """List the chapters whose code is not that which results were made by."""
    written = json.loads(results.read_text("utf-8")).get("code", {})
    return [own.stem for own in sources if written.get(own.stem) != hash_chapter(own)]


def _git(root: Path, *words: str) -> str | None:
    """Return what git says about a repository; nothing if it cannot."""
    try:
        said = subprocess.run(
            ["git", "-C", str(root), *words], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return said.stdout
