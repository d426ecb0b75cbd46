"""Copies of libraries without device code that computes: of libraries that the compiler at hand makes here."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.device_code import container, kernels, library

from hkbench.engine.stripped import forget_unused, replaced_files
from hkbench.profile.fatbin import UnknownFormat

COPY, COMPUTES, SIMPLE = "direct_copy_kernel_cuda", "gemm_kernel", "vectorized_elementwise_kernel_add"
CARRIED = 'extern "C" { extern const char begin[], end[]; const char* where() { return begin; } '
CARRIED += "long size() { return end - begin; } }"
STATUS = 'extern "C" int cublasCreate_v2(void**) { return 0; } extern "C" const char* cublasGetStatusString(int) '
STATUS += '{ return "success"; }'


def carried(path: str) -> bytes:
    """The device code of a library, as whoever loads it finds it in memory."""
    words = (
        "import ctypes, sys; one = ctypes.CDLL(sys.argv[1]); one.where.restype = ctypes.c_void_p; "
        "sys.stdout.buffer.write(ctypes.string_at(one.where(), one.size()))"
    )
    return subprocess.run([sys.executable, "-c", words, path], check=True, capture_output=True).stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where libraries are installed."""
    made = tmp_path / "installed"
    made.mkdir()
    return made


def test_only_what_copies_is_left_of_a_library_s_device_code(folder: Path, tmp_path: Path) -> None:
    copies, computes = kernels(tmp_path, COPY), kernels(tmp_path, COMPUTES)
    mixed = kernels(tmp_path, COPY, COMPUTES)
    path = library(folder / "libtorch_cuda.so", CARRIED, copies + computes + mixed)
    replaced = replaced_files([str(folder)], tmp_path / "store")
    left = carried(replaced[str(path)])
    assert len(left) == len(copies + computes + mixed)
    assert left[: len(copies)] == copies
    assert left[len(copies) + len(container()) : len(copies + computes)].strip(b"\0") == b""
    assert left[len(copies + computes) + len(container()) :].strip(b"\0") == b""


def test_simple_kernels_are_left_too_where_they_are_asked_for(folder: Path, tmp_path: Path) -> None:
    simple, computes = kernels(tmp_path, SIMPLE), kernels(tmp_path, COMPUTES)
    path = library(folder / "libtorch_cuda.so", CARRIED, simple + computes)
    without = carried(replaced_files([str(folder)], tmp_path / "store")[str(path)])
    with_them = carried(replaced_files([str(folder)], tmp_path / "store", simple=True)[str(path)])
    assert without[16 : len(simple)].strip(b"\0") == b""
    assert with_them[: len(simple)] == simple
    assert with_them[len(simple) + 16 :].strip(b"\0") == b""


def test_a_function_of_a_library_of_mathematics_returns_an_error(folder: Path, tmp_path: Path) -> None:
    path = library(folder / "libcublas.so.13", STATUS)
    copy = ctypes.CDLL(replaced_files([str(folder)], tmp_path / "store")[str(path)])
    assert ctypes.CDLL(str(path)).cublasCreate_v2(None) == 0
    assert copy.cublasCreate_v2(None) != 0
    copy.cublasGetStatusString.restype = ctypes.c_char_p
    assert copy.cublasGetStatusString(1) == b""


def test_an_archive_of_mathematics_is_empty(folder: Path, tmp_path: Path) -> None:
    archive = folder / "libcublas_static.a"
    archive.write_bytes(b"!<arch>\n" + bytes(1 << 17))
    copy = replaced_files([str(folder)], tmp_path / "store")[str(archive)]
    assert Path(copy).read_bytes() == b"!<arch>\n"


def test_the_compiler_of_pytorch_fails_but_where_simple_kernels_are_asked_for(folder: Path, tmp_path: Path) -> None:
    path = library(folder / "libnvrtc.so.13", 'extern "C" int nvrtcVersion(int*, int*) { return 0; }')
    copy = ctypes.CDLL(replaced_files([str(folder)], tmp_path / "store")[str(path)])
    assert copy.nvrtcVersion(None, None) != 0
    assert replaced_files([str(folder)], tmp_path / "store", simple=True) == {}


def test_folders_in_which_libraries_keep_kernels_are_empty(folder: Path, tmp_path: Path) -> None:
    for name in ("rocblas/library", "torch/lib/aotriton.images"):
        (folder / name).mkdir(parents=True)
        (folder / name / "kernels.co").write_text("code")
    replaced = replaced_files([str(folder)], tmp_path / "store")
    assert set(replaced) == {str(folder / "rocblas/library"), str(folder / "torch/lib/aotriton.images")}
    assert all(list(Path(empty).iterdir()) == [] for empty in replaced.values())


def test_what_generates_code_is_empty_and_the_rest_of_inductor_stays(folder: Path, tmp_path: Path) -> None:
    inductor = folder / "torch" / "_inductor"
    (inductor / "codegen").mkdir(parents=True)
    for name in ("codegen/triton.py", "graph.py", "config.py"):
        (inductor / name).write_text("text = 1")
    replaced = replaced_files([str(folder)], tmp_path / "store")
    assert set(replaced) == {str(inductor / "codegen"), str(inductor / "graph.py")}
    assert list(Path(replaced[str(inductor / "codegen")]).iterdir()) == []
    assert Path(replaced[str(inductor / "graph.py")]).read_text() == ""


def test_other_libraries_stay_as_they_are(folder: Path, tmp_path: Path) -> None:
    library(folder / "libcudart.so.13", 'extern "C" int cudaFree(void*) { return 0; }')
    (folder / "libcudart_static.a").write_bytes(b"!<arch>\n" + bytes(1 << 17))
    (folder / "libcublas.so").symlink_to("libcublas.so.13")
    assert replaced_files([str(folder)], tmp_path / "store") == {}


def test_a_copy_is_made_once_and_anew_when_the_library_has_changed(folder: Path, tmp_path: Path) -> None:
    path, store = library(folder / "libcublas.so.13", STATUS), tmp_path / "store"
    first = replaced_files([str(folder)], store)[str(path)]
    made = Path(first).stat().st_ino
    assert Path(replaced_files([str(folder)], store)[str(path)]).stat().st_ino == made
    os.utime(path, (1, 1))
    assert replaced_files([str(folder)], store)[str(path)] != first


def test_device_code_of_an_unknown_form_is_said_to_be_so(folder: Path, tmp_path: Path) -> None:
    library(folder / "libtorch_cuda.so", CARRIED, b"\x01" * 64)
    with pytest.raises(UnknownFormat, match="libtorch_cuda"):
        replaced_files([str(folder)], tmp_path / "store")


def test_what_no_run_has_used_for_a_month_goes(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.touch()
    new.touch()
    os.utime(old, (1, 1))
    forget_unused(tmp_path)
    assert (old.exists(), new.exists()) == (False, True)
