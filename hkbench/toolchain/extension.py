"""One captured call that builds an extension, and its sources laid out as its builder lays them out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from hipkittens_build.source import IDENTIFIER, translation_unit
from hkbench.records import Record

SOURCE_LIMIT = 4 << 20  #: characters of all sources of a call together
_NAME = IDENTIFIER
_FUNCTION = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(::[A-Za-z_][A-Za-z0-9_]*)*")


def _listed(value: Any) -> Any:
    """Return a list of what torch takes as a string (a list of one) or None (an empty list)."""
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else value


def _one_line(values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if not value.isprintable() or len(value) > 4096:
            raise ValueError(f"a flag or path must be one printable line: {value[:80]!r}")
    return tuple(value.strip() for value in values)


Sources = Annotated[tuple[str, ...], BeforeValidator(_listed)]
Flags = Annotated[tuple[str, ...], BeforeValidator(_listed), AfterValidator(_one_line), Field(max_length=256)]


class ExtensionCall(Record):
    """The arguments of one call, as the runner that imported the candidate reports them (JSON, not trusted).

    A `load` call is reported with its files' text: C++ files in `cpp_sources`, `.cu` and `.hip` files in
    `cuda_sources`, `functions` None and `no_implicit_headers` True. A call of `hipkittens_build.build` has `bound`.
    """

    name: str
    cpp_sources: Sources = ()
    cuda_sources: Sources = ()
    functions: dict[str, str] | None = None  #: name -> docstring; None: the sources bind their functions themselves
    extra_cflags: Flags = ()
    extra_cuda_cflags: Flags = ()
    extra_ldflags: Flags = ()
    extra_include_paths: Flags = ()
    no_implicit_headers: bool = False
    with_pytorch_error_handling: bool = True
    bound: dict[str, tuple[str, ...]] | None = None  #: hipkittens_build: function -> members; None: PyTorch builds it
    cxx: str | None = None  #: $CXX as the candidate set it; "hipcc" makes the C++ source a HIP source

    @field_validator("name")
    @classmethod
    def _is_a_module_name(cls, name: str) -> str:
        if not _NAME.fullmatch(name):
            raise ValueError(f"an extension's name must be an identifier of C: {name[:80]!r}")
        return name

    @field_validator("functions", mode="before")
    @classmethod
    def _functions_by_name(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {value: value}
        if not isinstance(value, list | tuple):
            return value
        if not all(isinstance(name, str) for name in value):
            raise ValueError("a function's name must be a text")
        return {name: name for name in value}

    @field_validator("functions")
    @classmethod
    def _functions_are_names(cls, functions: dict[str, str] | None) -> dict[str, str] | None:
        for name in functions or {}:
            if not _FUNCTION.fullmatch(name):
                raise ValueError(f"a function's name must be a name of C++: {name[:80]!r}")
        return functions

    @field_validator("bound")
    @classmethod
    def _bound_are_identifiers(cls, bound: dict[str, tuple[str, ...]] | None) -> dict[str, tuple[str, ...]] | None:
        for name, members in (bound or {}).items():
            for word in (name, *members):
                if not _NAME.fullmatch(word):
                    raise ValueError(f"a bound function or member must be an identifier of C: {word[:80]!r}")
        return bound

    @model_validator(mode="after")
    def _has_bounded_sources(self) -> ExtensionCall:
        total = sum(len(text) for text in (*self.cpp_sources, *self.cuda_sources))
        if total == 0:
            raise ValueError("the call has no source")
        if total > SOURCE_LIMIT:
            raise ValueError(f"the call's sources have {total} characters, more than {SOURCE_LIMIT}")
        return self


@dataclass(frozen=True)
class SourceFiles:
    """The two translation units of an extension; `cuda` is None for a call without device code."""

    main: Path
    cuda: Path | None


def write_bound_source(call: ExtensionCall, folder: Path) -> Path:
    """Write the one source of a `hipkittens_build.build` call into `folder` (created) as that does."""
    assert call.bound is not None
    folder.mkdir(parents=True, exist_ok=True)
    source = folder / f"{call.name}.hip"
    source.write_text(translation_unit("\n".join(call.cuda_sources), call.bound), encoding="utf-8")
    return source


def write_sources(call: ExtensionCall, folder: Path) -> SourceFiles:
    """Write main.cpp and cuda.cu into `folder` (created) as load_inline does, before hipify.

    `#line` marks say whose line is whose: a compiler reports an error in the candidate's device code as
    `cuda_sources:LINE`, counted in the candidate's own text.
    """
    folder.mkdir(parents=True, exist_ok=True)
    implicit = not call.no_implicit_headers
    parts = ["#include <torch/extension.h>"] if implicit else []
    parts += _marked("cpp_sources", call.cpp_sources)
    if call.functions is not None:
        parts += ['#line 1 "bindings"', *_bindings(call.functions, call.with_pytorch_error_handling)]
    main = folder / "main.cpp"
    main.write_text("\n".join(parts) + "\n", encoding="utf-8")
    if not call.cuda_sources:
        return SourceFiles(main, None)
    headers = ("torch/types.h", "cuda.h", "cuda_runtime.h") if implicit else ()
    parts = [*(f"#include <{header}>" for header in headers), *_marked("cuda_sources", call.cuda_sources)]
    cuda = folder / "cuda.cu"
    cuda.write_text("\n".join(parts) + "\n", encoding="utf-8")
    return SourceFiles(main, cuda)


def _marked(label: str, sources: tuple[str, ...]) -> list[str]:
    parts = []
    for index, text in enumerate(sources):
        parts += [f'#line 1 "{label if len(sources) == 1 else f"{label}[{index}]"}"', text]
    return parts


def _bindings(functions: dict[str, str], wrapped: bool) -> list[str]:
    lines = ["PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {"]
    for name, docstring in functions.items():
        target = f"torch::wrap_pybind_function({name})" if wrapped else name
        lines.append(f'm.def("{name}", {target}, "{_c_string(docstring)}");')
    return [*lines, "}"]


def _c_string(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "")
    return "".join(c for c in escaped if c.isprintable()).replace("?", "\\?")
