"""Run real compilers: on sources that they refuse, and on as little as they need."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from hkbench.errors import ToolchainUnavailable
from hkbench.toolchain.hip import HipToolchain, find_hip

needs_gcc = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")
needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")


def hip_or_skip(lost: str) -> HipToolchain:
    """Return the HIP compiler; skips the test where there is none and says what was not done for it."""
    try:
        return find_hip()
    except ToolchainUnavailable as error:
        pytest.skip(f"NO HIP COMPILER, so {lost}: {error}")


def empty_module(name: str) -> str:
    """Return the C++ source of an extension with nothing in it; pybind11 alone would take seconds to read."""
    rest = ", ".join(["nullptr"] * 5)
    return (
        "#include <Python.h>\n"
        f'static PyModuleDef module = {{PyModuleDef_HEAD_INIT, "{name}", nullptr, -1, {rest}}};\n'
        f"PyMODINIT_FUNC PyInit_{name}() {{ return PyModule_Create(&module); }}\n"
    )


def output_of(folder: Path, name: str, source: str, *command: str) -> str:
    """Return what the failing command writes; `SOURCE` in it stands for the file."""
    path = folder / name
    path.write_text(source)
    words = [str(path) if word == "SOURCE" else word for word in command]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, env={"PATH": _path(), "LC_ALL": "C"})
    assert done.returncode != 0
    return done.stdout + done.stderr


def _path() -> str:
    return f"{Path(shutil.which('nvcc') or '/usr/bin/nvcc').parent}:/usr/local/bin:/usr/bin:/bin"
