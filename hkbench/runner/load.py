"""Imports a file that somebody else wrote."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
from collections.abc import Mapping
from types import CodeType, ModuleType


class _Source(importlib.machinery.SourceFileLoader):
    """Compiles the file as it is now: bytecode beside it may be old, or a candidate's work, and none is left there."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def load_file(name: str, path: str, overrides: Mapping[str, object]) -> ModuleType:
    """The file `path` as the module `name`, its constants in `overrides` set. Raises what the file raises."""
    spec = importlib.util.spec_from_file_location(name, path, loader=_Source(name, path))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    vars(module).update(overrides)
    return module
