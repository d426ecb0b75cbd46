"""Reports of a run, and of several side by side: readers of their folders."""

from hkbench.report.build import detail, summarise
from hkbench.report.model import Report, Summary
from hkbench.report.side_by_side import SideBySide
from hkbench.report.write import read_side_by_side, write_comparison, write_reports

__all__ = [
    "Report", "SideBySide", "Summary", "detail", "read_side_by_side", "summarise", "write_comparison", "write_reports",
]  # fmt: skip
