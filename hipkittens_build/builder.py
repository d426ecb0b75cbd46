"""Compile an extension with hipcc, once, for the GPU at hand, and load it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hipkittens_build.headers import checkout_root
from hipkittens_build.source import IDENTIFIER, MACROS, compile_flags, translation_unit

if TYPE_CHECKING:
    from hipkittens_build.binding import Extension

Members = Sequence[str] | Mapping[str, Sequence[int]]


class BuildError(RuntimeError):
    """The compiler refused the source, or there is nothing to compile it with."""


@dataclass(frozen=True)
class Bound:
    """One function to call from Python."""

    name: str
    members: tuple[str, ...]  #: of its struct, in the order of their declaration
    multiples: Mapping[str, tuple[int, ...]]  #: member -> what its tensor's last dimensions have to be multiples of


def build(name: str, source: str, functions: Mapping[str, Members], *, flags: Sequence[str] = ()) -> Extension:
    """Compile `source` (HIP, C++20) and return an object with a method for each of `functions`.

    A function `void dispatch(const globals &, hipStream_t)` of the source is bound by `{"dispatch": ["x", "out"]}`, the
    members of `globals` in the order of their declaration: each a `kittens::gl`, a pointer to elements or a number. A
    mapping in place of the list also says what the last dimensions of a tensor have to be multiples of: `{"x": (128,
    64), "eps": ()}`. `flags` are given to hipcc after the build's own.

    `extension.dispatch(x, out)` fills `globals` and calls the function with the current stream. It raises TypeError or
    ValueError for a tensor of another dtype, layout, device or shape than the member has, RuntimeError when the launch
    failed. A tensor may be a Parameter. Its dimensions become the last ones of the `gl`, those before are 1.

    Built for $PYTORCH_ROCM_ARCH, else for the current GPU, with the headers of $HIPKITTENS_ROOT, else of
    $THUNDERKITTENS_ROOT, else of scripts/install_hipkittens.py, in a new folder below $TORCH_EXTENSIONS_DIR (else that
    of temporary files).

    Raises:
        TypeError: a function's members are one string.
        ValueError: `name`, a function or a member is not an identifier, or a multiple is not a positive number.
        BuildError: hipcc, HipKittens or the GPU's kind is not known here, or hipcc refused the source.
    """
    # The programs that only compile import this package too, and have no use for PyTorch.
    from hipkittens_build.binding import CURRENT_GPU, Extension

    bound = read_functions(name, functions)
    text = translation_unit(source, {one.name: one.members for one in bound})
    return Extension(name, _compiled(name, text, flags), bound, CURRENT_GPU)


def read_functions(name: str, functions: Mapping[str, Members]) -> tuple[Bound, ...]:
    """Return the functions of a call of `build`. Raises TypeError and ValueError as that does."""
    found = []
    for function, members in functions.items():
        if isinstance(members, str):
            raise TypeError(f"{name}.{function}: give its members as a list or a mapping, not as one string")
        given: Mapping[str, Sequence[int]] = members if isinstance(members, Mapping) else dict.fromkeys(members, ())
        for word in (name, function, *given):
            if not isinstance(word, str) or not IDENTIFIER.fullmatch(word):
                raise ValueError(f"{name}: {word!r} is not an identifier of C")
        multiples = {member: tuple(values) for member, values in given.items()}
        for member, values in multiples.items():
            if len(values) > 4 or not all(type(value) is int and value > 0 for value in values):
                raise ValueError(f"{name}.{function}: {member}: multiples are up to 4 positive numbers, not {values}")
        found.append(Bound(function, tuple(given), multiples))
    if not found:
        raise ValueError(f"{name}: no function is bound: give the members of each, as in {{'dispatch': ['x', 'out']}}")
    return tuple(found)


def _compiled(name: str, text: str, flags: Sequence[str]) -> Path:
    root, arch = _hip_root(), _arch()
    parent = Path(os.environ.get("TORCH_EXTENSIONS_DIR") or tempfile.gettempdir())
    parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{name}_", dir=parent))
    source, library = folder / f"{name}.hip", folder / f"{name}.so"
    source.write_text(text, encoding="utf-8")
    command = [str(root / "bin" / "hipcc"), "-x", "hip", f"--offload-arch={arch}", "-fno-gpu-rdc", "-fPIC", "-shared"]
    command += [*compile_flags(MACROS[arch], _checkout() / "include", root / "include"), *flags]
    # The runtime that PyTorch has loaded comes first: its wheels bring their own.
    libraries = [f"-L{path}" for path in _torch_libraries()]
    command += [source.name, "-o", library.name, *libraries]
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode != 0:
        said = (done.stdout + done.stderr).decode(errors="replace")
        raise BuildError(f"Error building extension '{name}': hipcc ended with {done.returncode}\n{said}")
    return library


def _torch_libraries() -> list[Path]:
    import torch

    folder = Path(torch.__file__).parent / "lib"
    return [folder] if (folder / "libamdhip64.so").exists() else []


def _hip_root() -> Path:
    """Return the folder with bin/hipcc: $ROCM_HOME, $ROCM_PATH, the Core SDK's package, that on PATH, /opt/rocm.

    In each, the link `core` leads to the newest Core SDK, which is a folder of its own from ROCm 7.13 on.
    """
    on_path, package = shutil.which("hipcc"), importlib.util.find_spec("_rocm_sdk_core")
    places = [Path(os.environ[name]) for name in ("ROCM_HOME", "ROCM_PATH") if os.environ.get(name)]
    places += [Path(package.origin).parent] if package is not None and package.origin is not None else []
    places += [Path(on_path).resolve().parents[1]] if on_path else []
    for place in (*places, Path("/opt/rocm")):
        for root in (place, place / "core"):
            if (root / "bin" / "hipcc").is_file():
                return root
    raise BuildError("there is no hipcc here: install ROCm and set ROCM_PATH to its folder")


def _checkout() -> Path:
    found = checkout_root()
    if found is None:
        raise BuildError(
            "HIPKITTENS_ROOT is not set, and no headers are installed: run scripts/install_hipkittens.py, or set "
            "it to a checkout of HipKittens"
        )
    name, root = found
    if not (root / "include" / "kittens.cuh").is_file():
        raise BuildError(f"{name or root}={root}: it has no include/kittens.cuh; name a checkout of HipKittens")
    return root


def _arch() -> str:
    """Return one of `MACROS`: $PYTORCH_ROCM_ARCH where that is one architecture, else the current GPU's."""
    listed = os.environ.get("PYTORCH_ROCM_ARCH", "").replace(",", ";").split(";")
    named = [arch.strip() for arch in listed if arch.strip()]
    if len(named) != 1:
        import torch

        if torch.version.hip is None:
            raise BuildError("this PyTorch is not built for ROCm: name the GPU to compile for in PYTORCH_ROCM_ARCH")
        named = [torch.cuda.get_device_properties(torch.cuda.current_device()).gcnArchName]
    arch = named[0].partition(":")[0]
    if arch not in MACROS:
        raise BuildError(f"HipKittens is for {', '.join(MACROS)}, not for {arch}")
    return arch
