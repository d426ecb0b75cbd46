"""Read C++, CUDA and HIP source: preprocessed by pcpp, parsed and matched by ast-grep."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

from ast_grep_py import Rule, SgNode, SgRoot

from hkbench.reading.budget import Budget
from hkbench.reading.cpp_rules import CALLS, DIRECTIVES, JOINING_METHODS, JOINS, NODES, RELEASES, WORDS, rule_in
from hkbench.reading.cpp_text import Expanded, expand, scan
from hkbench.reading.report import Report

_QUOTED = 400  #: characters of a node that are looked at
_NAMES: Rule = {
    "any": [
        {"kind": kind} for kind in ("call_expression", "qualified_identifier", "template_function", "new_expression")
    ]
}
_ANY_NODE: Rule = {"any": list(NODES.values())}
_BEFORE_BRACKET = re.compile(r"(\w+)\s*\(")
_NOT_A_KERNEL = {"__launch_bounds__", "__attribute__", "__declspec", "alignas", "__maxnreg__", "__cluster_dims__"}


@dataclass
class CppSource:
    """One constant of the candidate. `first_line` is that of its first character; `exact`: lines inside it count on."""

    text: str
    first_line: int
    exact: bool

    def line(self, inside: int) -> int:
        return self.first_line + inside - 1 if self.exact else self.first_line


class CppRules:
    """Read the sources of a candidate one by one: a kernel may be launched in another one, a stream joined."""

    def __init__(self, report: Report, budget: Budget) -> None:
        self._report = report
        self._budget = budget
        self._kernels: dict[str, int] = {}
        self._mentioned: set[str] = set()

    def read(self, source: CppSource, defines: list[str]) -> list[tuple[str, int]]:
        """Apply the rules; give the comments with their lines."""
        scanned = scan(source.text, self._budget)
        for text, line in scanned.directives:
            for rule, pattern in DIRECTIVES.items():
                if pattern.match(text):
                    self._report.add(rule, source.line(line), text)
        for expanded in expand(scanned.text, defines, self._budget):
            lines = [source.line(inside) for inside in [*expanded.lines, 1]]
            root = SgRoot(expanded.text.encode("utf-8", "replace").decode(), "cpp").root()
            self._read_names(root, lines)
            self._read_words(expanded.words, source)
            for rule, nodes in NODES.items() if root.find(**_ANY_NODE) is not None else ():
                for node in root.find_all(**nodes):
                    self._report.add(rule, lines[node.range().start.line], node.text())
            self._find_kernels(expanded, lines)
        return [(text, source.line(line)) for text, line in scanned.comments]

    def conclude(self, python_words: set[str]) -> None:
        """Report what only all sources together tell.

        `python_words`: names that stand in strings of the Python part, which may launch a kernel by its name.
        """
        for name, line in self._kernels.items():
            if name not in self._mentioned | python_words:
                self._report.add("cpp-kernel-unlaunched", line)

    def _read_names(self, root: SgNode, lines: list[int]) -> None:
        for node in root.find_all(**_NAMES):
            called = node.field("function") if node.kind() == "call_expression" else None
            text = (called or node).text()
            self._budget.spend(1 + (len(text) >> 6))
            name = re.sub(r"\s+", "", text[:_QUOTED].removeprefix("new ").split("<", 1)[0])
            names = {name, name.removeprefix("::")}
            if called is not None and ("." in name or "->" in name):
                self._report.join(rule_in(JOINING_METHODS, re.split(r"\.|->", name)[-1]))
            elif called is not None:
                names.add(name.rpartition("::")[2])
            elif "::" not in name:
                continue
            for rule in {rule_in(CALLS, one) for one in names} - {""}:
                self._report.add(rule, lines[node.range().start.line], node.text())

    def _read_words(self, words: dict[str, list[int]], source: CppSource) -> None:
        for word, places in words.items():
            self._budget.spend()
            if rule := rule_in(WORDS, word):
                for inside in places:
                    self._report.add(rule, source.line(inside), word)
            self._report.join(rule_in(JOINS, word))
            if rule := rule_in(RELEASES, word):
                self._report.release(rule, max(map(source.line, places)))

    def _find_kernels(self, expanded: Expanded, lines: list[int]) -> None:
        """Find kernels by the text: with launch bounds and attributes between, the parser sees no function."""
        text, declared = expanded.text, Counter[str]()
        for start in re.finditer(r"\b__global__\b", text):
            self._budget.spend()
            for word in _BEFORE_BRACKET.finditer(text, start.end(), start.end() + 1_000):
                if word[1] not in _NOT_A_KERNEL:
                    self._kernels.setdefault(word[1], lines[text.count("\n", 0, word.start())])
                    declared[word[1]] += 1
                    break
        self._mentioned |= {word for word, places in expanded.words.items() if len(places) > declared[word]}
