"""The command line: `sentigeo report`, `chapter`, `status`, `reproduce`, `texts` and others."""

import argparse
import signal
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
    for stop in (signal.SIGTERM, signal.SIGHUP):  # tidy up as after Ctrl-C
        if signal.getsignal(stop) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(stop, signal.default_int_handler)
    try:
        if "profile" in options:
            options.profile = _load_profile(options)
        return int(options.run(options) or 0)
    except (UserError, OSError) as error:
        print(f"Error: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return 130
    return 1


def _report(options: argparse.Namespace) -> None:
    from sentigeo.preflight import check_run  # slow to import; a wrong profile is reported before
    from sentigeo.report.publish import run_report

    conditions = check_run(options.profile)
    for chapter, reason in conditions.skipped.items():
        print(f"Skipped: {chapter}. {reason}")
    paths = run_report(options.profile, conditions=conditions, fresh=options.fresh)
    print(f"The report is ready: {paths.index.relative_to(ROOT)}")


def _chapter(options: argparse.Namespace) -> None:
    from sentigeo.preflight import check_run
    from sentigeo.report.publish import run_chapter
    from sentigeo.report.runner import find_name

    name, conditions = find_name(options.chapter, ROOT), check_run(options.profile)
    copy = run_chapter(name, options.profile, conditions=conditions, fresh=options.fresh)
    print(f"{name} is ready: {copy.relative_to(ROOT)}, its figures and what it recorded beside it.")


def _status(options: argparse.Namespace) -> None:
    from sentigeo.preflight import recall_run
    from sentigeo.report.fingerprint import Conditions, describe_published
    from sentigeo.report.runner import ReportRun, describe_status

    profile, paths = options.profile, run_paths(options.profile.run_name)
    conditions = recall_run(profile) or Conditions()
    run = ReportRun(profile, paths, paths.stage, ROOT, conditions)
    tasks = run.plan()
    found = describe_status(tasks, run)
    skipped = {name: f"skipped: {reason}" for name, reason in conditions.skipped.items()}
    for name, said in sorted((found | skipped).items()):
        print(f"{name:20} {said}")
    print(describe_published(paths.reports / "results.json", [task.source for task in tasks]))


def _reproduce(options: argparse.Namespace) -> int:
    from sentigeo.preflight import check_run
    from sentigeo.report.publish import compare_results, describe_differences, run_again

    found = compare_results(*run_again(options.profile, check_run, keep=options.keep))
    print(describe_differences(found))
    return int(any(one.outside for one in found))


def _texts(options: argparse.Namespace) -> None:
    from sentigeo.own_texts.run import run_own_texts

    source = _expand(options.source).resolve()
    out = _expand(options.out) if options.out else ROOT / "build" / "texts" / source.stem
    parameters = {
        "source": str(source),
        "text_field": options.text,
        "label_field": options.label,
        "model": _absolute(options.model or PACKAGED),
        "revision": options.revision or None,
        "k": options.k or "auto",
        "pooling": options.pooling,
        "max_length": options.max_length,
    }
    run_own_texts(out.resolve(), parameters)
    print(f"Written to {out}: begin with summary.md and map.html.")


def _site(options: argparse.Namespace) -> None:
    from sentigeo.report.publish import rebuild_site

    print(f"The site is ready: {rebuild_site(options.profile).index.relative_to(ROOT)}")


def _train(options: argparse.Namespace) -> None:
    """Train and read what chapters 2, 3 and 11 need; `accelerate launch` does so in processes."""
    from accelerate import Accelerator

    from sentigeo.cache import Store
    from sentigeo.data.text_sets import load_text_sets
    from sentigeo.encoder.corpus import make_corpus
    from sentigeo.encoder.encoder import load_encoder
    from sentigeo.preflight import DEEP, check_run
    from sentigeo.training.answers import read_stages
    from sentigeo.training.deep_study import prepare_draws, train_draws
    from sentigeo.training.runs import train_runs

    profile, store = options.profile, Store(run_paths(options.profile.run_name).cache)
    skipped = check_run(profile).skipped
    encoder = load_encoder(profile.model, profile.model_revision)
    with Accelerator().main_process_first():
        corpus = make_corpus(profile, encoder, store)
    results = train_runs(corpus, encoder, profile, store)
    read_stages(results, corpus, encoder, store)
    sets = load_text_sets(profile, corpus) if DEEP not in skipped else {}
    draws = prepare_draws(sets, encoder, profile)
    trained = train_draws(draws, encoder, store)
    count = len(results) + sum(len(result.runs) for result in trained)
    print(f"{count} runs are in the cache; 'make report' reads them from there.")


def _bench(options: argparse.Namespace) -> None:
    sys.path.insert(0, str(ROOT))
    from benchmarks.bench import run_bench

    target = run_paths(options.profile.run_name).build / "bench.json"
    for name, ratio in run_bench(options.profile, target).items():
        print(f"{name:40} {ratio:8.2f}")
    print(f"Written to {target.relative_to(ROOT)}.")


def _load_profile(options: argparse.Namespace) -> Profile:
    """Load the profile; paths among the overrides are taken from where the command was typed."""
    overrides = parse_overrides(options.set)
    for key in {"reviews", "model", "deep_sets"} & overrides.keys():
        value = overrides[key]
        overrides[key] = [*map(_absolute, value)] if isinstance(value, list) else _absolute(value)
    return load_profile(options.profile, **overrides)


def _expand(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise UserError(f"There is no home folder for {path}.") from None


def _absolute(value: Any) -> Any:
    """Return the whole path of a file or folder that is there, and anything else as it is."""
    named = value in (PACKAGED, *BUILT_IN_SETS)  # whatever else is called so
    there = not named and isinstance(value, str) and _expand(value).exists()
    return str(_expand(value).resolve()) if there else value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="sentigeo", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    for name, run, help_text in (
        ("report", _report, "run every notebook and rebuild figures, copies and site"),
        ("chapter", _chapter, "execute one chapter, after what it needs"),
        ("status", _status, "say which chapters are up to date, and why others are not"),
        ("reproduce", _reproduce, "run the report again from nothing and compare"),
        ("site", _site, "rebuild the site from the last report"),
        ("train", _train, "only train and read the texts, for accelerate launch"),
        ("bench", _bench, "measure speed against what a user would pick instead"),
    ):
        command = commands.add_parser(name, help=help_text)
        command.add_argument("--profile", default="laptop", help="name or YAML file")
        command.add_argument("--set", default="", metavar="'KEY=VALUE ...'", help="keys to change")
        command.set_defaults(run=run)
    commands.choices["chapter"].add_argument("chapter", help="name or number, such as 05")
    for name, flag, help_text in (
        ("report", "--fresh", "also execute notebooks that did not change"),
        ("chapter", "--fresh", "execute it although it did not change"),
        ("reproduce", "--keep", "keep the cache in build/reproduce/<run>/cache"),
    ):
        commands.choices[name].add_argument(flag, action="store_true", help=help_text)
    _add_texts(commands)
    return parser


def _add_texts(commands: Any) -> None:
    """Add the command for your own texts; an empty option counts as not given."""
    command = commands.add_parser("texts", help="cluster and map your own texts")
    command.add_argument("source", help="JSON, JSONL, CSV, TSV, Parquet, or one text per line")
    for name, default, help_text in (
        ("out", "", "folder (default: build/texts/<name>)"),
        ("text", "", "field of the texts (default: text, or that of the longest texts)"),
        ("label", "", "field of labels to compare with, if there are any"),
        ("model", PACKAGED, "hub id or folder of the encoder (default: %(default)s)"),
        ("revision", "", "commit of a hub model"),
        ("k", "auto", "number of clusters, or auto, which tries 2 to 10 (default: %(default)s)"),
        ("pooling", "auto", "cls, mean, max, or auto: as the encoder was trained (the default)"),
        ("max-length", 256, "tokens of a text to read (default: %(default)s)"),
    ):
        command.add_argument(f"--{name}", default=default, type=type(default), help=help_text)
    command.set_defaults(run=_texts)


if __name__ == "__main__":
    sys.exit(main())
