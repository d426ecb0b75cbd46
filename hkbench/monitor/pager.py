"""A widget for long texts: laid out once, then only the lines that are seen are drawn."""

from __future__ import annotations

from typing import ClassVar

from rich.console import RenderableType
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip


class Pager(ScrollView, can_focus=True):
    """Show any rich renderable, as wide as the widget."""

    DEFAULT_CSS = "Pager { height: 1fr; overflow-x: hidden; scrollbar-size: 1 1; scrollbar-gutter: stable; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "scroll_down", "Down", show=False),
        Binding("k", "scroll_up", "Up", show=False),
        Binding("g", "scroll_home", "Top", show=False),
        Binding("G", "scroll_end", "End", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._content: RenderableType = Text("")
        self._strips: list[Strip] = []
        self._width = 0

    def show(self, content: RenderableType, *, keep_place: bool = False) -> None:
        """Put `content` there, from its top unless `keep_place`."""
        self._content = content
        self._lay_out()
        if not keep_place:
            self.scroll_to(y=0, animate=False)

    @property
    def text(self) -> str:
        """What is shown, without styles."""
        return "\n".join(strip.text.rstrip() for strip in self._strips)

    def _lay_out(self) -> None:
        self._width = self.scrollable_content_region.width
        if self._width <= 0:
            return  # not on the screen yet: `on_resize` comes
        console = self.app.console
        lines = console.render_lines(self._content, console.options.update(width=self._width, height=None), pad=False)
        self._strips = [Strip(line) for line in lines]
        self.virtual_size = Size(self._width, len(self._strips))
        self.refresh()

    def on_resize(self) -> None:
        if self.scrollable_content_region.width != self._width:
            self._lay_out()

    def render_line(self, y: int) -> Strip:
        """Return line `y` of what is seen."""
        at = y + self.scroll_offset.y
        base = self.rich_style
        if at >= len(self._strips):
            return Strip.blank(self.size.width, base)
        return self._strips[at].apply_style(base).crop_extend(0, self.size.width, base)
