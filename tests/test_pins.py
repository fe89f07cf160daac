"""pyproject.toml, requirements.lock and environment.yml say the same."""

import re
import tomllib

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from sentigeo.paths import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = (ROOT / "requirements.lock").read_text().splitlines()
DECLARED = [Requirement(line) for line in PROJECT["dependencies"]] + [
    Requirement(line) for line in PROJECT["optional-dependencies"]["dev"]
]
PINS = dict(
    re.fullmatch(r"([\w.-]+)==([\w.+!-]+)", line).groups() for line in LOCK if line[:1] not in "#"
)


@pytest.mark.parametrize("requirement", DECLARED, ids=lambda requirement: requirement.name)
def test_lock_pins_every_requirement_within_its_range(requirement):
    assert requirement.specifier.contains(PINS[canonicalize_name(requirement.name)])


def test_torch_is_pinned_exactly_and_without_a_local_build():
    assert PINS["torch"] == "2.13.0"
    assert [str(r.specifier) for r in DECLARED if r.name == "torch"] == ["==2.13.0"]
    assert not any(name.startswith("nvidia") for name in PINS)


def test_environment_takes_its_pins_from_the_lock():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    python = next(d for d in environment["dependencies"] if str(d).startswith("python="))
    assert SpecifierSet(PROJECT["requires-python"]).contains(python.removeprefix("python="))
    assert environment["dependencies"][-1] == {"pip": ["-r requirements.lock", "-e ."]}
