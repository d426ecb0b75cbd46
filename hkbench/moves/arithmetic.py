"""Faster arithmetic: exponentials by powers of two, approximate functions, compiler flags, tensor cores."""

from __future__ import annotations

import re
from dataclasses import replace

from hkbench.moves.base import Site, Span
from hkbench.moves.python_source import PythonSource, native_code

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
    if backend != "triton":
        return []
    sites = PythonSource(source).further_keywords(
        "switch_to_mma_or_wgmma",
        "precision of product",
        "tl.dot",
        ("default", 'input_precision="tf32x3"', 'input_precision="tf32"'),
        unless={"input_precision", "allow_tf32"},
    )
    # A choice is called as the precision is.
    return [
        replace(site, choices=tuple(choice.removeprefix("input_precision=").strip('"') for choice in site.choices))
        for site in sites
    ]


def _powers_of_two(source: str) -> list[Site]:
    spans: list[Span] = []
    file = PythonSource(source)
    for node in file.calls("tl.exp"):
        start, end = file.span(node)
        apart = not any(a < end and start < b for a, b in spans)
        if len(node.args) == 1 and source.startswith("tl.exp(", start) and apart:
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
