"""A library's own functions among those of headers, and their machine code."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from support.compilers import needs_gcc

from hkbench.engine import host_code
from hkbench.engine.host_code import Binutils, Function, host_functions, own_functions, parsed_symbols, ranges
from hkbench.toolchain.code_object import NotInspected
from hkbench.toolchain.process import run_tool

PRINTED = """\
0000000000001000 T _init
0000000000004000 0000000000000010 D table
0000000000002040 0000000000000020 T scale(float const*, float*, long)
0000000000002000 0000000000000040 t forward(at::Tensor) [clone .cold]
0000000000002100 0000000000000010 W void pybind11::cpp_function::initialize<int>(int)
0000000000002200 0000000000000010 W std::vector<float, std::allocator<float> >::~vector()
0000000000002300 0000000000000030 t void at::parallel_for<forward(at::Tensor)::{lambda(long, long)#1}>(long)
0000000000002400 0000000000000030 t void at::parallel_for<c10::fill(int)::{lambda(long, long)#1}>(long)
0000000000002500 0000000000000010 t (anonymous namespace)::helper(int)
0000000000002600 0000000000000010 W void mine::tile<4>(float*)
0000000000002700 0000000000000010 T PyInit_ext
0000000000002800 0000000000000010 t pybind11_init_ext(pybind11::module_&)
0000000000002900 0000000000000010 t _GLOBAL__sub_I_main.cpp
"""
SOURCE = """
namespace at { template <class F> __attribute__((noinline)) void parallel_for(F f, int n) {
  for (int i = 0; i < n; ++i) f(i);
} }
namespace pybind11 { __attribute__((noinline)) int cast(int x) { return x * 3; } }
extern "C" void triple(int* y, int n) { at::parallel_for([=](int i) { y[i] = pybind11::cast(y[i]); }, n); }
void turn(float* y, int n) { at::parallel_for([=](int i) { y[i] = 2.0f * y[i]; }, n); }
"""


def test_functions_come_by_address_with_their_ends() -> None:
    found = parsed_symbols(PRINTED)
    assert [one.begin for one in found] == sorted(one.begin for one in found)
    assert found[0] == Function(0x2000, 0x2040, "forward(at::Tensor) [clone .cold]")
    assert all("table" not in one.name and one.name != "_init" for one in found)


def test_what_headers_bring_is_left_out_but_not_a_loop_in_their_templates() -> None:
    assert [one.begin for one in own_functions(parsed_symbols(PRINTED))] == [0x2000, 0x2040, 0x2300, 0x2500, 0x2600]


def test_neighbours_are_shown_together() -> None:
    assert ranges(own_functions(parsed_symbols(PRINTED)))[:2] == [(0x2000, 0x2060), (0x2300, 0x2330)]


@pytest.fixture
def library(tmp_path: Path) -> Path:
    (tmp_path / "ext.cpp").write_text(SOURCE)
    command = ["g++", "-O2", "-shared", "-fPIC", "ext.cpp", "-o", "ext.so"]
    done = run_tool(command, tmp_path, 60)
    assert done.returncode == 0, done.output
    return tmp_path / "ext.so"


def tools(folder: Path) -> Binutils:
    return Binutils(folder, time.monotonic() + 60)


@needs_gcc
def test_the_code_of_a_built_library(library: Path) -> None:
    text = host_functions(library, tools(library.parent))
    assert "<triple>:" in text and "<turn(float*, int)>:" in text
    assert "<pybind11::cast(int)>:" not in text and "plt>:" not in text
    loops = [line for line in text.splitlines() if line.endswith(">:") and "parallel_for<" in line]
    assert len(loops) == 2, "each has its loop in a lambda"
    assert "ret" in text and str(library) not in text


@needs_gcc
def test_what_cannot_be_read_has_its_reason(library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = run_tool(["strip", "ext.so"], library.parent, 60)
    assert done.returncode == 0
    with pytest.raises(NotInspected, match="names no functions of its own"):
        host_functions(library, tools(library.parent))
    library.write_bytes(b"\x7fELF and no more")
    with pytest.raises(NotInspected, match="nm ended with code 1"):
        host_functions(library, tools(library.parent))
    monkeypatch.setattr(host_code, "find_program", lambda _name: None)
    with pytest.raises(NotInspected, match="there is no nm here"):
        host_functions(library, tools(library.parent))
