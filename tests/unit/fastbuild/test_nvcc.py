"""How nvcc's steps are read, ordered and run."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.object_code import device_functions, differences
from hkbench.fastbuild.inside import compiler_wrapper, nvcc
from hkbench.fastbuild.inside.attempt import CompileAttempt

LAUNCHER = [sys.executable, "-I", "-S", compiler_wrapper.__file__, "nvcc"]
DATA = Path(__file__).parent / "data"
WORDS = [
    "-MD",
    "-MF",
    "cuda.o.d",
    "-isystem",
    "/torch",
    "-I/mine",
    "-O3",
    "-c",
    "cuda.cu",
    "-o",
    "cuda.o",
    "-std=c++20",
]
KERNELS = """
#include <cstdint>
namespace { __global__ void scale(float* x, float by) { x[threadIdx.x] *= by; } }
static __global__ void shift(float* x, float by) { x[threadIdx.x] += by; }
template <int N> __global__ void fill(float* x) { x[threadIdx.x] = N; }
void launch(float* x) { scale<<<1, 32>>>(x, 2.0f); shift<<<1, 32>>>(x, 1.0f); fill<3><<<1, 32>>>(x); }
"""

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc here: quick builds are not tested")


def shown(version: str) -> str:
    return (DATA / f"nvcc_dryrun_{version}.txt").read_text()


def step(kind: str, *words: str, output: str = "") -> nvcc.Step:
    return nvcc.Step(kind, words, (output,))


def test_a_command_is_taken_apart_without_its_list_of_dependencies() -> None:
    command = nvcc.parse(WORDS)
    assert (command.source, command.output, command.dependencies) == ("cuda.cu", "cuda.o", "cuda.o.d")
    assert command.folders == ("/torch", "/mine")
    assert command.own_folders and not nvcc.parse([word for word in WORDS if word != "-I/mine"]).own_folders
    assert list(command.words) == WORDS[3:]


@pytest.mark.parametrize(
    "word",
    ["-rdc=true", "--relocatable-device-code=true", "-dc", "-dlto", "-dlink", "-ptx", "-E", "--keep", "-keep-dir=x",
     "-t4", "--threads=2", "--dryrun", "@words", "-time=x", "main.cpp", "other.cu"],
)  # fmt: skip
def test_other_commands_are_left_to_nvcc(word: str) -> None:
    with pytest.raises(nvcc.NotUnderstood):
        nvcc.parse([*WORDS, word])


@pytest.mark.parametrize("words", [[], ["-c", "a.cu"], ["-c", "a.cpp", "-o", "a.o"], ["a.o", "-o", "dlink.o"]])
def test_what_compiles_no_single_source_is_left_to_nvcc(words: list[str]) -> None:
    with pytest.raises(nvcc.NotUnderstood):
        nvcc.parse(words)


def test_both_halves_are_independent_up_to_the_last_step() -> None:
    made = nvcc.plan(shown("12.3"))
    kinds = [one.kind for one in made.steps]
    assert kinds == ["preprocess", "cudafe++", "preprocess", "cicc", "ptxas", "fatbinary", "compile"]
    assert [sorted(needs) for needs in made.needs] == [[], [0], [], [2], [3], [3, 4], [0, 1, 2, 3, 4, 5]]
    assert made.module_id == "/scratch/tmpxft_1_00000000-4_cuda.module_id"
    assert not any("--gen_module_id_file" in one.words for one in made.steps)
    assert made.environment["NVVMIR_LIBRARY_DIR"] == "/usr/local/cuda/bin/../nvvm/libdevice"


def test_each_architecture_has_a_chain_of_its_own() -> None:
    made = nvcc.plan(shown("13.5"))
    kinds = [one.kind for one in made.steps]
    assert kinds == [
        "preprocess", "cudafe++", "preprocess", "cicc", "ptxas", "preprocess", "cicc", "ptxas", "fatbinary", "compile",
    ]  # fmt: skip
    assert [sorted(needs) for needs in made.needs[:8]] == [[], [0], [], [2], [3], [], [5], [6]]
    assert sorted(made.needs[8]) == [3, 4, 7]
    assert made.steps[3].words[0] == "/usr/local/cuda/bin/../nvvm/bin/cicc"


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"^#\$ ptxas .*\n", ""),
        (r"^#\$ cudafe\+\+ .*\n", ""),
        (r"^#\$ rm ", "#$ nvlink "),
        (r"^#\$ rm ", "#$ -- Filter Dependencies -- > x.d #"),
        (r" -o (\S+cpp1.ii\")", r" > \1"),
        (r"--gen_module_id_file", ""),
        (r"--module_id_file_name \S+", ""),
        (r"\"cuda.cu\"", '"$SOURCE"'),
        (r"\"cuda.cu\"", '"cuda.cu'),
        (r'(cudafe.*)cpp4.ii"$', r'\1other.ii"'),
        (r"(^#\$ fatbinary .*\n)", r"\1\1"),
        (r"\Z", "#$ gcc -c x.cpp -o x.o\n"),
        (r"^#\$ .*\n", ""),
    ],
)
def test_a_dry_run_that_looks_otherwise_is_left_to_nvcc(pattern: str, text: str) -> None:
    changed, count = re.subn(pattern, text, shown("12.3"), flags=re.MULTILINE)
    assert count
    with pytest.raises(nvcc.NotUnderstood):
        nvcc.plan(changed)


def test_steps_run_as_soon_as_they_can(tmp_path: Path) -> None:
    begin = ["sh", "-c", f"touch {tmp_path}/a; while [ ! -e {tmp_path}/b ]; do sleep 0.01; done"]
    meet = ["sh", "-c", f"touch {tmp_path}/b; while [ ! -e {tmp_path}/a ]; do sleep 0.01; done"]
    last = ["sh", "-c", f"test -e {tmp_path}/a -a -e {tmp_path}/b && echo $NAME > {tmp_path}/c"]
    steps = (step("cicc", *begin), step("cudafe++", *meet), step("compile", *last))
    made = nvcc.Plan(steps, (frozenset(), frozenset(), frozenset({0, 1})), {"NAME": "value"})
    assert nvcc.execute(made) == CompileAttempt(0, "")
    assert (tmp_path / "c").read_text() == "value\n"


def test_a_failure_ends_what_nvcc_would_not_have_begun(tmp_path: Path) -> None:
    steps = (
        step("cudafe++", "sh", "-c", "sleep 0.2; echo first; exit 3"),
        step("cicc", "sleep", "60"),
        step("compile", "touch", str(tmp_path / "c")),
    )
    begin = time.monotonic()
    made = nvcc.Plan(steps, (frozenset(), frozenset(), frozenset({0, 1})))
    assert nvcc.execute(made) == CompileAttempt(3, "first\n")
    assert time.monotonic() - begin < 30
    assert not (tmp_path / "c").exists()


def test_of_two_failures_the_one_counts_that_nvcc_would_have_met() -> None:
    steps = (
        step("preprocess", "sh", "-c", "sleep 0.3; echo one"),
        step("cudafe++", "sh", "-c", "echo two; exit 4"),
        step("cicc", "sh", "-c", "echo three; exit 5"),
    )
    made = nvcc.Plan(steps, (frozenset(), frozenset({0}), frozenset()))
    assert nvcc.execute(made) == CompileAttempt(4, "one\ntwo\n")


def test_a_compiler_that_shows_nothing_is_run_as_it_is(tmp_path: Path) -> None:
    compiler = tmp_path / "nvcc"
    compiler.write_text('#!/bin/sh\ncase "$*" in *--dryrun*) exit 1;; esac\necho "$@" > said\n')
    compiler.chmod(0o755)
    (tmp_path / "cuda.cu").write_text("int x;")
    done = subprocess.run([*LAUNCHER, str(compiler), *WORDS], cwd=tmp_path, check=False)
    assert done.returncode == 0
    assert (tmp_path / "said").read_text().split() == WORDS


def test_local_names_differ_between_sources() -> None:
    one = nvcc.module_id(nvcc.parse(WORDS))
    other = nvcc.module_id(nvcc.parse([word.replace("cuda.cu", "more.cu") for word in WORDS]))
    assert one != other
    assert re.fullmatch(r"_[0-9a-f]{8}_7_cuda_cu_[0-9a-f]{8}", one)


@needs_nvcc
def test_kernels_are_the_same_as_nvcc_makes_them(tmp_path: Path) -> None:
    (tmp_path / "cuda.cu").write_text(KERNELS)
    words = [
        "--no-compress",
        "-gencode=arch=compute_80,code=sm_80",
        "-gencode=arch=compute_90,code=sm_90",
        "-c",
        "cuda.cu",
    ]
    stock = subprocess.run(["nvcc", *words, "-o", "stock.o"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert stock.returncode == 0, stock.stderr
    assert nvcc.compile_quickly(shutil.which("nvcc") or "", _in(tmp_path, [*words, "-o", "quick.o"])).status == 0
    usual, quick = (device_functions(tmp_path / f"{name}.o") for name in ("stock", "quick"))
    assert len(usual) == 6
    assert differences(usual, quick) == []


@needs_nvcc
@pytest.mark.parametrize(
    "wrong",
    [
        "void f() { no_such_name(); }",
        "__global__ void k() { printf(no_such_name); }",
        "__global__ void k() { host_only(); }",
        "#include <no_such_header.h>",
    ],
)
def test_a_source_that_fails_is_refused_with_nvcc_s_own_words(wrong: str, tmp_path: Path) -> None:
    (tmp_path / "cuda.cu").write_text(f"void host_only();\n{KERNELS}\n{wrong}\n")
    words = ["-arch=sm_90", "-c", str(tmp_path / "cuda.cu"), "-o", str(tmp_path / "cuda.o")]
    stock, quick = (
        subprocess.run([*before, "nvcc", *words], capture_output=True, text=True, check=False)
        for before in ([], LAUNCHER)
    )
    assert stock.returncode != 0
    assert (quick.returncode, quick.stdout + quick.stderr) == (stock.returncode, stock.stdout + stock.stderr)
    assert (tmp_path / f"cuda.o{compiler_wrapper.REFUSED}").is_file() and not (tmp_path / "cuda.o").exists()


@needs_nvcc
def test_an_error_below_lighter_headers_is_not_final(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "types.h").write_text("")
    (tmp_path / "cuda.cu").write_text("#include <torch/types.h>\nvoid f() { no_such_name(); }\n")
    words = ["-arch=sm_90", "-isystem", str(tmp_path), "-c", "cuda.cu", "-o", "cuda.o"]
    tried = nvcc.compile_quickly(shutil.which("nvcc") or "", _in(tmp_path, words))
    assert tried.status > 0 and not tried.final


@needs_nvcc
def test_an_error_of_the_assembler_fails(tmp_path: Path) -> None:
    (tmp_path / "cuda.cu").write_text('__global__ void k() { asm("no_such_ptx;"); }\n')
    command = _in(tmp_path, ["-arch=sm_90", "-c", "cuda.cu", "-o", "cuda.o"])
    assert nvcc.compile_quickly(shutil.which("nvcc") or "", command).status != 0
    assert not (tmp_path / "cuda.o").exists()


def _in(folder: Path, words: list[str]) -> nvcc.Command:
    return nvcc.parse([str(folder / word) if word.endswith((".cu", ".o")) else word for word in words])
