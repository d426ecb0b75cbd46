"""Read one candidate: Python, the C++ in its strings, its flags, its comments."""

from __future__ import annotations

import ast
import re
import warnings

from hkbench.reading.budget import SOURCE_BYTES, Budget, TooMuch
from hkbench.reading.caching import MemoRules
from hkbench.reading.cpp import CppRules, CppSource
from hkbench.reading.cpp_rules import FLAGS
from hkbench.reading.forward import ForwardRules
from hkbench.reading.injection import python_comments, read_text
from hkbench.reading.names import Names
from hkbench.reading.python import PythonRules
from hkbench.reading.report import Report
from hkbench.records import BackendName, Finding, Track

_NESTED = 3  #: text that executes text that executes text
_CPP = re.compile(
    r"#\s*include\b|\b__global__\b|\bPYBIND11_MODULE\b|\bTORCH_LIBRARY\b|\bextern\s+\"C\"|\b__device__\b|%:\s*include\b"
    r"|^[ \t]*(?:(?:static|inline) )*(?:void|int|auto|float|double|(?:at|torch)::Tensor)[ \t]+\w+[ \t]*"
    r"\([^;{]{0,1000}\)\s{0,9}\{",
    re.MULTILINE,
)
_FLAG = re.compile(r"^-{1,2}[A-Za-z]")
_TEXTS = ast.Constant | ast.JoinedStr | ast.BinOp | ast.Call | ast.Subscript
_SOURCES = frozenset(["cpp_sources", "cuda_sources", "sources", "hip_sources"])


def read_candidate(source: str, backend: BackendName, track: Track) -> tuple[Finding, ...]:
    """Return what stands out in a candidate, by line. Advice to a reader: only `hard` findings have no honest use.

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


def _read(source: str, backend: BackendName, report: Report, budget: Budget, depth: int) -> None:
    for text, line in python_comments(source, budget):
        read_text(text, line, report, budget)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        if "nested" in str(error) or "null bytes" in str(error):
            report.add("unreadable", None, str(error))
        return  # not Python: the evaluator says so
    python = PythonRules(tree, report, budget)
    python.read()
    report.conclude()
    names = python.names
    nodes = names.scopes.walk(tree)
    sources, defines = _strings(nodes, names, report, budget)
    if depth == 0:
        forward = ForwardRules(tree, names, report, budget, has_native_source=bool(sources))
        forward.read()
        MemoRules(tree, names, forward.reach, report, budget).read()
    cpp = CppRules(report, budget)
    for source_of_cpp in sources:
        for text, line in cpp.read(source_of_cpp, defines):
            read_text(text, line, report, budget)
    cpp.conclude(
        {word for node in nodes if isinstance(word := getattr(node, "value", None), str) and word.isidentifier()}
    )
    report.conclude()
    if depth < _NESTED:
        for text, line in python.executed:
            inner = Report([], report.track, offset=line)
            _read(text, backend, inner, budget, depth + 1)
            for found in inner.findings():
                report.add_finding(found)


def _strings(nodes: list[ast.AST], names: Names, report: Report, budget: Budget) -> tuple[list[CppSource], list[str]]:
    """Return the C++ among the strings, also of those put together, and the macros that flags define."""
    sources: dict[str, CppSource] = {}
    defines: list[str] = []
    formatted = (node for node in nodes if isinstance(node, ast.JoinedStr | ast.FormattedValue))
    parts = {part for node in formatted for part in ast.iter_child_nodes(node)}
    for node in nodes:
        budget.spend()
        if isinstance(node, ast.keyword) and node.arg in _SOURCES:
            _given_source(node.value, names, report, sources)
        if not isinstance(node, _TEXTS) or node in parts or (text := names.text(node)) is None:
            continue
        if _CPP.search(text):
            sources.setdefault(text, CppSource(text, node.lineno, isinstance(node, ast.Constant | ast.JoinedStr)))
        elif _FLAG.match(text):
            defines += [flag[2:] for flag in text.split() if flag.startswith("-D")]
            for rule, pattern in FLAGS.items():
                if any(map(pattern.match, text.split())):
                    report.add(rule, node)
        elif len(text) > 3 and isinstance(node, ast.Constant):
            read_text(text, node.lineno, report, budget)
    # Without the pieces of which larger sources were put together.
    kept: list[CppSource] = []
    for source in sorted(sources.values(), key=lambda source: -len(source.text)):
        if not any(source.text in other.text for other in kept):
            kept.append(source)
    return sorted(kept, key=lambda source: source.first_line), defines


def _given_source(value: ast.expr, names: Names, report: Report, sources: dict[str, CppSource]) -> None:
    """Read what `load_inline` is given: a string, or a list of them."""
    for item in names.elements(value) or [value]:
        known = names.constant(item)
        for text in known if isinstance(known, tuple) else (known,):
            if not isinstance(text, str):
                report.add("py-source-opaque", item)
            elif "{" in text and text not in sources:
                sources[text] = CppSource(text, item.lineno, exact=False)
