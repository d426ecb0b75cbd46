"""Faster arithmetic: exponentials by powers of two, approximate functions, compiler flags, tensor cores."""

from __future__ import annotations

import ast
import re

from hkbench.moves.base import Site
from hkbench.moves.embedded import native_code

_FAST = {"expf": "__expf", "logf": "__logf", "powf": "__powf", "sinf": "__sinf", "cosf": "__cosf"}
_LOG2_E = "1.4426950408889634"


def exponentials(source: str, backend: str) -> list[Site]:
    """Find exponentials, and functions that the hardware approximates."""
    if backend == "triton":
        return _powers_of_two(source)
    return _approximate(source) if backend in ("cuda", "hip", "hipkittens") else _flags(source, "-ffast-math")


def instruction_sets(source: str, backend: str) -> list[Site]:
    """Find where the compiler can be told to use all instructions of the CPU."""
    return _flags(source, "-march=native", move="vectorize_global_loads") if backend == "cpp" else []


def dot_precision(source: str, backend: str) -> list[Site]:
    """Find products in single precision that tensor cores can do in TF32."""
    if backend != "triton" or not source.isascii():
        return []
    ways = ("", ', input_precision="tf32x3"', ', input_precision="tf32"')
    found: list[Site] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "tl.dot":
            if {keyword.arg for keyword in node.keywords} & {"input_precision", "allow_tf32"}:
                continue
            at = _end_of_call(source, node)
            label = f"precision of product {len(found) + 1}"
            choices = tuple(way.partition("=")[2].strip('"') or "default" for way in ways)
            found.append(Site("switch_to_mma_or_wgmma", label, choices, 0, ((at, at),), tuple((way,) for way in ways)))
    return found


def _powers_of_two(source: str) -> list[Site]:
    if not source.isascii():
        return []
    spans: list[tuple[int, int]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "tl.exp" and len(node.args) == 1:
            start = _place(source, node.lineno, node.col_offset)
            end = _place(source, node.end_lineno or 1, node.end_col_offset or 0)
            if source.startswith("tl.exp(", start) and not any(a < end and start < b for a, b in spans):
                spans.append((start, end))
    if not spans:
        return []
    places = [place for start, end in sorted(spans) for place in ((start, start + len("tl.exp(")), (end - 1, end))]
    plain = tuple(source[start:end] for start, end in places)
    powers = ("tl.exp2((", f") * {_LOG2_E})") * len(spans)
    return [Site("softmax_math_fusion", "exponentials", ("exp", "exp2"), 0, tuple(places), (plain, powers))]


def _approximate(source: str) -> list[Site]:
    found: list[Site] = []
    for name, fast in _FAST.items():
        spans = []
        for start, code in native_code(source):
            places = re.finditer(rf"(?<![\w:])(?:std::)?{name}(?=\s*\()", code)
            spans += [(start + match.start(), start + match.end()) for match in places]
        if spans:
            plain = tuple(source[a:b] for a, b in spans)
            texts = (plain, (fast,) * len(spans))
            found.append(Site("softmax_math_fusion", name, (name, fast), 0, tuple(spans), texts))
    return found


def _flags(source: str, flag: str, move: str = "softmax_math_fusion") -> list[Site]:
    """Find the flags of C++ in a call of load_inline, where one can be added or left out."""
    match = re.search(r"extra_cflags\s*=\s*\[([^\]]*)\]", source)
    if match is None or not match.group(1).strip():
        return []
    there = re.search(rf',?\s*"{re.escape(flag)}"', match.group(1))
    if there is not None:
        span = (match.start(1) + there.start(), match.start(1) + there.end())
        if there.start() == 0:
            return []
        return [Site(move, flag, ("without", "with"), 1, (span,), (("",), (there.group(0),)))]
    at = match.start(1) + len(match.group(1).rstrip().rstrip(","))
    return [Site(move, flag, ("without", "with"), 0, ((at, at),), (("",), (f', "{flag}"',)))]


def _end_of_call(source: str, node: ast.Call) -> int:
    """Return where a further keyword of a call goes: behind its last argument."""
    last = source[: _place(source, node.end_lineno or 1, node.end_col_offset or 0) - 1].rstrip()
    return len(last) - 1 if last.endswith(",") else len(last)


def _place(source: str, line: int, column: int) -> int:
    return sum(map(len, source.splitlines(keepends=True)[: line - 1])) + column
