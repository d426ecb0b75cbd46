"""report.html: the detailed report as one page for a browser."""

from hkbench.report.page.render import render_page

__all__ = ["render_page"]
