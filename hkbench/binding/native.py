"""Read a bare kernel in HIP, CUDA or C++: its parameters, and how its threads share the work."""

from __future__ import annotations

import re

from hkbench.binding.kernel import BareKernel, Kind, NotCertain, Parameter, Shape
from hkbench.profile.names import without_comments

_TYPES = {
    "float": "float32", "double": "float64", "int": "int32", "int32_t": "int32", "unsigned": "int32",
    "unsigned int": "int32", "uint32_t": "int32", "int64_t": "int64", "long": "int64", "long long": "int64",
    "size_t": "int64", "std::size_t": "int64", "std::int64_t": "int64", "uint64_t": "int64", "bool": "bool",
    "__half": "float16", "half": "float16", "_Float16": "float16", "__hip_bfloat16": "bfloat16",
    "hip_bfloat16": "bfloat16", "__nv_bfloat16": "bfloat16", "int8_t": "int8", "uint8_t": "uint8", "int16_t": "int16",
}  # fmt: skip
_KERNEL = re.compile(
    r"__global__\s+(?:void\s+)?(?:__launch_bounds__\s*\(\s*(?P<bounds>\w+)[^)]*\)\s*)?(?:void\s+)?(?P<name>\w+)\s*"
    r"\((?P<parameters>[^)]*)\)\s*\{"
)
_FUNCTION = re.compile(r"^(?:extern\s+\"C\"\s+)?void\s+(?P<name>\w+)\s*\((?P<parameters>[^)]*)\)\s*\{", re.MULTILINE)
_PARAMETER = re.compile(
    r"(?P<const>const\s+)?(?P<type>[\w:]+(?:\s+(?:int|long))?)\s*(?P<const2>\bconst\b)?\s*(?P<stars>\**)\s*"
    r"(?P<restrict>__restrict__|__restrict|restrict)?\s*(?P<name>[A-Za-z_]\w*)"
)
_CONSTANT = r"(?:#\s*define\s+{0}\s+|\b(?:constexpr|const)\s+(?:static\s+)?(?:int|unsigned|size_t)\s+{0}\s*=\s*)(\d+)"
_BLOCK_NAME = re.compile(r"(?:#\s*define\s+|\bint\s+|\bunsigned\s+)((?:BLOCK|THREADS)\w*|k?BlockSize|k?NumThreads)\b")
_INTEGER = r"(?:const\s+)?(?:unsigned\s+int|unsigned|int|auto|size_t|u?int64_t|u?int32_t|long\s+long|long)"
_ALIAS = re.compile(rf"{_INTEGER}\s+(?:const\s+)?(\w+)\s*=\s*((?:blockIdx|threadIdx|blockDim)\.x)\s*;")
_CAST = re.compile(rf"\(\s*{_INTEGER}\s*\)\s*|static_cast\s*<\s*{_INTEGER}\s*>\s*")
_OWN = r"\(?(?P<own>blockIdx\.x\s*\*\s*(?P<width>[\w.]+)|(?P<width2>[\w.]+)\s*\*\s*blockIdx\.x)\)?"
#: A thread's own element: of the workgroup's first one and the thread's number.
_FLAT = (
    re.compile(rf"{_OWN}\s*\+\s*threadIdx\.x(?!\s*[/%*])"),
    re.compile(rf"threadIdx\.x\s*\+\s*{_OWN}"),
)
_ROW = re.compile(r"blockIdx\.x\s*\*\s*(\w+)|(\w+)\s*\*\s*blockIdx\.x")
_VECTORS = re.compile(r"\b(?:float|double|half|__half|u?int|u?char|u?short)[248]\b|\b__(?:hip|nv)_bfloat162\b")
DEFAULT_THREADS = 256


def read_native(text: str, language: str) -> BareKernel:
    """Return the one kernel of a text in "hip", "cuda" or "cpp". Raises NotCertain."""
    bare = without_comments(text)
    if '"""' in text:
        raise NotCertain('it has """ in it, which ends the text that holds it; ask for a kernel without')
    for sign, what in (("<<<", "a launch"), ("hipLaunchKernelGGL", "a launch"), ("PYBIND11_MODULE", "a binding")):
        if sign in bare:
            raise NotCertain(f"it has {what} of its own; ask for ModelNew, which calls it")
    if re.search(r"\bmain\s*\(|#\s*include\s*[<\"](torch|ATen|c10)/", bare):
        raise NotCertain("it is a program or an extension of its own; ask for ModelNew, which calls it")
    if re.search(r"\bnamespace\s+\w", bare):
        raise NotCertain("it defines a namespace; ask for a kernel outside of one")
    found = list((_FUNCTION if language == "cpp" else _KERNEL).finditer(bare))
    if language == "cpp":
        found = [one for one in found if len(re.findall(rf"\b{one['name']}\s*\(", bare)) == 1]
    if len(found) != 1:
        raise NotCertain(f"there are {len(found)} kernels that could be meant; ask for one, and no template")
    declared = found[0]
    if re.search(r"template\s*<[^{};]*>\s*$", bare[: declared.start()]):
        raise NotCertain("it is a template; ask for a kernel with plain types")
    body = _body(bare, declared.end() - 1)
    parameters = tuple(_parameter(part, body) for part in declared["parameters"].split(",") if part.strip())
    if language == "cpp":
        return BareKernel(declared["name"], text.strip(), parameters, Shape.CALLED)
    names = {one.name for one in parameters}
    shape, threads = _launch(bare, body, declared["bounds"], names)
    return BareKernel(declared["name"], text.strip(), parameters, shape, threads)


def _body(text: str, begin: int) -> str:
    depth = 0
    for at in range(begin, len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[begin : at + 1]
    raise NotCertain("its body has no end")


def _parameter(text: str, body: str) -> Parameter:
    match = _PARAMETER.fullmatch(" ".join(text.split()))
    if match is None or len(match["stars"]) > 1:
        raise NotCertain(f"the parameter `{' '.join(text.split())[:80]}` is not a plain pointer or number")
    dtype = _TYPES.get(match["type"])
    if dtype is None:
        raise NotCertain(f"the type of {match['name']}, {match['type']}, is not that of one element")
    if not match["stars"]:
        return Parameter(match["name"], Kind.SCALAR, dtype)
    is_const = bool(match["const"] or match["const2"])
    name = re.escape(match["name"])
    if re.search(rf"atomic\w*\s*\(\s*&?\s*{name}\b", body):
        raise NotCertain(f"atomics add to what {match['name']} held before; ask for ModelNew, which clears it")
    stores = re.search(rf"\b{name}\s*\[[^;]*?\]\s*[-+*/|&^]?=(?!=)|\*\s*\(?\s*{name}\b[^;=]*\)?\s*=(?!=)", body)
    aliased = re.search(rf"reinterpret_cast\s*<[^>]*>\s*\(\s*{name}\b|=\s*{name}\b\s*[+;]", body)
    return Parameter(match["name"], Kind.POINTER, dtype, written=not is_const and bool(stores or aliased))


def _launch(text: str, body: str, bounds: str | None, parameters: set[str]) -> tuple[Shape, int]:
    """Return how the threads share the work, and how many a workgroup has. Raises NotCertain."""
    if re.search(r"(blockIdx|threadIdx|blockDim|gridDim)\.[yz]", body):
        raise NotCertain("its grid is not one-dimensional; ask for ModelNew, which launches it")
    if re.search(r"extern\s+__shared__", text):
        raise NotCertain("it uses shared memory whose size only a launch says; ask for ModelNew, which launches it")
    threads = _threads(text, body, bounds)
    body = _CAST.sub("", body)
    for name, builtin in _ALIAS.findall(body):
        body = re.sub(rf"\b{re.escape(name)}\b", builtin, body)
    body = re.sub(r"\(\s*(blockIdx\.x)\s*\)", r"\1", body)
    flat = next((match for match in (one.search(body) for one in _FLAT) if match is not None), None)
    if flat is not None and (flat["width"] or flat["width2"]) not in parameters:
        width = flat["width"] or flat["width2"]
        if _VECTORS.search(body):
            raise NotCertain("it has vector types, so that a thread may have several elements; ask for ModelNew")
        known = None if width == "blockDim.x" else _constant(width, text)
        if width != "blockDim.x" and (known is None or threads not in (None, known)):
            raise NotCertain(f"how many threads a workgroup has is not certain ({width}); ask for blockDim.x")
        return Shape.ELEMENTS, known or threads or DEFAULT_THREADS
    if any(set(names) & parameters for names in _ROW.findall(body)) and "threadIdx.x" in body:
        return Shape.ROWS, threads or DEFAULT_THREADS
    raise NotCertain("neither threads over elements nor a workgroup a row: ask for ModelNew, which launches it")


def _threads(text: str, body: str, bounds: str | None) -> int | None:
    """Return how many threads a workgroup has, where the text says it. Raises NotCertain where it has to."""
    named = bounds or next(iter(_BLOCK_NAME.findall(text)), None)
    threads = _constant(named, text) if named is not None else None
    if threads is None and "__shared__" in body:
        raise NotCertain("it uses shared memory, and nothing says how many threads a workgroup has: ask for "
                         "__launch_bounds__")  # fmt: skip
    return threads


def _constant(word: str, text: str) -> int | None:
    """Return the value of a number, or of a constant of the text."""
    if word.isdecimal():
        return int(word)
    value = re.search(_CONSTANT.format(re.escape(word)), text)
    return int(value[1]) if value is not None else None
