"""Hashes of what a result rests on: values, arrays, files, and code without its comments."""

import ast
import hashlib
import json
import re
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from pathlib import Path
from typing import Any

import numpy as np

PACKAGE = Path(__file__).parent
NAME = PACKAGE.name
_owners = cache(packages_distributions)


def hash_json(value: Any) -> str:
    """Return the SHA-256 of a JSON value; the order of keys does not matter."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def hash_array(array: np.ndarray) -> str:
    """Return the SHA-256 of an array's shape, type and values."""
    form = json.dumps([list(array.shape), str(array.dtype)])
    return hashlib.sha256(form.encode() + np.ascontiguousarray(array).tobytes()).hexdigest()


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def hash_files(folder: Path, pattern: str) -> dict[str, str]:
    """Return the SHA-256 of the files of a folder that match a pattern."""
    files = sorted(path for path in folder.glob(pattern) if path.is_file())
    return {str(path.relative_to(folder)): hash_file(path) for path in files}


def hash_code(*modules: str) -> str:
    """Return one SHA-256 over modules, mostly `__name__`, and what they import of this package."""
    return hash_json(read_modules(import_closure(modules)))


def import_closure(modules: Iterable[str]) -> set[str]:
    """Return modules of this package together with those that they import, wherever in the code."""
    found: set[str] = set()
    new = set(modules)
    while new:
        found |= new
        new = {name for code in read_modules(new).values() for name in imports_of(code)} - found
    return found


def imports_of(code: str) -> set[str]:
    """Return the modules of this package that some code imports."""
    return {name for name in _imported_names(code) if _find(name)}


def read_modules(modules: Iterable[str]) -> dict[str, str]:
    """Return the code of modules of this package, as it counts, by name."""
    found = {}
    for name in sorted(modules):
        path = _find(name)
        if path is None:
            raise ValueError(f"there is no module {name}")
        found[name] = strip_code(path.read_text("utf-8"))
    return found


@lru_cache(maxsize=1024)
def words_of(code: str) -> frozenset[str]:
    """Return the attributes and the strings in some code, among which are the settings it reads."""
    nodes = list(ast.walk(ast.parse(code)))
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    constants = {node.value for node in nodes if isinstance(node, ast.Constant)}
    return frozenset(attributes | {value for value in constants if isinstance(value, str)})


def packages_of(code: Iterable[str]) -> dict[str, str]:
    """Return the versions of the packages that some code imports, and of what these rest on."""
    roots = {name.partition(".")[0] for text in code for name in _imported_names(text)} - {NAME}
    new = {owner.lower() for root in roots for owner in _owners().get(root, [])}
    found: dict[str, str] = {}
    while new:
        found |= {name: version(name) for name in new}
        new = {need for name in new for need in _requirements(name)} - found.keys()
    return dict(sorted(found.items()))


@lru_cache(maxsize=1024)
def strip_code(code: str) -> str:
    """Return code without docstrings, comments and formatting."""
    tree = ast.parse(code)
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(tree):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def _imported_names(code: str) -> set[str]:
    """Return the dotted names of what some code imports; what it takes may be modules too."""
    names: set[str] = set()
    for statement in _import_statements(code):
        if isinstance(statement, ast.Import):
            names |= {alias.name for alias in statement.names}
        elif statement.module:
            taken = [f"{statement.module}.{alias.name}" for alias in statement.names]
            modules = {name for name in taken if _find(name)}
            names |= modules if len(modules) == len(taken) else {*modules, statement.module}
    return names


@lru_cache(maxsize=1024)
def _import_statements(code: str) -> list[ast.Import | ast.ImportFrom]:
    nodes = ast.walk(ast.parse(code))
    return [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]


def _find(module: str) -> Path | None:
    """Return the file of a module of this package; that of a package is its `__init__.py`."""
    parts = module.split(".")
    if parts[0] != NAME:
        return None
    place = PACKAGE.joinpath(*parts[1:])
    files = [place.with_suffix(".py"), place / "__init__.py"]
    return next((file for file in files[not parts[1:] :] if file.is_file()), None)


def _requirements(package: str) -> set[str]:
    """Return the installed packages that a package needs, without those of its extras."""
    needs = [need for need in requires(package) or [] if "extra ==" not in need]
    return {*filter(_is_installed, (re.split(r"[^\w.-]", need)[0].lower() for need in needs))}


@cache
def _is_installed(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False
