"""Write a spec as what hkbench judges: a problem file, and the candidate that its kernel is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from hkbench.specs.expressions import CPP_FUNCTIONS, in_cpp, in_python
from hkbench.specs.records import Fill, KernelSpec, Role, Scalar, Size, Tensor

_CDIV = "def cdiv(a, b):\n    return -(-a // b)\n"
_C_TYPES = {"int32": "int", "int64": "int64_t", "float32": "float", "float64": "double", "bool": "bool"}


class Written(NamedTuple):
    """A candidate but for its `ModelNew`."""

    head: str  #: imports, the kernel, and what builds it
    call: str  #: of the kernel, where each argument and each size is a name of its own


def candidate(spec: KernelSpec) -> str:
    """Return the candidate whose `ModelNew` launches the spec's kernel."""
    written = LANGUAGES[spec.language](spec)
    return f"{written.head}\n\n\n{_model_new(spec, written.call)}"


def problem(spec: KernelSpec) -> str:
    """Return the problem file: the reference as `Model`, inputs as the spec fills them, the kernel as `START`."""
    start = candidate(spec)
    head = f'"""The kernel {spec.name}, from its spec."""'
    model = _of_kernel(spec, start) if spec.reference is None else reference_model(head, spec.reference, spec.inputs)
    return (
        f"{model}\n\n{inputs_text(spec.inputs, spec.shapes, spec.cpu_shapes, spec.emulated_shapes)}\n\n"
        f"#: The kernel that a search starts from.\nSTART = {_literal(start)}\n"
    )


def inputs_text(
    tensors: Sequence[Tensor],
    shapes: Mapping[str, int],
    cpu_shapes: Mapping[str, int] | None,
    emulated_shapes: Mapping[str, int] | None,
) -> str:
    """Return what a problem file has below its `Model`: sizes, `get_inputs`, `get_init_inputs`."""
    sizes = "\n".join(f"{name} = {value}" for name, value in shapes.items())
    own = "".join(
        f"{name} = {dict(values)!r}\n"
        for name, values in (("CPU_SIZES", cpu_shapes), ("EMULATED_SIZES", emulated_shapes))
        if values is not None
    )
    inputs = "".join(f"        {_filled(tensor)},\n" for tensor in tensors)
    return (
        f"{sizes}\n{own}\n\n{_helpers(tensors)}"
        f"def get_inputs():\n    return [\n{inputs}    ]\n\n\ndef get_init_inputs():\n    return []\n"
    )


def reference_model(head: str, reference: str, inputs: Sequence[Tensor]) -> str:
    """Return a `Model` that calls the function `reference`, with the module's docstring `head` before it."""
    names = ", ".join(tensor.name for tensor in inputs)
    return (
        f"{head}\n\nimport torch\nimport torch.nn as nn\n\n\n{reference.strip()}\n\n\nclass Model(nn.Module):\n"
        f"    def forward(self, {names}):\n        return reference({names})"
    )


def _of_kernel(spec: KernelSpec, start: str) -> str:
    """Return a `Model` that is the kernel itself."""
    names = ", ".join(tensor.name for tensor in spec.inputs)
    # Where the judge asks for the reference in double precision, the kernel still gets what it is written for.
    cast = ", ".join(f"{tensor.name}.to(torch.{tensor.dtype})" for tensor in spec.inputs)
    return (
        f"{start.replace('class ModelNew(', 'class Kernel(').rstrip()}\n\n\nclass Model(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.kernel = Kernel()\n\n"
        f"    def forward(self, {names}):\n        return self.kernel({cast})"
    )


def _helpers(tensors: Sequence[Tensor]) -> str:
    text = ""
    if any("cdiv" in str(size) for tensor in tensors for size in (*tensor.shape, *(tensor.strides or ()))):
        text += f"{_CDIV}\n\n"
    if any(tensor.filled is Fill.DATA for tensor in tensors):
        text += (
            "def decoded(data, packed, dtype, shape):\n    import base64\n    import zlib\n\n"
            "    raw = base64.b64decode(data)\n"
            "    raw = bytearray(zlib.decompress(raw) if packed else raw)\n"
            "    return torch.frombuffer(raw, dtype=dtype).reshape(shape).clone()\n\n\n"
        )
    if any(tensor.strides is not None for tensor in tensors):
        text += (
            "def strided(values, strides):\n"
            "    return torch.empty_strided(values.shape, strides, dtype=values.dtype).copy_(values)\n\n\n"
        )
    return text


def _filled(tensor: Tensor) -> str:
    """Return the Python that makes an input."""
    shape, dtype = _shape(tensor.shape), f"torch.{tensor.dtype}"
    whole = tensor.dtype.startswith(("int", "uint", "bool"))
    match tensor.filled:
        case Fill.RANDN:
            scaled = "" if tensor.scale == 1.0 else f" * {tensor.scale!r}"
            text = f"(torch.randn({shape}){scaled}).to({dtype})"
        case Fill.UNIFORM if whole:
            text = f"torch.randint({int(tensor.low)}, {int(tensor.high)}, {shape}, dtype={dtype})"
        case Fill.UNIFORM:
            text = f"(torch.rand({shape}) * {tensor.high - tensor.low!r} + {tensor.low!r}).to({dtype})"
        case Fill.ARANGE:
            count = " * ".join(f"({in_python(size)})" for size in tensor.shape) or "1"
            text = f"torch.arange({count}).reshape({shape}).to({dtype})"
        case Fill.DATA:
            text = f"decoded({tensor.data!r}, {tensor.compression == 'zlib'}, {dtype}, {shape})"
        case _:
            value = _constant(tensor)
            text = f"torch.full({shape}, {int(value) if whole else value!r}, dtype={dtype})"
    return text if tensor.strides is None else f"strided({text}, {_shape(tensor.strides)})"


def _constant(tensor: Tensor) -> float:
    """Return the one value that a tensor is filled with."""
    return {Fill.ZEROS: 0.0, Fill.ONES: 1.0}.get(tensor.filled, tensor.value)


def _literal(text: str) -> str:
    """Return a Python literal of a text: a raw string in lines where it can be one."""
    if "'''" in text or text.endswith(("'", "\\")) or not text.isascii():
        return repr(text)
    return f"r'''{text}'''"


def _shape(sizes: tuple[Size, ...]) -> str:
    return f"({''.join(f'{in_python(size)}, ' for size in sizes).rstrip()})"


# The candidates.


def _triton(spec: KernelSpec) -> Written:
    launch = spec.launch
    constants = "".join(f"{name} = {value}\n" for name, value in launch.constants.items())
    given = [f"{name}={name}" for name in launch.constants]
    given += [f"num_warps={launch.warps}", f"num_stages={launch.stages}"]
    call = ", ".join([*(_python_argument(one) for one in spec.arguments), *given])
    imports = "" if "import triton.language" in (spec.source or "") else "import triton\nimport triton.language as tl\n"
    head = (
        f"{_title(spec)}\n\nimport torch\n{imports}from torch import nn\n\n{constants}\n\n{_CDIV}\n\n"
        f"{(spec.source or '').strip()}"
    )
    return Written(head, f"{spec.entry}[{_shape(launch.grid)}]({call})")


def _cpp(spec: KernelSpec) -> Written:
    binding = (
        "\n\n#include <pybind11/pybind11.h>\n\n"
        f"{_AT}\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{\n"
        f'    m.def("launch", []({_parameters(spec)}) {{ {spec.entry}({_passed(spec)}); }},\n'
        "          pybind11::call_guard<pybind11::gil_scoped_release>());\n}\n"
    )
    sources = f'KERNEL = r"""\n#include <cstdint>\n{_constants(spec)}\n{(spec.source or "").strip()}{binding}"""\n'
    link = f"    extra_ldflags={_strings(spec.link_flags)},\n" if spec.link_flags else ""
    build = (
        f'extension = load_inline(\n    name="{spec.name}",\n    cpp_sources=KERNEL,\n    no_implicit_headers=True,\n'
        f"    extra_cflags={_strings(spec.flags)},\n{link})\n"
    )
    call = f"extension.launch({', '.join(_host_argument(one) for one in spec.arguments)})"
    return Written(f"{_extension_head(spec)}\n{sources}\n{build}".rstrip("\n"), call)


def _gpu(spec: KernelSpec) -> Written:
    hip = spec.language == "hip"
    header, api = ("hip/hip_runtime.h", "hip") if hip else ("cuda_runtime.h", "cuda")
    launch = spec.launch
    declared = f"const char* launch({_parameters(spec)}, uint64_t stream)"
    grid, block = (", ".join(f"unsigned({in_cpp(size)})" for size in sizes) for sizes in (launch.grid, launch.block))
    kernel = (
        f'KERNEL = r"""\n#include <{header}>\n#include <cstdint>\n{_constants(spec)}\n{(spec.source or "").strip()}\n\n'
        f"{CPP_FUNCTIONS}\n{_AT}\n{declared} {{\n"
        f"    {spec.entry}<<<dim3({grid}), dim3({block}), {in_cpp(launch.shared_bytes)}, "
        f"reinterpret_cast<{api}Stream_t>(stream)>>>({_passed(spec)});\n"
        f"    const {api}Error_t status = {api}GetLastError();\n"
        f'    return status == {api}Success ? nullptr : {api}GetErrorString(status);\n}}\n"""\n'
    )
    names = ", ".join([*(argument.name for argument in spec.arguments), *_sizes(spec), "stream"])
    binding = (
        'BINDING = r"""\n#include <cstdint>\n#include <pybind11/pybind11.h>\n#include <stdexcept>\n\n'
        f"{declared};\n\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{\n"
        f'    m.def("launch", []({_parameters(spec)}, uint64_t stream) {{\n'
        f"        if (const char* error = launch({names})) throw std::runtime_error(error);\n    }});\n}}\n"
        '"""\n'
    )
    build = (
        f'extension = load_inline(\n    name="{spec.name}",\n    cpp_sources=BINDING,\n    cuda_sources=KERNEL,\n'
        f"    no_implicit_headers=True,\n    extra_cuda_cflags={_strings(spec.flags)},\n)\n"
    )
    given = [*(_host_argument(one) for one in spec.arguments), *_sizes(spec)]
    stream = "torch.cuda.current_stream().cuda_stream"
    call = f"extension.launch({', '.join([*given, stream])})"
    return Written(f"{_extension_head(spec)}\n{kernel}\n{binding}\n{build}".rstrip("\n"), call)


#: An address as a pointer of whatever type the kernel wants.
_AT = """\
struct At {
    uint64_t address;
    template <typename T> operator T*() const { return reinterpret_cast<T*>(address); }
};
"""


def _title(spec: KernelSpec) -> str:
    return f'"""The kernel {spec.entry} of {spec.name}."""'


def _extension_head(spec: KernelSpec) -> str:
    return (
        f"{_title(spec)}\n\nimport torch\nfrom torch import nn\nfrom torch.utils.cpp_extension import load_inline\n\n\n"
        f"{_CDIV}\n"
    )


def _strings(texts: tuple[str, ...]) -> str:
    return "[" + ", ".join('"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in texts) + "]"


def _constants(spec: KernelSpec) -> str:
    return "".join(f"constexpr int {name} = {value};\n" for name, value in spec.launch.constants.items())


def _sizes(spec: KernelSpec) -> list[str]:
    """Return the sizes that a launch needs and no argument of the kernel is called like."""
    names = {argument.name for argument in spec.arguments}
    return [name for name in spec.shapes if name not in names]


def _parameters(spec: KernelSpec) -> str:
    """Return the parameters of the C++ function that launches: addresses, numbers, further sizes."""
    of_arguments = [
        f"{_C_TYPES[argument.dtype]} {argument.name}" if isinstance(argument, Scalar) else f"uint64_t {argument.name}"
        for argument in spec.arguments
    ]
    further = [] if spec.language == "cpp" else [f"int64_t {name}" for name in _sizes(spec)]
    return ", ".join([*of_arguments, *further])


def _passed(spec: KernelSpec) -> str:
    return ", ".join(one.name if isinstance(one, Scalar) else f"At{{{one.name}}}" for one in spec.arguments)


def _python_argument(argument: Tensor | Scalar) -> str:
    if isinstance(argument, Scalar):
        return in_python(argument.value) if isinstance(argument.value, str) else repr(argument.value)
    return argument.name


def _host_argument(argument: Tensor | Scalar) -> str:
    text = _python_argument(argument)
    return text if isinstance(argument, Scalar) else f"{text}.data_ptr()"


def _model_new(spec: KernelSpec, launch: str) -> str:
    inputs, outputs = spec.inputs, spec.outputs
    lines = [f"    def forward(self, {', '.join(tensor.name for tensor in inputs)}):\n"]
    plain = [tensor.name for tensor in inputs if tensor.strides is None]
    lines += [f"        {name} = {name}.contiguous()\n" for name in plain]
    known: set[str] = set()
    for tensor in inputs:
        for place, size in enumerate(tensor.shape):
            if isinstance(size, str) and size in spec.shapes and size not in known:
                lines.append(f"        {size} = {tensor.name}.shape[{place}]\n")
                known.add(size)
    lines += [f"        {name} = {value}\n" for name, value in spec.shapes.items() if name not in known]
    device = inputs[0].name if inputs else None
    for tensor in outputs:
        if tensor.role is Role.INOUT:
            lines.append(f"        {tensor.name} = {tensor.name}.clone()\n")
            continue
        where = f", device={device}.device" if device is not None else ""
        make, value = "empty", ""
        if tensor.filled is not Fill.EMPTY:
            make, value = "full", f", {_constant(tensor)!r}"
        lines.append(
            f"        {tensor.name} = torch.{make}({_shape(tensor.shape)}{value}, dtype=torch.{tensor.dtype}{where})\n"
        )
    results = ", ".join(tensor.name for tensor in outputs)
    return f"class ModelNew(nn.Module):\n{''.join(lines)}        {launch}\n        return {results}\n"


#: By language: what makes the candidate of a spec.
LANGUAGES: dict[str, Callable[[KernelSpec], Written]] = {"cpp": _cpp, "triton": _triton, "cuda": _gpu, "hip": _gpu}
