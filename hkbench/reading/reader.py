"""Reads one candidate: Python, the C++ in its strings, its flags, its comments."""

from __future__ import annotations

import ast
import re
import warnings

from hkbench.reading.budget import SOURCE_BYTES, Budget, TooMuch
from hkbench.reading.cpp import CppSource, read_cpp
from hkbench.reading.forward import ForwardRules
from hkbench.reading.memo import MemoRules
from hkbench.reading.names import Names
from hkbench.reading.python import read_module
from hkbench.reading.report import Report
from hkbench.reading.speech import python_comments, read_text
from hkbench.records import Backend, Finding, Track

_NESTED = 3  #: text that executes text that executes text
_CPP = re.compile(
    r"#\s*include\b|\b__global__\b|\bPYBIND11_MODULE\b|\bTORCH_LIBRARY\b|\bextern\s+\"C\"|\b__device__\b|%:\s*include\b"
    r"|^[ \t]*(?:(?:static|inline) )*(?:void|int|auto|float|double|(?:at|torch)::Tensor)[ \t]+\w+[ \t]*"
    r"\([^;{]{0,1000}\)\s{0,9}\{",
    re.MULTILINE,
)
_FLAG = re.compile(r"^-{1,2}[A-Za-z]")
_FAST = re.compile(
    r"^-{1,2}(?:use_fast_math|ffast-math|Ofast|ffp-model=fast|funsafe-math-optimizations|ffinite-math-only)$"
)
_SOURCES = frozenset(["cpp_sources", "cuda_sources", "sources", "hip_sources"])


def read_candidate(source: str, backend: Backend, track: Track) -> tuple[Finding, ...]:
    """What stands out in a candidate, by line. Advice to a reader: only `hard` findings have no honest use.

    Never raises, whatever `source` is: what cannot be read within the budget gives the finding `unreadable` beside
    those made until then. A file that is not Python gives only what its text shows. `backend` is the language
    asked for: a C++ kernel counts as the candidate's own in each of them.
    """
    report = Report(source.splitlines() if len(source) <= SOURCE_BYTES else [], track)
    budget = Budget()
    try:
        if len(source) > SOURCE_BYTES:
            raise TooMuch(f"more than {SOURCE_BYTES} characters")
        _read(source, backend, report, budget, depth=0)
    except TooMuch as error:
        report.add("unreadable", None, str(error))
    except (RecursionError, MemoryError):
        report.add("unreadable", None, "nested too deeply")
    except Exception as error:  # noqa: BLE001 - reading is advice: a fault in it must not decide about a candidate
        report.add("unreadable", None, f"{type(error).__name__}: {error}")
    return report.findings()


def _read(source: str, backend: Backend, report: Report, budget: Budget, depth: int) -> None:
    for text, line in python_comments(source, budget):
        read_text(text, line, report, budget)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        if "nested" in str(error) or "null bytes" in str(error):
            report.add("unreadable", None, str(error))
        return  # not Python: the judge says so
    names, executed = read_module(tree, report, budget)
    sources, defines = _strings(tree, names, report, budget)
    if depth == 0:
        forward = ForwardRules(tree, names, report, budget, has_native_source=bool(sources))
        forward.read()
        MemoRules(tree, names, forward.reach, report, budget).read()
    words = {
        w
        for n in ast.walk(tree)
        if isinstance(n, ast.Constant) and isinstance(n.value, str)
        for w in (n.value,)
        if w.isidentifier()
    }
    for text, line in read_cpp(sources, defines, report, budget, words):
        read_text(text, line, report, budget)
    if depth < _NESTED:
        for text, line in executed:
            inner = Report([], report.track, offset=line)
            _read(text, backend, inner, budget, depth + 1)
            for found in inner.findings():
                report.add_finding(found)


def _strings(tree: ast.Module, names: Names, report: Report, budget: Budget) -> tuple[list[CppSource], list[str]]:
    """The C++ among the strings, also of those put together, and the macros that flags define."""
    sources: dict[str, CppSource] = {}
    defines: list[str] = []
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        budget.spend()
        if isinstance(node, ast.keyword) and node.arg in _SOURCES:
            _given_source(node.value, names, report, sources)
        if not isinstance(node, ast.Constant | ast.JoinedStr | ast.BinOp | ast.Call | ast.Subscript):
            continue
        if isinstance(parents.get(node), ast.JoinedStr | ast.FormattedValue):
            continue
        value = names.constant(node)
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
        if not isinstance(text, str):
            continue
        if _CPP.search(text):
            sources.setdefault(text, CppSource(text, node.lineno, isinstance(node, ast.Constant | ast.JoinedStr)))
        elif _FLAG.match(text):
            _flags(text, node, defines, report)
        elif len(text) > 3 and isinstance(node, ast.Constant):
            read_text(text, node.lineno, report, budget)
    return _whole(list(sources.values())), defines


def _given_source(value: ast.expr, names: Names, report: Report, sources: dict[str, CppSource]) -> None:
    """What `load_inline` is given: a string, or a list of them."""
    items = names.elements(value) or [value]
    for item in items:
        known = names.constant(item)
        texts = known if isinstance(known, tuple) else (known,)
        for text in texts:
            if not isinstance(text, str):
                report.add("py-source-opaque", item)
            elif "{" in text and text not in sources:
                sources[text] = CppSource(text, item.lineno, exact=False)


def _whole(sources: list[CppSource]) -> list[CppSource]:
    """Without the pieces of which larger sources were put together."""
    kept: list[CppSource] = []
    for source in sorted(sources, key=lambda s: -len(s.text)):
        if not any(source.text in other.text for other in kept):
            kept.append(source)
    return sorted(kept, key=lambda s: s.first_line)


def _flags(text: str, node: ast.AST, defines: list[str], report: Report) -> None:
    """Flags of the compiler, one a string or several."""
    for flag in text.split():
        if _FAST.match(flag):
            report.add("fast-math", node)
        elif flag.startswith(("-fplugin", "-Xclang=-load", "-fpass-plugin", "-load", "-specs", "-wrapper", "-B/")):
            report.add("flags-plugin", node)
        elif flag.startswith(("-I", "-include", "-isystem", "-iquote", "-L", "-Wl,-rpath")) and (
            "/" in flag and (".." in flag or "/" in flag[2:3])
        ):
            report.add("flags-outside", node)
        elif flag.startswith("-D"):
            defines.append(flag[2:])
    if "-Wl,--wrap" in text or "-Wl,-wrap" in text:
        report.add("cpp-hook", node)
