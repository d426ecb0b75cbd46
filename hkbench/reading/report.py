"""Collects findings while a candidate is read."""

from __future__ import annotations

import ast

from hkbench.reading.rules import finding
from hkbench.records import Finding, Severity, Track

_MOST = 500


class Report:
    """One finding per rule and line."""

    def __init__(self, lines: list[str], track: Track, offset: int | None = None) -> None:
        self._lines = lines
        self._track = track
        self._offset = offset  #: all findings stand in this line: the text was decoded there
        self._found: dict[tuple[str, int | None], Finding] = {}

    def add(self, rule: str, at: ast.AST | int | None, text: str | None = None) -> None:
        """`at`: a node or a line. The text of the finding is that line unless it is given."""
        line = getattr(at, "lineno", None) if isinstance(at, ast.AST) else at
        if text is None and line is not None and 0 < line <= len(self._lines):
            text = self._lines[line - 1]
        line = self._offset if self._offset is not None else line
        if len(self._found) < _MOST:
            self._found.setdefault((rule, line), finding(rule, line, text or "", self._track))

    def add_finding(self, found: Finding) -> None:
        self._found.setdefault((found.rule, found.line), found)

    def findings(self) -> tuple[Finding, ...]:
        """By line; what has no line comes first."""
        order = list(Severity)
        return tuple(sorted(self._found.values(), key=lambda f: (f.line or 0, -order.index(f.severity), f.rule)))

    @property
    def track(self) -> Track:
        return self._track
