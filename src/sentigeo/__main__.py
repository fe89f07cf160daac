"""The command line: `sentigeo report`, `site`, `train` and `bench`."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sentigeo.errors import UserError
from sentigeo.paths import ROOT, run_paths
from sentigeo.profile import BUILT_IN_SETS, PACKAGED, Profile, load_profile, parse_overrides


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; an error that a person can put right is one sentence and exit code 1."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options) or 0)
    except UserError as error:
        print(f"Error: {error}", file=sys.stderr)
    except OSError as error:
        print(f"Error: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return 130
    return 1


def _report(options: argparse.Namespace) -> None:
    profile = _load_profile(options)
    from sentigeo.report import run_report  # after the profile was found to be valid
    from sentigeo.reviews import load_reviews
    from sentigeo.text_sets import load_text_sets

    load_reviews(profile)  # a file that cannot be used is found before any notebook starts
    load_text_sets(profile)
    paths = run_report(profile)
    print(f"The report is ready: {(paths.reports / 'site' / 'index.html').relative_to(ROOT)}")


def _site(options: argparse.Namespace) -> None:
    profile = _load_profile(options)
    from sentigeo.report import rebuild_site

    paths = rebuild_site(profile)
    print(f"The site is ready: {(paths.reports / 'site' / 'index.html').relative_to(ROOT)}")


def _train(options: argparse.Namespace) -> None:
    """Train and read what chapters 2, 3 and 11 need; `accelerate launch` does so in processes."""
    profile = _load_profile(options)
    from sentigeo.deep_study import DeepStudy
    from sentigeo.encoder import load_encoder
    from sentigeo.reviews import load_reviews
    from sentigeo.store import Store
    from sentigeo.study import Study, pick_tuned
    from sentigeo.text_sets import load_text_sets

    encoder = load_encoder(profile.model, profile.model_revision)
    store = Store(run_paths(profile.run_name).cache)
    study = Study(load_reviews(profile), encoder, profile, store)
    results = study.results()
    study.tuned_vectors(pick_tuned(results))
    count = len(results)
    for draws in load_text_sets(profile).values():
        for seed, texts in enumerate(draws):
            count += len(DeepStudy(texts, encoder, profile, store, seed).runs())
    print(f"{count} runs are in the cache; 'make report' reads them from there.")


def _bench(options: argparse.Namespace) -> None:
    profile = _load_profile(options)
    from sentigeo.bench import run_bench

    target = run_paths(profile.run_name).build / "bench.json"
    for name, ratio in run_bench(profile, target).items():
        print(f"{name:40} {ratio:8.2f}")
    print(f"Written to {target.relative_to(ROOT)}.")


def _load_profile(options: argparse.Namespace) -> Profile:
    """Load the profile; paths among the overrides are taken from where the command was typed."""
    overrides = parse_overrides(options.set)
    for key in {"reviews", "model", "deep_sets"} & overrides.keys():
        value = overrides[key]
        overrides[key] = [*map(_absolute, value)] if isinstance(value, list) else _absolute(value)
    return load_profile(options.profile, **overrides)


def _absolute(value: Any) -> Any:
    """Return the whole path of a file or folder that is there, and anything else as it is."""
    named = value in (PACKAGED, *BUILT_IN_SETS)  # whatever else is called so
    there = not named and isinstance(value, str) and Path(value).expanduser().exists()
    return str(Path(value).expanduser().resolve()) if there else value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="sentigeo", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    for name, run, help_text in (
        ("report", _report, "run every notebook and rebuild figures, copies and site"),
        ("site", _site, "rebuild the site from the last report"),
        ("train", _train, "only train and read the texts, for accelerate launch"),
        ("bench", _bench, "measure speed against what a user would pick instead"),
    ):
        command = commands.add_parser(name, help=help_text)
        command.add_argument("--profile", default="laptop", help="name or YAML file")
        command.add_argument("--set", default="", metavar="'KEY=VALUE ...'", help="keys to change")
        command.set_defaults(run=run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
