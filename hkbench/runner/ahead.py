"""Compile the Triton kernels of a file for a target, without a launch: `python .../hkbench/runner/ahead.py REQUEST`.

REQUEST is a `Request` as JSON. The answer goes to `ANSWER` in the folder that it names; nothing of it is trusted.
"""

from __future__ import annotations

import sys
from types import ModuleType

if __name__ == "__main__":
    # Started by its path: the cage lets nobody list the folders above this one, as an ordinary import would.
    folder = sys.path.pop(0)
    for package, place in (("hkbench", folder.rpartition("/")[0]), ("hkbench.runner", folder)):
        sys.modules[package] = ModuleType(package)
        sys.modules[package].__path__ = [place]

import base64
import importlib
import inspect
import json
import os
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hkbench.runner.load import load_file
from hkbench.runner.triton_sources import Function, innermost, kernels_of, line_of, uses

ANSWER = "answer.json"
MESSAGE_LIMIT = 16_000  #: characters of an error
OPTIONS = ("num_warps", "num_stages")
CONSTEXPR = "constexpr"
_FORMS = ("ptx", "cubin", "amdgcn", "hsaco")
_TYPE = re.compile(r"\*?k?(fp(16|32|64)|bf16|fp8\w+|[iu](1|8|16|32|64))")
_SPELLINGS = {
    "int": "i32", "float": "fp32", "bool": "i1", "float16": "fp16", "float32": "fp32", "float64": "fp64",
    "bfloat16": "bf16", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "int1": "i1",
}  # fmt: skip
_DIVISIBLE = 16  #: what `:16` behind a type says of an argument


@dataclass(frozen=True)
class Request:
    """What is compiled, for what, and how."""

    file: str
    folder: str
    target: tuple[str, str | int, int]  #: back end, architecture, lanes
    signatures: Mapping[str, Sequence[str]]  #: by kernel, "" for the only one: types, and values of constants
    options: Mapping[str, int]


@dataclass(frozen=True)
class Bound:
    """A kernel with the type of each argument, in order, and the values of those that are constants."""

    function: Function
    types: dict[str, str]
    constants: dict[str, object]
    divisible: tuple[str, ...]

    @property
    def positions(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.types)}


class Missing(Exception):
    """A kernel cannot be compiled before more is said of its arguments. The message says what."""


def bound(function: Function, words: Sequence[str] | None) -> Bound:
    """Bind a kernel by the words of a signature, else by its annotations and defaults. Raises Missing."""
    parameters = inspect.signature(function.fn).parameters
    names = list(parameters)
    if words is None:
        words = [_annotated(parameter) for parameter in parameters.values()]
        open_ = [name for name, word in zip(names, words, strict=True) if not word]
        if open_:
            raise Missing(f"the types of {', '.join(open_)} are not known")
    if len(words) != len(names):
        raise Missing(f"it has {len(names)} arguments ({', '.join(names)}), and its signature {len(words)}")
    types: dict[str, str] = {}
    constants: dict[str, object] = {}
    divisible: list[str] = []
    for name, word in zip(names, words, strict=True):
        value = _value(word)
        if value is not None:
            types[name], constants[name] = CONSTEXPR, value
            continue
        types[name], _, hint = word.partition(":")
        if not _TYPE.fullmatch(types[name]) or hint not in ("", str(_DIVISIBLE)):
            raise Missing(f"{word!r} ({name}) is no type: write *fp32, bf16, i32, *fp16:16 or the like, or a number")
        divisible += [name] if hint else []
    unset = [name for name, one in parameters.items() if _text(one) == CONSTEXPR and name not in constants]
    if unset:
        raise Missing(f"{', '.join(unset)} is a constant: its signature has a value there")
    return Bound(function, types, constants, tuple(divisible))


def _annotated(parameter: inspect.Parameter) -> str:
    """Return the word of a signature that an annotation and a default stand for; empty where they say nothing."""
    text = _text(parameter)
    if text == CONSTEXPR:
        return "" if parameter.default is inspect.Parameter.empty else json.dumps(parameter.default)
    text = _SPELLINGS.get(text, text)
    return text if _TYPE.fullmatch(text) else ""


def _text(parameter: inspect.Parameter) -> str:
    """Return an annotation as text, without the names of modules; empty where there is none."""
    told = parameter.annotation
    if told is inspect.Parameter.empty:
        return ""
    text = told.strip("'\"") if isinstance(told, str) else getattr(told, "__name__", str(told))
    return text.rpartition(".")[2]


def _value(word: str) -> object:
    """Return the number or truth value that a word is; None for a type."""
    try:
        value = json.loads(word.lower())
    except ValueError:
        return None
    return value if isinstance(value, int | float) else None


def compiled(kernel: Bound, target: tuple[str, str | int, int], options: Mapping[str, int]) -> tuple[str, Any]:
    """Compile by what the installed Triton offers; return which way that was, and Triton's compiled kernel."""
    triton = importlib.import_module("triton")
    if triton.__version__.startswith("2.") and target[0] != "cuda":
        raise ValueError(f"Triton {triton.__version__} compiles for NVIDIA GPUs alone: install Triton 3")
    source = getattr(importlib.import_module("triton.compiler"), "ASTSource", None)
    if source is None:
        return "triton.compile of Triton 2.0 and 2.1", _by_arguments(triton, kernel, target, options)
    make_target = getattr(importlib.import_module("triton.compiler.compiler"), "GPUTarget", None)
    if "constexprs" in inspect.signature(source.__init__).parameters:
        attributes = {(kernel.positions[name],): [["tt.divisibility", _DIVISIBLE]] for name in kernel.divisible}
        made = source(kernel.function, kernel.types, constexprs=kernel.constants, attrs=attributes)
        way = "ASTSource with constexprs (Triton 3.3 and later)"
    else:
        way, made = _older_source(source, kernel, by_name=make_target is not None)
    where = make_target(*target) if make_target is not None else target[:2]
    return way, triton.compile(made, target=where, options=dict(options))


def _older_source(source: Callable[..., Any], kernel: Bound, by_name: bool) -> tuple[str, Any]:
    """Make the source of Triton 3.0 to 3.2, with constants by name, or of 2.2 and 2.3, by the places of arguments."""
    keys: Mapping[str, str | int] = {name: name for name in kernel.types} if by_name else kernel.positions
    types = {keys[name]: kind for name, kind in kernel.types.items() if name not in kernel.constants}
    values = {keys[name]: value for name, value in kernel.constants.items()}
    way = "ASTSource with constants (Triton 3.0 to 3.2)" if by_name else "ASTSource by places (Triton 2.2 and 2.3)"
    return way, source(kernel.function, types, constants=values)


def _by_arguments(triton: Any, kernel: Bound, target: tuple[str, str | int, int], options: Mapping[str, int]) -> Any:
    """Compile by the function that Triton had before it had sources; NVIDIA GPUs only."""
    places = kernel.positions
    types = {places[name]: kind for name, kind in kernel.types.items() if name not in kernel.constants}
    values = {places[name]: value for name, value in kernel.constants.items()}
    return triton.compile(kernel.function, signature=types, constants=values, cc=target[1], **options)


def answer(request: Request) -> dict[str, object]:
    """Return what became of the file and of each of its kernels."""
    told: dict[str, object] = {"version": importlib.import_module("triton").__version__}
    try:
        module = load_file("candidate", request.file, {})
    except BaseException as error:  # noqa: BLE001 - the file may raise anything, SystemExit too
        return told | {"raised": _raised(error, _line_in(request.file, error))}
    found = kernels_of(vars(module))
    if not found:
        return told
    unknown = [name for name in request.signatures if name and name not in found]
    if unknown:
        return told | {"missing": {unknown[0]: f"no such kernel; there are {', '.join(found)}"}}
    chosen = {name: function for name, function in found.items() if name in request.signatures}
    if not chosen:
        inner = {name for name in found if any(uses(one, name) for key, one in found.items() if key != name)}
        chosen = {name: function for name, function in found.items() if name not in inner} or found
    kernels: list[dict[str, object]] = []
    missing: dict[str, str] = {}
    for name, function in chosen.items():
        words = request.signatures.get(name, request.signatures.get("") if len(chosen) == 1 else None)
        try:
            kernels.append(_one(name, bound(function, words), request))
        except Missing as reason:
            missing[name] = str(reason)
    return told | {"kernels": kernels, "missing": missing}


def _one(name: str, kernel: Bound, request: Request) -> dict[str, object]:
    described: dict[str, object] = {
        "name": name,
        "signature": kernel.types,
        "constants": {key: str(value) for key, value in kernel.constants.items()},
    }
    try:
        way, done = compiled(kernel, request.target, request.options)
    except Exception as error:  # noqa: BLE001 - Triton's passes raise what they like
        cause = innermost(error)
        return described | {"raised": _raised(cause, line_of(kernel.function, cause))}
    metadata = done.metadata
    field = metadata.get if isinstance(metadata, dict) else lambda key, default=None: getattr(metadata, key, default)
    forms = {key: value for key, value in done.asm.items() if key in _FORMS}
    packed = {
        key: base64.b64encode(value if isinstance(value, bytes) else str(value).encode()).decode()
        for key, value in forms.items()
    }
    return described | {
        "symbol": str(field("name", name)),
        "way": way,
        "options": {key: field(key) for key in OPTIONS},
        "lds_bytes": field("shared", 0) or 0,
        "forms": packed,
    }


def _raised(error: BaseException, line: int | None) -> dict[str, object]:
    text = "".join(traceback.format_exception_only(error)).strip()
    return {"error": type(error).__name__, "message": text[:MESSAGE_LIMIT], "line": line}


def _line_in(file: str, error: BaseException) -> int | None:
    """Return the last line of the file that an exception came through, or where it is no Python."""
    if isinstance(error, SyntaxError) and error.filename == file:
        return error.lineno
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno for frame in reversed(frames) if frame.filename == file), None)


def main(text: str) -> None:
    request = Request(**json.loads(text))
    os.environ |= {"TRITON_CACHE_DIR": f"{request.folder}/triton", "HOME": request.folder}
    told = answer(request)
    Path(request.folder, ANSWER).write_text(json.dumps(told), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
