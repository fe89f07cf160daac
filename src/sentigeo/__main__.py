"""The command line: `sentigeo report` and `sentigeo site`."""

import argparse
import sys
from collections.abc import Sequence

from sentigeo.errors import UserError
from sentigeo.paths import ROOT, run_paths
from sentigeo.profile import load_profile, parse_overrides


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; an error that a person can put right is one sentence and exit code 1."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options) or 0)
    except UserError as error:
        print(f"Error: {error}", file=sys.stderr)
    except OSError as error:
        print(f"Error: {error.strerror}: {error.filename or 'unknown file'}", file=sys.stderr)
    except KeyboardInterrupt:
        print("Stopped; the last report is untouched.", file=sys.stderr)
        return 130
    return 1


def _report(options: argparse.Namespace) -> None:
    profile = load_profile(options.profile, **parse_overrides(options.set))
    from sentigeo.report import run_report  # after the profile was found to be valid

    paths = run_report(profile, options.profile)
    print(f"The report is ready: {(paths.reports / 'site' / 'index.html').relative_to(ROOT)}")


def _site(options: argparse.Namespace) -> None:
    profile = load_profile(options.profile, **parse_overrides(options.set))
    from sentigeo.site import build_site

    paths = run_paths(profile.run_name)
    build_site(paths.reports, paths.figures, paths.build)
    print(f"The site is ready: {(paths.reports / 'site' / 'index.html').relative_to(ROOT)}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="sentigeo", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    for name, run, help_text in (
        ("report", _report, "run every notebook and rebuild figures, copies and site"),
        ("site", _site, "rebuild the site from the last report"),
    ):
        command = commands.add_parser(name, help=help_text)
        command.add_argument("--profile", default="laptop", help="name or YAML file")
        command.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
        command.set_defaults(run=run)
    return parser


if __name__ == "__main__":
    sys.exit(main())
