"""Every block of code that a shipped prompt shows is built by the compiler of its language, and no kernel of it spills.

HipKittens' blocks are built with the headers of scripts/install_hipkittens.py, or a checkout that HIPKITTENS_CDNA3_ROOT
or HIPKITTENS_CDNA4_ROOT names. What is not there is skipped and said.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from prompts_examples import (
    SETTINGS,
    Example,
    blocks,
    built,
    kernels_of,
    shipped_examples,
)
from prompts_samples import PROMPTS
from support.compilers import hip_or_skip
from support.kittens import checkout, kittens_or_skip
from support.small_problems import AFFINE, problem_file
from support.triton_kernels import record

from hkbench.engine import LocalEvaluator
from hkbench.prompts import load_prompts
from hkbench.records import BackendName, DeviceKind, KernelResources, Status
from hkbench.registry import backend_names
from hkbench.toolchain.extension import ExtensionCall, write_sources
from hkbench.toolchain.hip import ARCHITECTURES, HipToolchain, find_torch
from hkbench.toolchain.hipkittens import WITH_CARD, Dialect
from hkbench.toolchain.process import run_tool

EXAMPLES = shipped_examples()
HIPKITTENS = [example for example in EXAMPLES if example.backend == "hipkittens"]
#: A length of rows for each number of waves that may share one, by what the prompts say of it.
WIDE_ROWS = [(4096, 2), (8192, 4), (16384, 8), (32768, 16)]

_CHECK = """
torch.manual_seed(0)
x = torch.randn(33, {columns}, device="{device}")
model = ModelNew({columns}, 0.5).to("{device}")
with torch.no_grad():
    model.weight.normal_()
    expected = torch.nn.functional.softshrink(x, 0.5) * model.weight
    assert torch.allclose(model(x), expected, rtol=1e-6, atol=0)
for wrong in (x.double(), x.T):
    try:
        model(wrong)
    except (RuntimeError, AssertionError):
        continue
    raise SystemExit("accepted what it cannot compute")
print("works")
"""


def examples(backend: BackendName) -> list[Example]:
    return [example for example in EXAMPLES if example.backend == backend]


def test_every_block_in_the_files_is_shown_to_somebody() -> None:
    shown = {example.text for example in EXAMPLES}
    for name, body in load_prompts(PROMPTS).templates.items():
        assert [text for _, text in blocks(body) if text not in shown] == [], name


def test_every_backend_shows_code_in_a_language_that_is_built_here() -> None:
    for backend in backend_names():
        languages = {example.language for example in examples(backend)}
        assert languages
        assert languages <= ({"python", "cpp"} if backend == "hipkittens" else {"python"})


def test_each_dialect_shows_the_same_families() -> None:
    names = {
        dialect: {example.name.removesuffix(f"_{dialect}") for example in HIPKITTENS if example.dialect is dialect}
        for dialect in WITH_CARD
    }
    assert names[Dialect.CDNA3] == names[Dialect.CDNA4] - {"_hipkittens_example_pingpong"}  # it needs 128 KiB of LDS
    assert len(names[Dialect.CDNA3]) >= 7  # elementwise, rows, wide rows, GEMM NT and NN, epilogue, attention


@pytest.fixture
def toolchain() -> HipToolchain:
    return hip_or_skip("no example for AMD was compiled")


def no_spill(kernels: tuple[KernelResources, ...]) -> None:
    assert kernels
    for kernel in kernels:
        spilled = (kernel.vgpr_spills, kernel.sgpr_spills, kernel.scratch_bytes_per_lane)
        assert spilled == (0, 0, 0), kernel.name


@pytest.mark.hipcc
@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHITECTURES)
@pytest.mark.parametrize("example", examples("hip"), ids=str)
def test_hip_is_built_for_both_architectures(
    example: Example, arch: str, toolchain: HipToolchain, tmp_path: Path
) -> None:
    verdict = built(example.text, "hip", arch, tmp_path / "build", problem_file(tmp_path / "problem", AFFINE))
    assert (verdict.status, verdict.failure) == (Status.COMPILED, None)
    no_spill(verdict.resources)


#: What was built without a fault: the sizes that an example is shipped with are also among those that it is tried with.
_GOOD = set[tuple[Dialect, str]]()


def hipkittens(source: Example, folder: Path, changed: str | None = None) -> None:
    """Builds an example, or `changed` in its place, for its dialect and looks at its kernels."""
    dialect, text = source.dialect, changed or source.text
    assert dialect is not None
    if (dialect, text) in _GOOD:
        return
    kittens_or_skip(dialect, f"{source} was not compiled")
    with checkout(dialect):
        if source.language == "python":
            problem = problem_file(folder / "problem", AFFINE)
            verdict = built(text, "hipkittens", dialect.arch, folder / "build", problem)
            assert (verdict.status, verdict.failure, verdict.conditions.warnings) == (Status.COMPILED, None, ())
            assert verdict.language is not None and verdict.language.backend == "hipkittens"
            no_spill(verdict.resources)
        else:
            kernels, done = kernels_of(text, dialect, folder)
            assert done.returncode == 0, done.output
            no_spill(kernels)
    _GOOD.add((dialect, text))


@pytest.mark.hipcc
@pytest.mark.slow
@pytest.mark.parametrize("example", HIPKITTENS, ids=str)
def test_hipkittens_is_built_for_its_dialect(example: Example, toolchain: HipToolchain, tmp_path: Path) -> None:
    hipkittens(example, tmp_path)


@pytest.mark.hipcc
@pytest.mark.slow
@pytest.mark.parametrize(("columns", "waves"), WIDE_ROWS)
@pytest.mark.parametrize("example", [one for one in HIPKITTENS if "wide_rows" in one.name], ids=str)
def test_rows_of_any_length_that_the_prompts_plan_for_stay_in_registers(
    example: Example, columns: int, waves: int, toolchain: HipToolchain, tmp_path: Path
) -> None:
    sizes = re.compile(r"COLUMNS = \d+, WAVES = \d+")
    assert len(sizes.findall(example.text)) == 1
    hipkittens(example, tmp_path, sizes.sub(f"COLUMNS = {columns}, WAVES = {waves}", example.text))


ATTENTION = {Dialect.CDNA3: [(64, "true")], Dialect.CDNA4: [(64, "false"), (64, "true"), (128, "true")]}


@pytest.mark.hipcc
@pytest.mark.slow
@pytest.mark.parametrize("example", [one for one in HIPKITTENS if "attention" in one.name], ids=str)
def test_attention_is_built_for_each_head_dimension_with_and_without_a_mask(
    example: Example, toolchain: HipToolchain, tmp_path: Path
) -> None:
    assert example.dialect is not None
    for number, (dimension, causal) in enumerate(ATTENTION[example.dialect]):
        changed, count = re.subn(r"(int D = )\d+(, QB)", rf"\g<1>{dimension}\2", example.text)
        changed, also = re.subn(r"(CAUSAL = )\w+;", rf"\g<1>{causal};", changed)
        assert (count, also) == (1, 1)
        folder = tmp_path / str(number)
        folder.mkdir()
        hipkittens(example, folder, changed)


def run(source: str, folder: Path) -> None:
    script = folder / "candidate.py"
    script.write_text(source)
    # ninja is looked for on PATH, and an environment that was not activated does not have it there.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False,
        env=os.environ | {"TORCH_EXTENSIONS_DIR": str(folder / "build"), "PATH": path},
    )  # fmt: skip
    assert done.stdout == "works\n", done.stderr[-4000:]


@pytest.mark.slow
@pytest.mark.parametrize("example", examples("cpp"), ids=str)
def test_cpp_is_built_and_computes(example: Example, tmp_path: Path) -> None:
    run(example.text + _CHECK.format(columns=1001, device="cpu"), tmp_path)


@pytest.mark.gpu
@pytest.mark.parametrize("example", examples("cuda"), ids=str)
def test_cuda_is_built_and_computes(example: Example, tmp_path: Path) -> None:
    import torch

    if not torch.cuda.is_available() or torch.version.cuda is None:
        pytest.skip("torch sees no NVIDIA GPU, so the CUDA example was not run")
    run(example.text + _CHECK.format(columns=1004, device="cuda"), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("example", examples("cuda"), ids=str)
def test_cuda_compiles_without_a_spill(example: Example, tmp_path: Path) -> None:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("NO nvcc ON PATH, so the CUDA example was not compiled")
    call = captured(example, tmp_path)
    files = write_sources(call, tmp_path / "src")
    assert files.cuda is not None
    flags = ["-std=c++20", "-arch=sm_90", "-Xptxas", "-v", "-Xcompiler", "-fPIC", *call.extra_cuda_cflags]
    device = run_tool([nvcc, *flags, "-c", str(files.cuda), "-o", "device.o"], tmp_path, SETTINGS.build_timeout)
    assert device.returncode == 0, device.output
    spills = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", device.output)
    assert spills
    assert set(spills) == {("0", "0", "0")}
    includes = [flag for folder in find_torch().includes for flag in ("-isystem", str(folder))]
    host = ["c++", "-std=c++20", "-fPIC", f"-DTORCH_EXTENSION_NAME={call.name}", *includes, *call.extra_cflags]
    binding = run_tool([*host, "-c", str(files.main), "-o", "main.o"], tmp_path, SETTINGS.build_timeout)
    assert binding.returncode == 0, binding.output


def captured(example: Example, folder: Path) -> ExtensionCall:
    """The one load_inline call of a candidate."""
    code = folder / "candidate.py"
    code.write_text(example.text)

    async def calls() -> list[ExtensionCall]:
        problem = problem_file(folder / "problem", AFFINE)
        async with LocalEvaluator(DeviceKind.CPU, SETTINGS) as evaluator:
            found = await evaluator.evaluate(problem, code, folder / "load", "cuda", build_only="capture")
        assert found.verdict is None, found.verdict
        return [ExtensionCall.model_validate(raw) for raw in found.extensions]

    (call,) = asyncio.run(calls())
    return call


TRITON_BLOCKS = [
    (path.name, block)
    for path in sorted(PROMPTS.iterdir())
    for block in re.findall(r"^```python\n(.*?)^```$", path.read_text(), re.DOTALL | re.MULTILINE)
    if "@triton.jit" in block
]
#: What each file's example is called with: inputs and constructor arguments.
TRITON_CALLS: dict[str, tuple[list[tuple[list[int], str]], list[object]]] = {
    "_backend_triton.txt": ([([8192, 4096], "float32")], [4096, 0.5])
}


def test_every_triton_example_has_a_call() -> None:
    assert TRITON_BLOCKS and {name for name, _ in TRITON_BLOCKS} == set(TRITON_CALLS)


@pytest.mark.triton
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize(("name", "source"), TRITON_BLOCKS, ids=[name for name, _ in TRITON_BLOCKS])
def test_the_triton_examples_compile(name: str, source: str, arch: str, tmp_path: Path) -> None:
    inputs, init_inputs = TRITON_CALLS[name]
    answer = record(tmp_path, source, inputs, init_inputs, arch)
    assert (answer["raised"], answer["refused"], answer["idle"]) == (None, [], [])
    assert answer["kernels"] and all(kernel["bytes"] for kernel in answer["kernels"])
