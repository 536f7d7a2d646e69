"""Python files and modules: loading them, and the entries for a Toolset that they hold."""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import inspect
import os
import pkgutil
import re
import sys
import traceback
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from toolcrib.errors import TargetError
from toolcrib.tools import Tool

__all__ = ["attribute", "entries_of_attribute", "entries_of_module", "is_attribute", "is_dotted_name", "is_file"]


def attribute(target: str) -> Any:
    """Return the object that `module:attribute` or `path/to/file.py:attribute` names.

    Raises:
        TargetError: The module cannot be loaded, or has no such attribute.
    """
    place, _, path = target.rpartition(":")
    found: Any = _module(place)
    for name in path.split("."):
        if not hasattr(found, name):
            raise TargetError(f"{target}: there is no {name!r} in {place}{_or_rather(name, dir(found))}")
        found = getattr(found, name)
    return found


def entries_of_attribute(target: str) -> list[Any]:
    """Return what `module:attribute` names: that one thing, or the entries of a module.

    Raises:
        TargetError: It cannot be loaded, or is a class.
    """
    found = attribute(target)
    if inspect.isclass(found):
        raise TargetError(f"{target} is a class: name an instance of it, or a function")
    return _members(found) if inspect.ismodule(found) else [[found]]


def entries_of_module(target: str) -> list[Any]:
    """Return what a file or module lists in `TOOLS`, else in `__all__`, else all that is its own and may be tools.

    Raises:
        TargetError: It cannot be loaded, or lists what is not there.
    """
    return _members(_module(target))


def is_dotted_name(text: str) -> bool:
    """Whether a text reads as the name of a module or an attribute."""
    return all(part.isidentifier() for part in text.split("."))


def is_file(target: str) -> bool:
    """Whether a text reads as the path of a Python file."""
    return target.endswith(".py") or os.sep in target or "/" in target or Path(target).is_file()


def is_attribute(target: str) -> bool:
    """Whether a text reads as `module:attribute` or `path/to/file.py:attribute`."""
    place, _, path = target.rpartition(":")
    return bool(place) and is_dotted_name(path) and (is_file(place) or is_dotted_name(place))


# -- what a module offers


def _members(module: ModuleType) -> list[Any]:
    names = vars(module)
    if "TOOLS" in names:
        return _listed(names["TOOLS"], module)
    if "__all__" in names:
        return [value for name in names["__all__"] if _can_be_tools(value := _exported(module, name))]
    own = _own_names(module)
    return [value for name, value in names.items() if name in own and _is_own_tools(name, value, module)]


def _listed(tools: Any, module: ModuleType) -> list[Any]:
    if isinstance(tools, str) or not isinstance(tools, Iterable):
        kind = type(cast("object", tools)).__name__
        raise TargetError(f"TOOLS in {_place(module)} must be a list of tools, not {kind}")
    return list(cast("Iterable[Any]", tools))


def _exported(module: ModuleType, name: str) -> Any:
    try:
        return getattr(module, name)
    except AttributeError:
        hint = _or_rather(name, vars(module))
        raise TargetError(f"__all__ of {_place(module)} names {name!r}, which is not there{hint}") from None


def _is_own_tools(name: str, value: Any, module: ModuleType) -> bool:
    if name.startswith("_") or not _can_be_tools(value):
        return False
    return not inspect.isfunction(value) or hasattr(value, "__tool__") or value.__module__ == module.__name__


def _can_be_tools(value: Any) -> bool:
    if inspect.isclass(value):
        return False
    kind = cast("object", type(value))  # asked of the class, since some objects have any attribute you name
    return (
        inspect.isfunction(value)
        or isinstance(value, Tool)
        or any(hasattr(kind, shape) for shape in ("as_tool", "as_tools", "get_tools"))
    )


def _own_names(module: ModuleType) -> set[str]:
    # Asked of the source, since an imported Tool or agent does not know where it was made.
    try:
        tree = ast.parse(inspect.getsource(module))
    except (OSError, TypeError, SyntaxError):
        return set(vars(module))
    return set(_bound_names(tree))


def _bound_names(tree: ast.AST) -> Iterator[str]:
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif not isinstance(node, ast.ClassDef | ast.Lambda):
            waiting.extend(ast.iter_child_nodes(node))


# -- loading files and modules


def _module(place: str) -> ModuleType:
    return _load_file(place) if is_file(place) else _import(place)


def _load_file(place: str) -> ModuleType:
    _check_file(place)
    path = Path(place).resolve()
    name = _module_name(path)
    if name in sys.modules:
        return sys.modules[name]
    _importable(path.parent)
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise TargetError(f"{path} is not a Python file")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        with _explained(str(path)):
            spec.loader.exec_module(module)
    except TargetError:
        del sys.modules[name]
        raise
    return module


def _module_name(path: Path) -> str:
    stem = re.sub(r"\W", "_", path.stem)
    return f"{stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"


def _check_file(place: str) -> None:
    path = Path(place)
    if path.is_dir():
        raise TargetError(f"{place} is a folder: name a Python file in it")
    if not path.exists():
        raise TargetError(f"there is no file {place}{_or_rather(path.name, _files_beside(path))}")
    if path.suffix != ".py":
        raise TargetError(f"{place} is not a Python file: its name must end in .py")


def _files_beside(path: Path) -> list[str]:
    return [file.name for file in path.parent.glob("*.py")] if path.parent.is_dir() else []


def _import(name: str) -> ModuleType:
    _importable(Path.cwd())
    try:
        with _explained(name):
            module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        parent, _, leaf = missing.rpartition(".")
        path = getattr(sys.modules.get(parent), "__path__", None) if parent else None
        names = [found.name for found in pkgutil.iter_modules(path)]
        raise TargetError(f"there is no module {missing}{_or_rather(leaf, names)}") from error
    if hasattr(module, "__path__") and not getattr(module, "__file__", None):
        raise TargetError(f"{name} is a folder without __init__.py: name a Python file in it")
    return module


def _importable(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


@contextmanager
def _explained(place: str) -> Generator[None]:
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if isinstance(error, ModuleNotFoundError) and f"{place}.".startswith(f"{error.name}."):
            raise
        said = str(error).partition("\n")[0]
        hint = ": name it as package.module instead" if "relative import" in said else ""
        raise TargetError(
            f"{place} could not be loaded: {type(error).__name__}: {said}{_where(error)}{hint}"
        ) from error


def _where(error: BaseException) -> str:
    """Return the last line of the target's own code on the way to the error."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(_IMPORTING)]
    own = [frame for frame in frames if frame.filename == frames[0].filename]
    if not own or isinstance(error, SyntaxError):  # which says itself where it is
        return ""
    return f" (line {own[-1].lineno} of {Path(own[-1].filename).name})"


_IMPORTING = ("<frozen importlib", importlib.__file__, __file__)


def _place(module: ModuleType) -> str:
    return getattr(module, "__file__", None) or module.__name__


def _or_rather(name: str, names: Iterable[str]) -> str:
    near = get_close_matches(name, [other for other in names if not other.startswith("_")], n=3)
    return f"; did you mean {' or '.join(near)}?" if near else ""
