"""Which commands of hipcc get precompiled headers, and what becomes of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hkbench.fastbuild.inside import compiler_wrapper, hipcc
from hkbench.fastbuild.inside.attempt import ERRORS

SOURCE = """// made from cuda.cu
#include <torch/types.h>
#include "hip/hip_runtime.h"
#include <vector>

#include <mine.h>
#include <ATen/ATen.h>
"""
FLAGS = ["-DWITH_HIP", "-isystem", "/torch", "-D__HIP_PLATFORM_AMD__=1", "-fPIC", "-std=c++20", "-O3"]
FLAGS += [
    '-DPYBIND11_COMPILER_TYPE="_gcc"',
    "-D_GLIBCXX_USE_CXX11_ABI=1",
    "--offload-arch=gfx942",
    "-fno-gpu-rdc",
    "-ffast-math",
    "-U__HIP_NO_HALF_CONVERSIONS__",
    "-Wno-unused",
]

#: What `-###` prints: Debian's clang 22, its older and its newer driver, cut to what is read.
SHOWN = """Debian clang version 22.1.8
 "/llvm/clang" "-cc1" "-triple" "amdgcn-amd-amdhsa" "-emit-obj" "-fcuda-is-device" "-o" "/tmp/a.o" "-x" "hip" "a.hip"
 "/llvm/lld" "-flavor" "gnu" "-o" "/tmp/a.out" "/tmp/a.o"
 "/llvm/clang-offload-bundler" "-type=o" "-output=/tmp/a.hipfb"
 "/llvm/clang" "-cc1" "-triple" "x86_64-pc-linux-gnu" "-emit-obj" "-fcuda-include-gpubinary" "/tmp/a.hipfb" "-o" "a.o"
"""
NEWER = """ "/llvm/clang" "-cc1" "-emit-llvm-bc" "-fcuda-is-device" "-o" "/tmp/a.bc" "-x" "hip" "a.hip"
 "/llvm/llvm-offload-binary" "-o" "/tmp/a.out" "--image=file=/tmp/a.bc"
 "/llvm/clang-linker-wrapper" "--emit-fatbin-only" "-o" "/tmp/a.hipfb"
 "/llvm/clang" "-cc1" "-emit-obj" "-fcuda-include-gpubinary" "/tmp/a.hipfb" "-o" "a.o" "-x" "hip" "a.hip"
"""


def command(folder: Path, *more: str, text: str = SOURCE) -> list[str]:
    source = folder / "hip.hip"
    source.write_text(text)
    return ["hipcc", "-DTORCH_EXTENSION_NAME=x", *FLAGS, *more, "-c", str(source), "-o", str(folder / "hip.cuda.o")]


def test_a_pch_is_for_flags_and_the_headers_that_stand_first(tmp_path: Path) -> None:
    wanted = hipcc.wanted(command(tmp_path, f"-I{tmp_path}"), SOURCE)
    assert wanted is not None
    assert wanted.headers == ("torch/types.h", "hip/hip_runtime.h", "vector")
    assert list(wanted.flags) == FLAGS
    assert hipcc.wanted(command(tmp_path), "#include <hip/hip_runtime.h>\n") is None, "not worth it"
    assert hipcc.wanted(command(tmp_path), "#define float double\n#include <torch/types.h>\n") is None
    (tmp_path / "mine" / "ATen").mkdir(parents=True)
    assert hipcc.wanted(command(tmp_path, "-I", str(tmp_path / "mine")), SOURCE) is None, "headers that go before"


@pytest.mark.parametrize(
    "flag",
    ["-fplugin=x.so", "-DNAME=1", "-include", "@flags", "-Xclang", "-Wp,-MD,x", "-save-temps", "--offload-arch=native"],
)
def test_other_flags_and_folders_than_known_get_none(flag: str) -> None:
    headers = ["torch/types.h"]
    assert hipcc.acceptable(FLAGS, headers, ["/torch"])
    assert not hipcc.acceptable([*FLAGS, flag], headers, ["/torch"])
    assert not hipcc.acceptable(FLAGS, headers, ["/elsewhere"])
    assert not hipcc.acceptable([*FLAGS, "-isystem"], headers, ["/torch"])


@pytest.mark.parametrize("headers", [[], ["../x.h"], ["/etc/passwd"], "torch/types.h", None, [1], ["vector"] * 65])
def test_headers_that_no_pch_is_made_for(headers: object) -> None:
    assert not hipcc.acceptable(["-O3"], headers, [])
    assert not hipcc.acceptable("-O3", ["vector"], [])


@pytest.mark.parametrize("shown", [SHOWN, NEWER])
def test_both_compilations_get_a_header_and_the_steps_between_none(shown: str) -> None:
    steps = hipcc.steps_of(shown)
    assert steps is not None
    quick = [hipcc.with_pch(step, Path("/pch")) for step in steps]
    assert [step[2:4] for step in (quick[0], quick[-1])] == [
        ["-include-pch", f"/pch/{name}"] for name in (hipcc.DEVICE, hipcc.HOST)
    ]
    assert quick[1:-1] == steps[1:-1]


@pytest.mark.parametrize(
    "shown",
    [
        "",
        SHOWN.replace('"-fcuda-is-device" ', ""),
        SHOWN + SHOWN,
        SHOWN.replace('"-emit-obj" "-fcuda-include', '"-S" "-fcuda-include'),
        "\n".join(reversed(SHOWN.splitlines())),
    ],
)
def test_what_hipcc_does_otherwise_is_left_to_it(shown: str) -> None:
    assert hipcc.steps_of(shown) is None


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store for a hipcc that prints SHOWN, whose clang refuses the file `bad.hip` at its line, and a header's."""
    programs = tmp_path / "bin"
    programs.mkdir()
    clang = programs / "clang"
    shown = SHOWN.replace("/llvm/clang", str(clang)).replace("/llvm/lld", "/bin/true")
    shown = shown.replace(f"{clang}-offload-bundler", "/bin/true")
    (programs / "shown").write_text(shown)
    scripts = {
        "hipcc": f'case "$*" in *-###*) cat {programs}/shown;; *) echo hipcc itself;; esac',
        "clang": f'echo "$*" >> {tmp_path}/calls; test -f {tmp_path}/says || exit 0; cat {tmp_path}/says; exit 1',
    }
    for name, text in scripts.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=os.pathsep)
    for name in hipcc.ASKED:
        monkeypatch.delenv(name, raising=False)
    store = tmp_path / "store"
    store.mkdir()
    described = {"compiler": str(programs / "hipcc"), "folders": ["/torch"], "environment": {}}
    (store / hipcc.TOOLCHAIN).write_text(json.dumps(described))
    return store


def pch_for(store: Path, words: list[str]) -> None:
    wanted = hipcc.wanted(words, SOURCE)
    assert wanted is not None
    (store / wanted.name).mkdir()
    (store / wanted.name / hipcc.HOST).touch()


def launched(store: Path, words: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    launcher = [
        sys.executable,
        "-I",
        "-S",
        compiler_wrapper.__file__,
        "hipcc",
        str(store),
        str(store.parent / "pch_requests"),
    ]
    return subprocess.run(
        [*launcher, *words], env=dict(os.environ) | environment, capture_output=True, text=True, check=False
    )


def test_a_pch_that_is_not_there_is_requested_and_hipcc_compiles(store: Path, tmp_path: Path) -> None:
    done = launched(store, command(tmp_path))
    assert (done.returncode, done.stdout) == (0, "hipcc itself\n")
    (request,) = (tmp_path / "pch_requests").iterdir()
    written = json.loads(request.read_text())
    assert hipcc.acceptable(written["flags"], written["headers"], ["/torch"])
    assert request.stem == hipcc.Wanted(tuple(written["flags"]), tuple(written["headers"])).name


def test_with_a_pch_clang_is_called_as_hipcc_would(store: Path, tmp_path: Path) -> None:
    words = command(tmp_path)
    pch_for(store, words)
    done = launched(store, words)
    assert (done.returncode, done.stdout) == (0, "")
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [" -include-pch " in call and call.split()[2].endswith(".pch") for call in calls] == [True, True]
    assert not list(tmp_path.glob(f"*{compiler_wrapper.REFUSED}"))


@pytest.mark.parametrize("steered", [{"CPATH": "/mine"}, {"ROCM_PATH": "/other"}])
def test_a_steered_compiler_goes_the_usual_way(store: Path, tmp_path: Path, steered: dict[str, str]) -> None:
    words = command(tmp_path)
    pch_for(store, words)
    assert launched(store, words, **steered).stdout == "hipcc itself\n"


@pytest.mark.parametrize("place", ["hip.hip", "/torch/ATen/ATen.h"])
def test_an_error_is_final_where_the_source_itself_has_it(store: Path, tmp_path: Path, place: str) -> None:
    words = command(tmp_path)
    pch_for(store, words)
    source = words[words.index("-c") + 1]
    said = f"{source if place == 'hip.hip' else place}:7:3: error: no such name\n1 error generated.\n"
    (tmp_path / "says").write_text(f"{source}:1:1: warning: unused\n{said}")
    done = launched(store, words)
    assert len((tmp_path / "calls").read_text().splitlines()) == 1
    refused = [path.name for path in tmp_path.glob(f"*{compiler_wrapper.REFUSED}")]
    if place == "hip.hip":
        assert done.returncode == ERRORS and done.stdout.endswith(said)
        assert refused == [f"hip.cuda.o{compiler_wrapper.REFUSED}"]
    else:
        assert (done.returncode, done.stdout, refused) == (0, "hipcc itself\n", [])
