"""matplotlib's figures as SVG inside a page: no references out of it, colours by CSS variables, text as text."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What a figure may be drawn in, and the variable of style.css that takes its place. The values only have to differ:
#: what is light and what is dark is said by the variables.
COLOURS = {
    "#010101": "--ink",
    "#020202": "--muted",
    "#030303": "--line",
    "#040404": "--faster",
    "#050505": "--slower",
    "#060606": "--wrong",
    "#070707": "--accent",
    "#080808": "--run-1",
    "#090909": "--run-2",
    "#0a0a0a": "--run-3",
    "#0b0b0b": "--run-4",
    "#0c0c0c": "--run-5",
    "#0d0d0d": "--run-6",
}
INK, MUTED, LINE, FAST, SLOW, FAILED, ACCENT, *RUNS = COLOURS

FONT = 9.0  # points, as the lengths below; a point is a unit of the SVG

_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "hkbench",  # ids are drawn at random without it: the same run gives the same bytes
    "text.parse_math": False,  # a problem's name may hold a dollar sign
    "font.family": "DejaVu Sans",  # comes with matplotlib; only for the layout, the page sets its own
    "font.size": FONT,
    "text.color": INK,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": LINE,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": FONT,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "lines.linewidth": 1.6,
    "lines.markersize": 5.0,
}

_COLOUR = re.compile(r"(?<=[: ])#[0-9a-f]{6}(?=[;\" ])")
_ID = re.compile(r'(\bid="|href="#|url\(#)')
_FONT = re.compile(r"font(-family)?: ?([0-9.]+px )?'DejaVu Sans'[^;\"]*")


def drawn(name: str, title: str, says: str, width: float, height: float, draw: Callable[[Figure], None]) -> str:
    """Return the SVG element of a figure that `draw` fills; `name` keeps its ids apart from other figures'.

    `says` describes it to who does not see it.

    `width` and `height` are in inches of 72 units. `ValueError` when something was drawn in a colour that is not in
    `COLOURS`: it would not follow light and dark.
    """
    import matplotlib as mpl  # half a second: only where figures are drawn
    from matplotlib.figure import Figure

    out = io.StringIO()
    with mpl.rc_context(), warnings.catch_warnings():
        # A letter that the layout's font lacks is drawn by the browser all the same.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        mpl.rcdefaults()  # a matplotlibrc of the user's has no say
        mpl.rcParams.update(_STYLE)
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure)
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    return _inlined(out.getvalue(), name, title, says)


def _inlined(text: str, name: str, title: str, says: str) -> str:
    """Return a stand-alone SVG file as an element: its preamble, metadata and global style go, its ids get a prefix."""
    body = text[text.index("<svg") :].strip()
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>", "", body, flags=re.DOTALL)
    view = re.search(r'viewBox="[^"]*"', body)
    assert view is not None, "matplotlib writes a viewBox"
    labelled = (
        f'<svg {view[0]} role="img" aria-labelledby="{name}-title" aria-describedby="{name}-desc">'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-desc">{escape(says)}</desc>'
    )
    body = re.sub(r"<svg\b[^>]*>", "", body, count=1)
    body = re.sub(r"<!--.*?-->\n?", "", body, flags=re.DOTALL)
    return labelled + re.sub(r"<[^>]+>", lambda tag: _tag(tag[0], name), body)


def _tag(tag: str, name: str) -> str:
    """Return one tag with its ids, fonts and colours made the page's; what is written between tags stays."""
    tag = _FONT.sub(_font, _ID.sub(rf"\g<1>{name}-", tag))
    return re.sub(r'style="[^"]*"', _by_variables, tag)


def _font(found: re.Match[str]) -> str:
    """Return the size that was asked for, in the page's font."""
    return f"font-size: {found[2].strip()}" if found[2] else "font-family: inherit"


def _by_variables(style: re.Match[str]) -> str:
    def variable(colour: re.Match[str]) -> str:
        if colour[0] not in COLOURS:
            raise ValueError(f"{colour[0]} is not a colour of figures (report/page/svg.py)")
        return f"var({COLOURS[colour[0]]})"

    return _COLOUR.sub(variable, style[0])
