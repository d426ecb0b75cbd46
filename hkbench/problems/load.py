"""Read a problem file without running it.

Loading never imports or executes the file: what is needed of it before an evaluation (its name, its text,
which names it defines, its smaller sizes) is found in its syntax tree.
"""

from __future__ import annotations

import ast
import hashlib
import re
import warnings
from pathlib import Path

from hkbench.errors import ProblemError
from hkbench.problems.weak import weak_controls
from hkbench.records import Problem

#: What a problem must define at its top level, in KernelBench's format.
REQUIRED = ("Model", "get_inputs", "get_init_inputs")

_NUMBERED = re.compile(r"(\d+)_")
_LEVEL = re.compile(r"level(\d+)")


def load_problem(path: Path) -> Problem:
    """Return the problem in the file `path`.

    `19_ReLU.py` gets number 19 and name `19_ReLU`; a file without a leading number gets number 0. The level
    is that of a parent folder called `levelN`, else `None`.

    Raises `ProblemError` when the file is missing, is not UTF-8, is not Python, lacks one of `REQUIRED`, or
    has `CPU_SIZES`, `EMULATED_SIZES`, `SHAPES` or `START` that cannot be used.
    """
    data = _read(path)
    source = _decode(path, data)
    tree = _parse(path, source)
    defined = _top_level_names(tree)
    missing = [name for name in REQUIRED if name not in defined]
    if missing:
        raise ProblemError(
            f"{path}: does not define {', '.join(missing)}; a problem needs {', '.join(REQUIRED)} "
            "at its top level (docs/problems.md)"
        )
    sha256 = hashlib.sha256(data).hexdigest()
    level = _LEVEL.fullmatch(path.absolute().parent.name)
    return Problem(
        number=problem_number(path) or 0,
        name=path.stem,
        level=int(level[1]) if level is not None else None,
        path=path,
        source=source,
        sha256=sha256,
        cpu_sizes=_sizes("CPU_SIZES", path, tree, defined),
        emulated_sizes=_sizes("EMULATED_SIZES", path, tree, defined),
        shapes=_shapes(path, tree, defined),
        start=_start(path, tree),
        weak=weak_controls(sha256),
    )


def problem_number(path: Path) -> int | None:
    """Return the number before the first underscore of a file name, or `None`: 19 for `19_ReLU.py`."""
    found = _NUMBERED.match(path.name)
    return int(found.group(1)) if found else None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise ProblemError(f"{path}: no such problem file; check the path") from error
    except OSError as error:
        raise ProblemError(f"{path}: cannot be read ({error.strerror}); name a Python file") from error


def _decode(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProblemError(f"{path}: not UTF-8 at byte {error.start}; save the problem as UTF-8 text") from error


def _parse(path: Path, source: str) -> ast.Module:
    try:
        with warnings.catch_warnings():
            # A stray backslash in somebody's docstring is no reason to warn, or to refuse the file.
            warnings.simplefilter("ignore", SyntaxWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            return ast.parse(source)
    except SyntaxError as error:
        where = f"line {error.lineno}: " if error.lineno else ""
        raise ProblemError(f"{path}: not Python: {where}{error.msg}; mend the file") from error
    except (ValueError, RecursionError, MemoryError) as error:
        # Null bytes (before Python 3.12), and brackets nested deeper than the parser goes.
        reason = str(error) or type(error).__name__
        raise ProblemError(f"{path}: cannot be parsed: {reason}; mend the file") from error


def _top_level_names(tree: ast.Module) -> set[str]:
    """Return the names bound by the module's own statements: classes, functions, assignments and imports."""
    names: set[str] = set()
    for node in tree.body:
        match node:
            case ast.ClassDef() | ast.FunctionDef():
                names.add(node.name)
            case ast.Assign():
                leaves = (leaf for target in node.targets for leaf in ast.walk(target))
                names.update(leaf.id for leaf in leaves if isinstance(leaf, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)) if node.value is not None:
                names.add(name)
            case ast.Import() | ast.ImportFrom():
                names.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
    return names


def _sizes(what: str, path: Path, tree: ast.Module, defined: set[str]) -> dict[str, int | float] | None:
    """Return such a set of sizes, a literal dict of constants that the file defines, or `None`."""
    value = _assigned(tree, what)
    return None if value is None else _constants(what, path, value.lineno, _literal(what, path, value), defined)


def _shapes(path: Path, tree: ast.Module, defined: set[str]) -> tuple[dict[str, int | float], ...]:
    """Return the further shapes that the file names, a literal list of dicts as `CPU_SIZES` is one."""
    value = _assigned(tree, "SHAPES")
    if value is None:
        return ()
    found = _literal("SHAPES", path, value)
    if not isinstance(found, list):
        raise ProblemError(f"{path}: SHAPES (line {value.lineno}) is a {type(found).__name__}, not a list of dicts")
    return tuple(_constants(f"SHAPES[{number}]", path, value.lineno, one, defined) for number, one in enumerate(found))


def _start(path: Path, tree: ast.Module) -> str | None:
    """Return the kernel that a search starts from: a candidate's source, as a literal text."""
    value = _assigned(tree, "START")
    if value is None:
        return None
    found = _literal("START", path, value)
    if not isinstance(found, str):
        raise ProblemError(f"{path}: START (line {value.lineno}) is a {type(found).__name__}, not a candidate's source")
    return found


def _literal(what: str, path: Path, value: ast.expr) -> object:
    try:
        found: object = ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise ProblemError(
            f"{path}: {what} (line {value.lineno}) is not a literal; write names and numbers, as docs/problems.md shows"
        ) from error
    return found


def _constants(what: str, path: Path, line: int, sizes: object, defined: set[str]) -> dict[str, int | float]:
    if not isinstance(sizes, dict):
        raise ProblemError(f"{path}: {what} (line {line}) is a {type(sizes).__name__}, not a dict")
    for name, size in sizes.items():
        if not isinstance(name, str) or isinstance(size, bool) or not isinstance(size, int | float):
            raise ProblemError(f"{path}: {what}[{name!r}] = {size!r} (line {line}); map names to numbers")
        if name not in defined:
            raise ProblemError(
                f"{path}: {what} names {name!r}, which the file does not define at its top level; "
                "correct the name or define the constant"
            )
    return sizes


def _assigned(tree: ast.Module, name: str) -> ast.expr | None:
    """Return the expression last assigned to `name` at the top level."""
    found: ast.expr | None = None
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                found = value
            case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value) if target == name:
                found = value
    return found
