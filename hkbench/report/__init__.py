"""Reports of a run: readers of its folder."""

from hkbench.report.build import detail, summarise
from hkbench.report.model import Report, Summary
from hkbench.report.write import write_reports

__all__ = ["Report", "Summary", "detail", "summarise", "write_reports"]
