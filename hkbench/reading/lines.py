"""The line of a candidate's file that a refusal is about, as far as its text, or a traceback, tells it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from hkbench.records import Failure, FailureKind, Finding, Record, Severity

_FRAME = re.compile(r'File "code\.py", line (\d+)')
_INPUT = re.compile(r"input (\d+)\b")
_NAME = re.compile(r"(?:parameter|of|changed) ([A-Za-z_][\w.]*)")
_COPIES = frozenset(["clone", "contiguous", "t", "transpose", "permute", "to", "float", "half", "bfloat16", "detach"])
#: Static rules whose line is that of a refusal, by its kind; what comes first in the tuple counts first.
_RULES: dict[FailureKind, tuple[str, ...]] = {
    FailureKind.NOT_OWN: (
        "py-library-op", "py-compile", "py-library-module", "cpp-library", "py-library-branch", "py-kernel-unused",
        "cpp-kernel-unlaunched", "py-no-kernel", "py-torch-math",
    ),
    FailureKind.SUSPECT: (
        "py-patch-clock", "cpp-patch-clock", "py-thread-unjoined", "py-stream-unjoined", "cpp-thread-unjoined",
        "cpp-stream-unjoined", "py-process", "cpp-process", "py-tensor-subclass", "py-thread", "cpp-thread",
        "py-stream", "cpp-stream", "py-patch", "cpp-hook",
    ),
    FailureKind.NOT_REPEATABLE: ("py-memo-pointer", "py-memo-result", "cpp-static-tensor", "py-graph", "cpp-graph"),
    FailureKind.IMPOSSIBLE: ("py-memo-pointer", "py-memo-result", "cpp-static-tensor"),
    FailureKind.LIMIT: ("py-process", "cpp-process", "py-file-write", "cpp-file", "py-thread"),
    FailureKind.PROTOCOL: ("py-process", "cpp-process", "py-exit", "cpp-exit", "py-harness"),
}  # fmt: skip


class SourceLines(Record):
    """Lines of `ModelNew`, by what stands there; a line that is not found is left out."""

    model: int | None = None  #: its class
    constructor: int | None = None
    returned: int | None = None  #: the last return of forward
    written: dict[int, int] = {}  #: by the number of forward's argument: where it is written to in place
    changed: dict[str, int] = {}  #: by the name of an attribute: where forward writes to it in place
    made: dict[str, int] = {}  #: by the name of an attribute: where the constructor makes it
    derived: int | None = None  #: where something is first derived from a parameter and kept


def lines_of(source: str) -> SourceLines:
    """Find the lines; none in a file that is not Python, or has no `ModelNew` of its own."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return SourceLines()
    model = next((n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == "ModelNew"), None)
    if model is None:
        return SourceLines()
    methods = {node.name: node for node in model.body if isinstance(node, ast.FunctionDef)}
    constructor, forward = methods.get("__init__"), methods.get("forward")
    arguments = [argument.arg for argument in forward.args.args[1:]] if forward is not None else []
    returns = [n.lineno for n in ast.walk(forward) if isinstance(n, ast.Return)] if forward is not None else []
    writes = dict(reversed(list(_writes(forward)))) if forward is not None else {}
    made = dict(reversed(list(_assigned(constructor)))) if constructor is not None else {}
    return SourceLines(
        model=model.lineno,
        constructor=None if constructor is None else constructor.lineno,
        returned=max(returns, default=None),
        written={number: writes[name] for number, name in enumerate(arguments) if name in writes},
        changed={name.removeprefix("self."): line for name, line in writes.items() if name.startswith("self.")},
        made=made,
        derived=_derived(methods.values()),
    )


def line_of(failure: Failure, lines: SourceLines, findings: Sequence[Finding]) -> int | None:
    """Return the line that a failure is about: its traceback's last one in the file, else what its kind points to."""
    frames = _FRAME.findall(failure.detail or "")
    if frames:
        return int(frames[-1])
    match failure.kind:
        case FailureKind.FORBIDDEN:
            return next((found.line for found in findings if found.severity is Severity.HARD), None)
        case FailureKind.INPUT_MODIFIED:
            number = _INPUT.search(failure.message)
            return lines.written.get(int(number[1])) if number else None
        case FailureKind.ALIASED_OUTPUT if "of an input" in failure.message and lines.written:
            return min(lines.written.values())
        case FailureKind.STATE_MODIFIED:
            return _by_name(failure.message, lines.changed)
        case FailureKind.WRONG_PARAMETERS:
            return _by_name(failure.message, lines.made) or lines.constructor or lines.model
        case FailureKind.STALE_PARAMETERS:
            return lines.derived
        case FailureKind.ALIASED_OUTPUT | FailureKind.WRONG_TYPE | FailureKind.WRONG_SHAPE | FailureKind.WRONG_DTYPE:
            return lines.returned
        case FailureKind.WRONG_STRIDES:
            return lines.returned
    for rule in _RULES.get(failure.kind, ()):
        for found in findings:
            if found.rule == rule and found.line is not None:
                return found.line
    return None


def placed(failure: Failure, lines: SourceLines, findings: Sequence[Finding]) -> Failure:
    """Return the failure with its line."""
    return failure.model_copy(update={"line": line_of(failure, lines, findings)})


def _by_name(message: str, lines: dict[str, int]) -> int | None:
    """Return the line of the first parameter that a message names; the line of a submodule is that of its parts."""
    for name in _NAME.findall(message):
        for known in (name, name.partition(".")[0]):
            if known in lines:
                return lines[known]
    return None


def _writes(function: ast.FunctionDef) -> Iterator[tuple[str, int]]:
    """Yield names that a function writes to in place, `x` or `self.x`, with the line, as they stand."""
    for node in ast.walk(function):
        target: ast.expr | None = None
        if isinstance(node, ast.AugAssign):
            target = node.target
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            target = node.targets[0]
        elif isinstance(node, ast.keyword) and node.arg == "out":
            target = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            target = node.func.value if name.endswith("_") and not name.endswith("__") else None
        named = _named(target)
        if named is not None and target is not None:
            yield named, target.lineno


def _named(target: ast.expr | None) -> str | None:
    """Return the variable or attribute of self below subscripts and `.data`."""
    while isinstance(target, ast.Subscript) or (isinstance(target, ast.Attribute) and target.attr == "data"):
        target = target.value
    if isinstance(target, ast.Name):
        return target.id
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "self":
        return f"self.{target.attr}"
    return None


def _assigned(function: ast.FunctionDef) -> Iterator[tuple[str, int]]:
    """Yield the attributes of self that a function assigns, or registers by a name that stands there."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                named = _named(target)
                if named is not None and named.startswith("self."):
                    yield named.removeprefix("self."), node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            first = node.args[0]
            if node.func.attr in ("register_parameter", "register_buffer") and isinstance(first, ast.Constant):
                yield str(first.value), node.lineno


def _derived(functions: Iterable[ast.FunctionDef]) -> int | None:
    """Return the first line that keeps in an attribute of self what a tensor of self is turned or copied into."""
    found = []
    for function in functions:
        for node in ast.walk(function):
            if isinstance(node, ast.Assign) and (_named(node.targets[0]) or "").startswith("self."):
                calls = [c.func for c in ast.walk(node.value) if isinstance(c, ast.Call)]
                turned = any(isinstance(call, ast.Attribute) and call.attr in _COPIES for call in calls)
                of_self = any(isinstance(n, ast.Name) and n.id == "self" for n in ast.walk(node.value))
                if turned and of_self:
                    found.append(node.lineno)
    return min(found, default=None)
