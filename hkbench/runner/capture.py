"""Watch, or replace, the candidate's calls of torch's extension builder and of `hipkittens_build.build`."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import NoReturn, ParamSpec, TypeVar

import torch

import hipkittens_build
import hipkittens_build.binding  # a candidate has it then as it has torch: from before the fork
from hipkittens_build.builder import Members, read_functions
from hkbench.protocol.messages import Object


def import_module(name: str) -> ModuleType:
    """Import a module of torch's without touching a GPU.

    The builder of extensions asks at its import whether there is one, to print a warning, and Inductor to choose how it
    measures. A process that has asked cannot fork children that use a GPU, and cannot hide one from itself any more.
    """
    is_available = torch.cuda.is_available
    torch.cuda.is_available = lambda: True
    try:
        return importlib.import_module(name)
    finally:
        torch.cuda.is_available = is_available


Arguments = ParamSpec("Arguments")
Built = TypeVar("Built")

cpp_extension = import_module("torch.utils.cpp_extension")

#: What is kept of a call for a build without the device (the rest does not change the object code).
_KEPT = (
    "name", "cpp_sources", "cuda_sources", "functions", "extra_cflags", "extra_cuda_cflags", "extra_ldflags",
    "extra_include_paths", "with_pytorch_error_handling", "no_implicit_headers",
)  # fmt: skip
_DEVICE_SUFFIXES = (".cu", ".hip", ".cuh")


class FailedBuilds:
    """Builds that a rehearsal has seen fail, by what they were asked, with what was said: they are not made again."""

    def __init__(self) -> None:
        self._messages: dict[str, str] = {}
        self.told: Callable[[bytes], object] | None = None  #: of all of them, once there is one more; else none is kept

    def read(self, told: bytes) -> None:
        """Take over what another process has told."""
        self._messages.update(json.loads(told) if told else {})

    def check(self, asked: str) -> None:
        """Raise what torch raised for it, where this build is known to fail."""
        if asked in self._messages:
            raise RuntimeError(self._messages[asked])

    def add(self, asked: str, error: RuntimeError) -> None:
        if self.told is not None:
            self._messages[asked] = str(error)
            self.told(json.dumps(self._messages).encode())


#: Told "build_begin" and "build_end".
listeners: list[Callable[[str], None]] = []


def announce_builds(failed: FailedBuilds) -> None:
    """Tell the listeners of each build, so that the evaluator knows which limit applies."""
    for module, name in ((cpp_extension, "load"), (cpp_extension, "load_inline"), (hipkittens_build, "build")):
        setattr(module, name, _announced(getattr(module, name), failed))


def announce_compilers() -> None:
    """Do so for compilers that work in this process, of what has been imported: Triton's, and torch.compile."""
    compiler = sys.modules.get("triton.compiler")
    if compiler is not None:
        vars(compiler)["compile"] = _announced(vars(compiler)["compile"])
    dynamo = sys.modules.get("torch._dynamo.callback")
    if dynamo is not None:
        dynamo.on_compile_start(lambda *_: _tell("build_begin"))
        dynamo.on_compile_end(lambda *_: _tell("build_end"))


@contextlib.contextmanager
def building() -> Iterator[None]:
    """Tell the listeners of a build that goes on meanwhile."""
    _tell("build_begin")
    try:
        yield
    finally:
        _tell("build_end")


def _tell(event: str) -> None:
    for listener in listeners:
        listener(event)


def _announced(build: Callable[Arguments, Built], failed: FailedBuilds | None = None) -> Callable[Arguments, Built]:
    @functools.wraps(build)
    def announced(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Built:
        asked = "" if failed is None else hashlib.sha256(repr((args, kwargs)).encode(errors="replace")).hexdigest()
        if failed is not None:
            failed.check(asked)
        with building():
            try:
                return build(*args, **kwargs)
            except RuntimeError as error:
                if failed is not None:
                    failed.add(asked, error)
                raise

    return announced


class _Unbuilt(ModuleType):
    """Stands for an extension that is not built here: any function may be looked up, none may be called."""

    def __getattr__(self, name: str) -> Callable[..., NoReturn]:
        if name.startswith("__"):
            raise AttributeError(name)

        def not_built(*_args: object, **_kwargs: object) -> NoReturn:
            raise RuntimeError(f"{self.__name__}.{name} was called, but this run only compiles")

        return not_built


def _plain(value: object) -> object:
    """Return a value as JSON can carry it: paths and other objects as their text."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    return value if isinstance(value, (str, bool, int, type(None))) else str(value)


def _paths(sources: object) -> list[Path]:
    if isinstance(sources, (str, Path)):
        return [Path(sources)]
    if not isinstance(sources, Iterable):
        raise TypeError(f"load takes a path or several, not {sources!r}")
    return [Path(source) for source in sources]


def record_extension_calls(calls: list[Object]) -> None:
    """Make `load_inline`, `load` and `hipkittens_build.build` append their arguments to `calls` and return a stand-in.

    A `load` call is recorded with the text of its files, since the place that compiles may not see them.
    """

    def record_inline(*args: object, **kwargs: object) -> ModuleType:
        given = {**dict(zip(("name", "cpp_sources", "cuda_sources"), args, strict=False)), **kwargs}
        return keep(given)

    def record_load(*args: object, **kwargs: object) -> ModuleType:
        given = {**dict(zip(("name", "sources"), args, strict=False)), **kwargs}
        paths = _paths(given.pop("sources"))
        device = [path for path in paths if path.suffix in _DEVICE_SUFFIXES]
        host = [path for path in paths if path.suffix not in _DEVICE_SUFFIXES]
        given["cpp_sources"] = [path.read_text() for path in host]
        given["cuda_sources"] = [path.read_text() for path in device]
        return keep(given | {"functions": None, "no_implicit_headers": True})

    def keep(given: Object) -> ModuleType:
        kept = {key: _plain(given[key]) for key in _KEPT if given.get(key) is not None}
        calls.append(kept | ({"cxx": os.environ["CXX"]} if os.environ.get("CXX") else {}))
        return _Unbuilt(str(given["name"]))

    def record_bound(
        name: str, source: str, functions: Mapping[str, Members], *, flags: Sequence[str] = ()
    ) -> ModuleType:
        bound = {one.name: list(one.members) for one in read_functions(name, functions)}
        calls.append({"name": name, "cuda_sources": source, "bound": bound, "extra_cuda_cflags": _plain(flags)})
        return _Unbuilt(name)

    vars(cpp_extension).update(load_inline=record_inline, load=record_load)
    vars(hipkittens_build).update(build=record_bound)
