"""What the sixteen colours of a terminal look like on the screen.

textual's own themes have one colour for red and magenta in the dark, and other backgrounds than its screens.
"""

from __future__ import annotations

from rich.terminal_theme import TerminalTheme

_DARK = [
    (40, 40, 40),
    (255, 92, 87),
    (90, 210, 105),
    (240, 180, 60),
    (110, 165, 255),
    (205, 120, 255),
    (80, 205, 220),
    (215, 215, 215),
]
_LIGHT = [
    (30, 30, 30),
    (180, 30, 30),
    (25, 115, 45),
    (135, 85, 0),
    (25, 75, 190),
    (125, 40, 165),
    (0, 100, 120),
    (90, 90, 90),
]
#: The bright colours are the others, but for black, which is a grey to be read.
DARK = TerminalTheme((18, 18, 18), (224, 224, 224), _DARK, [(125, 125, 125), *_DARK[1:]])
LIGHT = TerminalTheme((224, 224, 224), (30, 30, 30), _LIGHT, [(105, 105, 105), *_LIGHT[1:]])
