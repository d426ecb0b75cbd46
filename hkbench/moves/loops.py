"""Loops of C++: threads, vectors, unrolling, and the order of two that stand one in the other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ast_grep_py import SgNode, SgRoot

from hkbench.moves.base import Site
from hkbench.moves.python_source import native_code

_UNROLLS = (2, 4, 8)
_SCHEDULE = re.compile(r"schedule\(\s*(static|dynamic|guided)\s*(?:,\s*\d+\s*)?\)")
_SCHEDULES = ("schedule(static)", "schedule(static, 1)", "schedule(dynamic, 1)", "schedule(dynamic, 8)")
_COUNTED = re.compile(r"for\s*\(\s*(?:const\s+)?[\w:]+(?:\s+\w+)*\s+(\w+)\s*=[^;]*;[^;]*;[^;]*\)\s*$", re.DOTALL)
_SUM = re.compile(r"^\s*(\w+)\s*\+=[^;]*;\s*$")


@dataclass(frozen=True)
class Loop:
    """A loop with a counter: where it stands in the file, and what it is like."""

    at: int
    node: SgNode
    header: tuple[int, int]  #: from `for` to the closing bracket
    variable: str
    indent: str | None  #: what stands before it on its line; None: something else than white space
    pragma: tuple[int, int] | None  #: the line before it, where that is a pragma
    innermost: bool
    outermost: bool


def loops_of(source: str) -> Iterator[Loop]:
    """Yield the counted loops of all C++ code of a candidate, in the order of the file."""
    for start, code in native_code(source):
        if not code.isascii():
            continue
        root = SgRoot(code, "cpp").root()
        for node in root.find_all(kind="for_statement"):
            body = node.field("body")
            if body is None:
                continue
            span = node.range()
            begin = span.start.index
            head = code[begin : body.range().start.index].rstrip()
            match = _COUNTED.match(head)
            if match is None:
                continue
            before = code[code.rfind("\n", 0, begin) + 1 : begin]
            yield Loop(
                at=start + begin,
                node=node,
                header=(start + begin, start + begin + len(head)),
                variable=match.group(1),
                indent=None if before.strip() else before,
                pragma=_pragma_before(code, begin, start),
                innermost=not any(body.find_all(kind="for_statement")) and body.kind() != "for_statement",
                outermost=not any(parent.kind() == "for_statement" for parent in node.ancestors()),
            )


def _pragma_before(code: str, begin: int, start: int) -> tuple[int, int] | None:
    line_start = code.rfind("\n", 0, begin) + 1
    if code[line_start:begin].strip():
        return None
    before = code.rfind("\n", 0, max(0, line_start - 1)) + 1
    text = code[before : max(0, line_start - 1)]
    return (start + before, start + line_start) if text.lstrip().startswith("#pragma") else None


def vectors(source: str, backend: str) -> list[Site]:
    """Find innermost loops that the compiler can be told to vectorise or unroll on a CPU."""
    if backend != "cpp":
        return []
    found = []
    for number, loop in enumerate(_plain(source), start=1):
        body = loop.node.field("body")
        sums = sorted(set(_sums(body))) if body is not None else []
        reduction = f" reduction(+ : {', '.join(sums)})" if sums else ""
        simd = (f"#pragma omp simd{reduction}\n",) if "-fopenmp" in source else ()
        texts = ("", *simd, "#pragma GCC ivdep\n", *(f"#pragma GCC unroll {times}\n" for times in _UNROLLS))
        found.append(_inserted("vectorize_global_loads", f"vectors of loop {number} ({loop.variable})", loop, texts))
    return found


def _sums(body: SgNode) -> Iterator[str]:
    """Yield names that a body only adds to."""
    inner = body.children() if body.kind() == "compound_statement" else [body]
    for statement in inner:
        if statement.kind() == "expression_statement" and (match := _SUM.match(statement.text())):
            yield match.group(1)


def unrolled(source: str, backend: str) -> list[Site]:
    """Find innermost loops that can be unrolled on a GPU, so that several loads are under way at once."""
    if backend not in ("cuda", "hip", "hipkittens"):
        return []
    texts = ("", *(f"#pragma unroll {times}\n" for times in (1, *_UNROLLS)))
    return [
        _inserted("enable_async_pipeline", f"unrolling of loop {number} ({loop.variable})", loop, texts)
        for number, loop in enumerate(_plain(source), start=1)
    ]


def _plain(source: str) -> list[Loop]:
    return [loop for loop in loops_of(source) if loop.innermost and loop.pragma is None]


def threads(source: str, backend: str) -> list[Site]:
    """Find outermost loops, and how their turns are handed out to threads."""
    if backend != "cpp" or "-fopenmp" not in source:
        return []
    found = []
    for number, loop in enumerate((one for one in loops_of(source) if one.outermost), start=1):
        label = f"threads of loop {number} ({loop.variable})"
        if loop.pragma is None:
            if not loop.innermost:
                texts = ("", *(f"#pragma omp parallel for {how}\n" for how in _SCHEDULES))
                found.append(_inserted("grouped_gemm_colmajor", label, loop, texts))
            continue
        line = source[loop.pragma[0] : loop.pragma[1]]
        if "omp" in line and "for" in line:
            match = _SCHEDULE.search(line)
            at = (match.start(), match.end()) if match else (len(line.rstrip()), len(line.rstrip()))
            now = match.group(0) if match else ""
            lead = "" if match else " "
            values = [now, *(lead + how for how in _SCHEDULES if how != now)]
            span = (loop.pragma[0] + at[0], loop.pragma[0] + at[1])
            found.append(Site.of_values("grouped_gemm_colmajor", label, span, values, now))
    return found


def order(source: str, backend: str) -> list[Site]:
    """Find two loops, of which one is all that the other does: either may be the outer one."""
    del backend
    found = []
    loops = list(loops_of(source))
    for number, outer in enumerate(loops, start=1):
        inner = _only_loop(outer, loops)
        if inner is None or inner.pragma is not None:
            continue
        if re.search(rf"\b{outer.variable}\b", source[inner.header[0] : inner.header[1]]):
            continue  # its bounds depend on the outer counter
        texts = tuple(source[start:end] for start, end in (outer.header, inner.header))
        label = f"order of loops {number} ({outer.variable}, {inner.variable})"
        choices = (f"{outer.variable} outside", f"{inner.variable} outside")
        spans = (outer.header, inner.header)
        found.append(Site("grouped_gemm_colmajor", label, choices, 0, spans, (texts, texts[::-1])))
    return found


def _only_loop(outer: Loop, loops: list[Loop]) -> Loop | None:
    body = outer.node.field("body")
    if body is None:
        return None
    inner = body
    if body.kind() == "compound_statement":
        statements = [child for child in body.children() if child.is_named() and child.kind() != "comment"]
        if len(statements) != 1:
            return None
        inner = statements[0]
    if inner.kind() != "for_statement":
        return None
    at = outer.at + inner.range().start.index - outer.node.range().start.index
    return next((loop for loop in loops if loop.at == at), None)


def _inserted(move: str, label: str, loop: Loop, texts: tuple[str, ...]) -> Site:
    # Each pragma gets a line of its own, wherever the loop begins.
    before, after = ("\n", "") if loop.indent is None else ("", loop.indent)
    edits = tuple((f"{before}{text}{after}" if text else "",) for text in texts)
    names = tuple(text.strip().removeprefix("#pragma ") or "as it is" for text in texts)
    return Site(move, label, names, 0, ((loop.at, loop.at),), edits)
