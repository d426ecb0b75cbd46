"""Collect findings while a candidate is read."""

from __future__ import annotations

import ast
from collections import defaultdict

from hkbench.reading.rules import RULES, finding
from hkbench.records import Finding, Severity, Track

_MAX_FINDINGS_KEPT = 500


class Report:
    """One finding per rule and line. A rule that has a rule `RULE-unjoined` beside it waits for `conclude`."""

    def __init__(self, lines: list[str], track: Track, offset: int | None = None) -> None:
        self.track = track
        self._lines = lines
        self._offset = offset  #: all findings stand in this line: the text was decoded there
        self._found: dict[tuple[str, int | None], Finding] = {}
        self._held: dict[str, list[int]] = defaultdict(list)  #: lines of what has to be joined
        self._joined: set[str] = set()
        self._released: dict[str, int] = defaultdict(int)

    def add(self, rule: str | None, at: ast.AST | int | None, text: str | None = None) -> None:
        """Add a finding at a node or a line (`at`), where there is a rule. Its text is that line unless it is given."""
        if rule is None:
            return
        line = getattr(at, "lineno", None) if isinstance(at, ast.AST) else at
        if f"{rule}-unjoined" in RULES and line is not None:
            self._held[rule].append(line)
        else:
            self._add(rule, line, text)

    def join(self, rule: str) -> None:
        """Note that what the rule speaks of is joined, wherever."""
        self._joined.add(rule)

    def release(self, rule: str, line: int) -> None:
        """Note what undoes that behind the first finding."""
        self._released[rule] = max(self._released[rule], line)

    def conclude(self) -> None:
        """Add what was held, by whether it is joined."""
        for rule, lines in self._held.items():
            is_joined = rule in self._joined and self._released[rule] < min(lines)
            for line in lines:
                self._add(rule if is_joined else f"{rule}-unjoined", line, None)
        self._held.clear()

    def add_finding(self, found: Finding) -> None:
        self._found.setdefault((found.rule, found.line), found)

    def findings(self) -> tuple[Finding, ...]:
        """Return the findings by line; those without a line come first."""
        order = list(Severity)
        return tuple(sorted(self._found.values(), key=lambda f: (f.line or 0, -order.index(f.severity), f.rule)))

    def _add(self, rule: str, line: int | None, text: str | None) -> None:
        if text is None and line is not None and 0 < line <= len(self._lines):
            text = self._lines[line - 1]
        line = self._offset if self._offset is not None else line
        if len(self._found) < _MAX_FINDINGS_KEPT:
            self._found.setdefault((rule, line), finding(rule, line, text or "", self.track))
