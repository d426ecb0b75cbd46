"""The worked examples in the prompts really work, as far as this machine can tell."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from prompts_samples import PROMPTS, ROOT
from support.triton_kernels import record

_CHECK = """
torch.manual_seed(0)
x = torch.randn(33, 1001)
model = ModelNew(1001, 0.5)
with torch.no_grad():
    model.weight.normal_()
    expected = torch.nn.functional.softshrink(x, 0.5) * model.weight
    assert torch.allclose(model(x), expected, rtol=1e-6, atol=0)
for wrong in (x.double(), x.T):
    try:
        model(wrong)
    except RuntimeError:
        continue
    raise AssertionError("accepted what it cannot compute")
print("works")
"""


def example(name: str) -> str:
    blocks = re.findall(r"^```python\n(.*?)^```$", (PROMPTS / name).read_text(), re.DOTALL | re.MULTILINE)
    assert len(blocks) == 1
    return str(blocks[0])


@pytest.mark.slow
def test_the_cpp_example_builds_and_computes(tmp_path: Path) -> None:
    script = tmp_path / "candidate.py"
    script.write_text(example("_backend_cpp.txt") + _CHECK)
    # ninja is looked for on PATH, and an environment that was not activated does not have it there.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False,
        env=os.environ | {"TORCH_EXTENSIONS_DIR": str(tmp_path / "build"), "PATH": path},
    )  # fmt: skip
    assert done.stdout == "works\n", done.stderr[-4000:]


@pytest.mark.hipcc
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_the_hip_example_compiles(arch: str, tmp_path: Path) -> None:
    hipcc = shutil.which("hipcc") or shutil.which(ROOT / ".hip" / "bin" / "hipcc")
    if hipcc is None:
        pytest.skip("no hipcc; scripts/install_hip_toolchain.sh installs one")
    found = re.search(r'HIP = r"""(.*?)"""', example("_backend_hip.txt"), re.DOTALL)
    assert found is not None
    (tmp_path / "k.hip").write_text(found[1])
    options = ["-std=c++20", "-O3", "-fPIC", f"--offload-arch={arch}", "-D__HIP_PLATFORM_AMD__=1"]
    done = subprocess.run(
        [hipcc, *options, "-c", "k.hip", "-o", "k.o"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]


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
