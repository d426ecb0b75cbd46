"""The user's editor."""

from __future__ import annotations

import os
import shlex
import shutil

_USUAL = ("sensible-editor", "nano", "vim", "vi")


def editor_command() -> list[str] | None:
    """Return the command of the editor: $VISUAL, else $EDITOR, else one that is usually there; `None` where none is."""
    for name in ("VISUAL", "EDITOR"):
        command = shlex.split(os.environ.get(name, ""))
        if command:
            return command
    return next(([editor] for editor in _USUAL if shutil.which(editor)), None)
