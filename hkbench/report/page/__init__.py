"""Pages for a browser: report.html of a run, comparison.html of several."""

from hkbench.report.page.comparison import render_comparison
from hkbench.report.page.render import render_page

__all__ = ["render_comparison", "render_page"]
