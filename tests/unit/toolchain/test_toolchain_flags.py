"""Flags that a build passes on, and those that would hand the compiler to a candidate."""

from __future__ import annotations

import pytest

from hkbench.toolchain.flags import refused_compile_flags, split_link_flags


@pytest.mark.parametrize(
    "flags",
    [
        ["-O3", "-std=c++20", "-ffast-math", "-DN=4", "-UFOO", "-I/opt/include", "-Wno-unused", "-w"],
        ["--offload-arch=gfx942", "-munsafe-fp-atomics", "-mcumode", "-ffp-contract=fast", "-fno-math-errno"],
        ["-D", "KITTENS_CDNA3", "-I", "include", "-isystem", "include"],
        ["-mllvm", "-amdgpu-early-inline-all=true", "-U__HIP_NO_HALF_OPERATORS__"],
        [],
    ],
)
def test_ordinary_flags_are_passed_on(flags: list[str]) -> None:
    assert refused_compile_flags(flags) == []


@pytest.mark.parametrize(
    "flags",
    [
        ["-fplugin=evil.so"],
        ["-fpass-plugin=evil.so"],
        ["-Xclang", "-load"],
        ["@arguments"],
        ["-B/tmp/tools"],
        ["--config=/tmp/x.cfg"],
        ["-wrapper", "sh,-c,id"],
        ["-fuse-ld=/tmp/ld"],
        ["-o", "/etc/passwd"],
        ["-Wl,-plugin,evil.so"],
        ["-Wp,-MD,/tmp/x"],
        ["-include", "/etc/shadow"],
        ["-mllvm", "-load=evil.so"],
        ["-mlinker-version=1"],
        ["-D"],
        ["--rocm-path=/tmp"],
    ],
)
def test_flags_that_run_or_write_something_else_are_refused(flags: list[str]) -> None:
    assert refused_compile_flags(["-O3", *flags])[0].split()[0] == flags[0]


def test_link_flags_are_sorted_into_passed_refused_and_left_out() -> None:
    flags = ["-lm", "-L/opt/rocm/lib", "-lrocblas", "-Wl,-rpath,/tmp", "evil.o", "-lhipblaslt"]
    assert split_link_flags(flags) == (
        ["-lm", "-L/opt/rocm/lib"],
        ["-Wl,-rpath,/tmp", "evil.o"],
        ["rocblas", "hipblaslt"],
    )
