"""Kernels of ours on a GPU, compiled while the process runs by the compiler that torch brings along.

One source for both makers: NVRTC (libnvrtc) and HIPRTC (libhiprtc) have the same functions under two prefixes, and so
have the calls that load and launch what they compile ("Module Management" in the CUDA driver API and in the HIP API).
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from ctypes import byref, c_char_p, c_size_t, c_uint, c_void_p
from pathlib import Path

import torch

from hkbench.protocol import device_memory

BLOCK = 256  #: threads
BLOCKS = 1024


class DeviceKernels:
    """The kernels of a source, loaded on a device. Every failure is a RuntimeError that names its reason."""

    def __init__(
        self, device: torch.device, source: str, names: Sequence[str], constants: Mapping[str, int] = {}
    ) -> None:
        """Compile `source`, in which the `constants` are macros; `names` are its kernels, `extern "C"`."""
        self._driver = device_memory.driver()
        torch.zeros(1, device=device)  # the driver's calls do not make a context
        image = _compiled(device, source, constants)
        module = c_void_p()
        self._driver.call("ModuleLoadData", byref(module), image)
        self._kernels = {name: self._function(module, name) for name in names}

    def _function(self, module: c_void_p, name: str) -> c_void_p:
        function = c_void_p()
        self._driver.call("ModuleGetFunction", byref(function), module, c_char_p(name.encode()))
        return function

    def launch(self, name: str, stream: int, blocks: int, threads: int, *arguments: int) -> None:
        """Have a stream run a kernel; its arguments are addresses and whole numbers of 64 bits."""
        values = [ctypes.c_uint64(value) for value in arguments]
        pointers = (c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        one, none = c_uint(1), c_uint(0)
        grid = (c_uint(blocks), one, one, c_uint(threads), one, one)
        name_of = "LaunchKernel" if torch.version.hip is None else "ModuleLaunchKernel"
        self._driver.call(name_of, self._kernels[name], *grid, none, c_void_p(stream), pointers, c_void_p(None))


def _compiled(device: torch.device, source: str, constants: Mapping[str, int]) -> bytes:
    prefix = "nvrtc" if torch.version.hip is None else "hiprtc"
    library = ctypes.CDLL(str(_library(prefix)))

    def call(name: str, *arguments: object) -> None:
        if code := int(getattr(library, prefix + name)(*arguments)):
            raise RuntimeError(f"{prefix}{name} failed (error {code}): {_log(library, prefix, program)}")

    program = c_void_p()
    call("CreateProgram", byref(program), c_char_p(source.encode()), c_char_p(b"hkbench.cu"), 0, None, None)
    flags = [_target(device), *(f"-D{name}={value}" for name, value in constants.items())]
    options = (c_char_p * len(flags))(*(flag.encode() for flag in flags))
    call("CompileProgram", program, len(options), options)
    size, kind = c_size_t(), "PTX" if prefix == "nvrtc" else "Code"
    call(f"Get{kind}Size", program, byref(size))
    image = ctypes.create_string_buffer(size.value)
    call(f"Get{kind}", program, image)
    return image.raw


def _log(library: ctypes.CDLL, prefix: str, program: c_void_p) -> str:
    size = c_size_t()
    if not program or getattr(library, f"{prefix}GetProgramLogSize")(program, byref(size)):
        return "no log"
    log = ctypes.create_string_buffer(size.value)
    getattr(library, f"{prefix}GetProgramLog")(program, log)
    return log.value.decode(errors="replace").strip()[:1000]


def _target(device: torch.device) -> str:
    if torch.version.hip is not None:
        return f"--offload-arch={torch.cuda.get_device_properties(device).gcnArchName}"
    major, minor = torch.cuda.get_device_capability(device)
    return f"--gpu-architecture=compute_{major}{minor}"


def _library(prefix: str) -> Path:
    """Find the run-time compiler beside torch's own libraries, in the maker's packages or in its installation."""
    here = Path(torch.__file__).parent
    folders = [here / "lib", *sorted(here.parent.glob("nvidia/*/lib"))]
    folders += [Path(home) / "lib64" for home in ("/usr/local/cuda",)] + [Path("/opt/rocm/lib")]
    for folder in folders:
        for path in sorted(folder.glob(f"lib{prefix}*.so*")):
            if "builtins" not in path.name and ".alt." not in path.name:
                return path
    raise RuntimeError(f"lib{prefix} lies neither beside torch nor in {', '.join(str(f) for f in folders[1:])}")
