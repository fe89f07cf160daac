"""What code a result rests on: one hash over syntax trees, whatever their comments and layout."""

import ast
import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires, version
from pathlib import Path

from sentigeo.files import hash_json

PACKAGE = Path(__file__).parent
NAME = PACKAGE.name


def hash_code(*modules: str) -> str:
    """Return one SHA-256 over modules of this package and all that they import from it.

    Docstrings, comments, formatting and descriptions of fields do not count. A module that keeps
    results names itself: `__name__`.
    """
    return hash_json({name: _canonical(name) for name in sorted(import_closure(modules))})


def import_closure(modules: Iterable[str]) -> set[str]:
    """Return modules of this package together with those that they import, wherever in the code."""
    found: set[str] = set()
    new = set(modules)
    while new:
        found |= new
        new = {name for module in new for name in imports_of(_canonical(module))} - found
    return found


def imports_of(code: str) -> set[str]:
    """Return the modules of this package that some code imports."""
    return {name for name in _imported_names(code) if _find(name)}


def hash_modules(modules: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of the code of modules of this package, as it counts, by name."""
    return {name: hash_json(_canonical(name)) for name in sorted(modules)}


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


def read_modules(modules: Iterable[str]) -> list[str]:
    """Return the code of modules of this package, as it counts."""
    return list(map(_canonical, modules))


def _canonical(module: str) -> str:
    path = _find(module)
    if path is None:
        raise ValueError(f"there is no module {module}")
    return strip_code(path.read_text("utf-8"))


@lru_cache(maxsize=1024)
def strip_code(code: str) -> str:
    """Return code without docstrings, comments, formatting and descriptions of fields."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            if ast.get_docstring(node, clean=False) is not None:
                node.body = node.body[1:] or [ast.Pass()]
        elif isinstance(node, ast.Call):
            node.keywords = [own for own in node.keywords if own.arg != "description"]
    return ast.unparse(tree)


def _imported_names(code: str) -> set[str]:
    """Return the dotted names that some code imports, and what it takes from them."""
    names: set[str] = set()
    for module, taken in _statements(code):
        modules = {f"{module}.{name}" for name in taken if _find(f"{module}.{name}")}
        names |= modules | ({module} if len(modules) < len(taken) or not taken else set())
    return names


@lru_cache(maxsize=1024)
def _statements(code: str) -> list[tuple[str, frozenset[str]]]:
    """Return the modules that some code imports, and the names that it takes from each."""
    found: list[tuple[str, frozenset[str]]] = []
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            found += [(alias.name, frozenset()) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append((node.module, frozenset(alias.name for alias in node.names)))
    return found


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
def _owners() -> Mapping[str, list[str]]:
    return packages_distributions()


@cache
def _is_installed(package: str) -> bool:
    try:
        return bool(version(package))
    except PackageNotFoundError:
        return False
