"""Rules over C++, CUDA and HIP source: preprocessed by pcpp, parsed by tree-sitter."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import tree_sitter
import tree_sitter_cpp

from hkbench.reading import cpp_names
from hkbench.reading.budget import Budget
from hkbench.reading.cpp_text import Expanded, Scanned, expand, scan
from hkbench.reading.report import Report

_LANGUAGE = tree_sitter.Language(tree_sitter_cpp.language())
_PROC_MEM = re.compile(r"/proc/[^/\s\"]+/(?:task/[^/\"]+/)?mem\b")
_HARNESS = re.compile(r"^hkbench(?:\.\w+)*$|^__main__$")
_ASM_SYSTEM = re.compile(r"\.incbin|\bsyscall\b|\bsvc\b|int\s+\$?0x80|\.pushsection|\.section")
_FAST = re.compile(r"fast-math|fp_contract\s*\(\s*fast|float_control|\bfast\b.*math|associative-math|finite-math")
_TENSOR = re.compile(r"\b(?:at|torch)::Tensor\b|\bTensor\b")
_BEFORE_BRACKET = re.compile(r"(\w+)\s*\(")
_NOT_A_KERNEL = frozenset(
    ["__launch_bounds__", "__attribute__", "__declspec", "alignas", "__maxnreg__", "__cluster_dims__"]
)
_IDENTIFIERS = frozenset(["identifier", "type_identifier", "field_identifier", "namespace_identifier"])


@dataclass
class CppSource:
    """One constant of the candidate. `first_line` is that of its first character; `exact`: lines inside it count on."""

    text: str
    first_line: int
    exact: bool

    def line(self, inside: int) -> int:
        return self.first_line + inside - 1 if self.exact else self.first_line


@dataclass
class Seen:
    """What all sources of a candidate hold together: a kernel may be launched in another one."""

    kernels: dict[str, int] = field(default_factory=dict)
    words: Counter[str] = field(default_factory=Counter)
    streams: list[int] = field(default_factory=list)
    stream_joined: bool = False
    threads: list[int] = field(default_factory=list)
    thread_joined: bool = False
    detached: bool = False


def read_cpp(
    sources: list[CppSource], defines: list[str], report: Report, budget: Budget, python_words: set[str]
) -> list[tuple[str, int]]:
    """Applies the rules to all sources; gives their comments with lines.

    `python_words`: names that stand in strings of the Python part, which may launch a kernel by its name.
    """
    seen = Seen()
    comments: list[tuple[str, int]] = []
    for source in sources:
        scanned = scan(source.text, budget)
        comments += [(text, source.line(line)) for text, line in scanned.comments]
        _directives(scanned, source, report)
        words: Counter[str] = Counter()
        for expanded in expand(scanned.text, defines, budget):
            words = _most(words, _Tree(expanded, source, seen, report, budget).read())
        seen.words.update(words)
    _together(seen, report, python_words)
    return comments


def _directives(scanned: Scanned, source: CppSource, report: Report) -> None:
    for text, line in scanned.includes:
        path = text.strip('<>" ')
        if path.startswith("/") or ".." in path.split("/") or not text.startswith(("<", '"')):
            report.add("cpp-include-outside", source.line(line), f"#include {text}")
    for text, line in scanned.pragmas:
        if _FAST.search(text):
            report.add("fast-math", source.line(line), f"#pragma {text}")


def _together(seen: Seen, report: Report, python_words: set[str]) -> None:
    for line in seen.streams:
        report.add("cpp-stream" if seen.stream_joined else "cpp-stream-unjoined", line)
    unjoined = seen.detached or not seen.thread_joined
    for line in seen.threads:
        report.add("cpp-thread-unjoined" if unjoined else "cpp-thread", line)
    for name, line in seen.kernels.items():
        if seen.words[name] <= 0 and name not in python_words:
            report.add("cpp-kernel-unlaunched", line)


def _most(one: Counter[str], other: Counter[str]) -> Counter[str]:
    """The larger count of each word; unlike `|` it keeps those that are not positive."""
    return Counter({word: max(one.get(word, -9), other.get(word, -9)) for word in {*one, *other}})


class _Tree:
    """One walk over one syntax tree."""

    def __init__(self, expanded: Expanded, source: CppSource, seen: Seen, report: Report, budget: Budget) -> None:
        self._expanded = expanded
        self._source = source
        self._seen = seen
        self._report = report
        self._budget = budget
        self._bytes = expanded.text.encode("utf-8", "replace")
        self._words: Counter[str] = Counter()

    def read(self) -> Counter[str]:
        """Applies the rules; gives how often each identifier stands there, kernels' own declarations left out."""
        for node in self._nodes():
            self._budget.spend()
            kind = node.type
            if kind in _IDENTIFIERS:
                self._identifier(node)
            elif kind == "call_expression":
                called = node.child_by_field_name("function")
                if called is not None:
                    self._called(self._text(called), node)
            elif kind in {"declaration", "field_declaration"}:
                self._declared(node)
            elif kind in {"new_expression", "qualified_identifier", "template_function"}:
                self._named(self._text(node), node)
            elif kind == "function_definition":
                self._defined(node)
            elif kind in {"string_content", "raw_string_content"}:
                self._string(self._text(node), node)
            elif kind in {"gnu_asm_expression", "asm_statement", "ms_asm_block"}:
                self._asm(node)
        self._kernels()
        return self._words

    def _kernels(self) -> None:
        """By the text: with launch bounds and attributes between, the parser does not see a function."""
        text = self._expanded.text
        for start in re.finditer(r"\b__global__\b", text):
            self._budget.spend()
            for word in _BEFORE_BRACKET.finditer(text, start.end(), start.end() + 1_000):
                if word[1] not in _NOT_A_KERNEL:
                    inside = self._expanded.lines[text.count("\n", 0, word.start())]
                    self._seen.kernels.setdefault(word[1], self._source.line(inside))
                    self._words[word[1]] -= 1
                    break

    def _nodes(self) -> Iterator[tree_sitter.Node]:
        cursor = tree_sitter.Parser(_LANGUAGE).parse(self._bytes).walk()
        while True:
            node = cursor.node
            if node is not None:
                yield node
            if cursor.goto_first_child() or cursor.goto_next_sibling():
                continue
            while cursor.goto_parent():
                if cursor.goto_next_sibling():
                    break
            else:
                return

    def _text(self, node: tree_sitter.Node) -> str:
        text = self._bytes[node.start_byte : min(node.end_byte, node.start_byte + 400)].decode("utf-8", "replace")
        return text.strip()

    def _line(self, node: tree_sitter.Node) -> int:
        row = node.start_point[0]
        inside = self._expanded.lines[row] if row < len(self._expanded.lines) else 1
        return self._source.line(inside)

    def _add(self, rule: str, node: tree_sitter.Node) -> None:
        self._report.add(rule, self._line(node), self._text(node))

    def _identifier(self, node: tree_sitter.Node) -> None:
        word = self._text(node)
        self._words[word] += 1
        if cpp_names.OTHER_STREAM.match(word):
            self._seen.streams.append(self._line(node))
        if cpp_names.NEW_STREAM.match(word):
            self._seen.streams.append(self._line(node))
        if cpp_names.JOIN_STREAM.match(word):
            self._seen.stream_joined = True
        if word == "detach":
            self._seen.detached |= bool(self._seen.threads)
        if cpp_names.JOIN_THREAD.match(word) and word not in {"get", "wait"}:
            self._seen.thread_joined = True
        for rule, pattern in cpp_names.IDENTIFIERS.items():
            if pattern.match(word):
                self._add(rule, node)

    def _called(self, text: str, node: tree_sitter.Node) -> None:
        name = _plain(text)
        last = re.split(r"::|\.|->", name)[-1]
        is_method = "." in name or "->" in name
        for rule, pattern in cpp_names.CALLS.items():
            if pattern.match(name) or pattern.match(name.removeprefix("::")) or (not is_method and pattern.match(last)):
                self._add(rule, node)
        if cpp_names.NEW_THREAD.match(name) and ("std::" in name or not is_method):
            self._seen.threads.append(self._line(node))
        if last in {"get", "wait"} and is_method:
            self._seen.thread_joined = True

    def _named(self, text: str, node: tree_sitter.Node) -> None:
        """A name that is not called directly: an address taken, a type constructed, a template's argument."""
        name = _plain(text.removeprefix("new "))
        if "::" not in name:
            return
        for rule, pattern in cpp_names.CALLS.items():
            if pattern.match(name.removeprefix("::")):
                self._add(rule, node)
        if re.match(r"std::(?:j?thread|async)\Z", name.removeprefix("::")):
            self._seen.threads.append(self._line(node))

    def _declared(self, node: tree_sitter.Node) -> None:
        text = self._text(node)
        if re.match(r"(?:inline\s+)?(?:static|thread_local)\b", text) and _TENSOR.search(text.split("(")[0]):
            self._add("cpp-static-tensor", node)

    def _defined(self, node: tree_sitter.Node) -> None:
        declarator = node.child_by_field_name("declarator")
        while declarator is not None and declarator.type != "identifier":
            inner = declarator.child_by_field_name("declarator")
            declarator = inner if inner is not None else None
        if declarator is None:
            return
        name = self._text(declarator)
        if cpp_names.CLOCKS.match(name):
            self._add("cpp-patch-clock", node)

    def _string(self, text: str, node: tree_sitter.Node) -> None:
        if _PROC_MEM.search(text):
            self._add("cpp-proc-mem", node)
        elif text.startswith("/proc/"):
            self._add("cpp-proc", node)
        if _HARNESS.match(text):
            self._add("cpp-harness", node)
        if ".incbin" in text:
            self._add("cpp-asm-system", node)

    def _asm(self, node: tree_sitter.Node) -> None:
        whole = self._bytes[node.start_byte : node.end_byte].decode("utf-8", "replace")
        self._add("cpp-asm-system" if _ASM_SYSTEM.search(whole) else "cpp-asm", node)


def _plain(text: str) -> str:
    """`at :: mm<float>` is `at::mm`."""
    return re.sub(r"\s+", "", text.split("<", 1)[0])
