"""Watches, or replaces, the candidate's calls of torch's extension builder and of `hipkittens_build.build`."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

import hipkittens_build
import hipkittens_build.binding  # a candidate has it then as it has torch: from before the fork
from hipkittens_build.builder import Members, read_functions


def _import_cpp_extension() -> ModuleType:
    """Imports torch's extension builder, which the forks share, without touching a GPU.

    When it finds nvcc it asks whether there is a GPU, only to print a warning; but a process that has asked cannot fork
    children that use one.
    """
    is_available = torch.cuda.is_available
    torch.cuda.is_available = lambda: True
    try:
        return importlib.import_module("torch.utils.cpp_extension")
    finally:
        torch.cuda.is_available = is_available


cpp_extension = _import_cpp_extension()

#: What is kept of a call for a build without the device (the rest does not change the object code).
_KEPT = (
    "name", "cpp_sources", "cuda_sources", "functions", "extra_cflags", "extra_cuda_cflags", "extra_ldflags",
    "extra_include_paths", "with_pytorch_error_handling", "no_implicit_headers",
)  # fmt: skip
_DEVICE_SUFFIXES = (".cu", ".hip", ".cuh")


def announce_builds(say: Callable[[str], None]) -> None:
    """Says "build_begin" and "build_end" around each build, so that the judge knows which limit applies."""
    for module, name in ((cpp_extension, "load"), (cpp_extension, "load_inline"), (hipkittens_build, "build")):
        setattr(module, name, _announced(getattr(module, name), say))


def _announced(build: Callable[..., Any], say: Callable[[str], None]) -> Callable[..., Any]:
    @functools.wraps(build)
    def announced(*args: Any, **kwargs: Any) -> Any:
        say("build_begin")
        try:
            return build(*args, **kwargs)
        finally:
            say("build_end")

    return announced


class _Unbuilt(ModuleType):
    """Stands for an extension that is not built here: any function may be looked up, none may be called."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)

        def not_built(*_args: Any, **_kwargs: Any) -> Any:
            raise RuntimeError(f"{self.__name__}.{name} was called, but this run only compiles")

        return not_built


def _plain(value: Any) -> Any:
    """As JSON can carry it: paths and other objects as their text."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return value if isinstance(value, (str, bool, int, type(None))) else str(value)


def record_extension_calls(calls: list[dict[str, Any]]) -> None:
    """Makes `load_inline`, `load` and `hipkittens_build.build` append their arguments to `calls` and return a stand-in.

    A `load` call is recorded with the text of its files, since the place that compiles may not see them.
    """

    def record_inline(*args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(("name", "cpp_sources", "cuda_sources"), args, strict=False)), **kwargs}
        return keep(given)

    def record_load(*args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(("name", "sources"), args, strict=False)), **kwargs}
        sources = given.pop("sources")
        paths = [Path(sources)] if isinstance(sources, (str, Path)) else [Path(path) for path in sources]
        device = [path for path in paths if path.suffix in _DEVICE_SUFFIXES]
        host = [path for path in paths if path.suffix not in _DEVICE_SUFFIXES]
        given["cpp_sources"] = [path.read_text() for path in host]
        given["cuda_sources"] = [path.read_text() for path in device]
        return keep(given | {"functions": None, "no_implicit_headers": True})

    def keep(given: dict[str, Any]) -> Any:
        kept = {key: _plain(given[key]) for key in _KEPT if given.get(key) is not None}
        calls.append(kept | ({"cxx": os.environ["CXX"]} if os.environ.get("CXX") else {}))
        return _Unbuilt(str(given["name"]))

    def record_bound(name: str, source: str, functions: Mapping[str, Members], *, flags: Sequence[str] = ()) -> Any:
        bound = {one.name: list(one.members) for one in read_functions(name, functions)}
        calls.append({"name": name, "cuda_sources": source, "bound": bound, "extra_cuda_cflags": _plain(flags)})
        return _Unbuilt(name)

    vars(cpp_extension).update(load_inline=record_inline, load=record_load)
    vars(hipkittens_build).update(build=record_bound)
