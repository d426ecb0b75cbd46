"""Import a file that somebody else wrote."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from collections.abc import Mapping
from types import CodeType, ModuleType


class _Source(importlib.machinery.SourceFileLoader):
    """Compile the file as it is now: bytecode beside it may be old, or a candidate's work, and none is left there."""

    def __init__(self, name: str, path: str, text: str | None) -> None:
        super().__init__(name, path)
        self._text = text

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)

    def get_data(self, path: str) -> bytes:
        return super().get_data(path) if self._text is None else self._text.encode()


def load_file(name: str, path: str, overrides: Mapping[str, object], text: str | None = None) -> ModuleType:
    """Load the file `path` as the module `name`, with its constants in `overrides` set. Raises what the file raises.

    `text` is what it holds, for who cannot read it.
    """
    spec = importlib.util.spec_from_file_location(name, path, loader=_Source(name, path, text))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    vars(module).update(overrides)
    return module
