"""Candidates whose Triton launches are recorded in a process of their own: it believes in a GPU from then on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from hkbench.errors import ToolchainUnavailable
from hkbench.evaluation.launches import absent_gpu
from hkbench.protocol.codec import encode
from hkbench.toolchain.triton import find_triton

ROOT = Path(__file__).resolve().parents[2]
HEAD = """import torch
import triton
import triton.language as tl
from torch import nn

"""

_SCRIPT = """
import importlib.util, json, sys, torch
from hkbench.protocol.codec import decode, encode
from hkbench.protocol.messages import AbsentGpu
from hkbench.runner.launches import Launches

gpu, code, init_inputs, inputs = json.loads(sys.argv[1])
said = []
launches = Launches(decode(AbsentGpu, gpu), said.append)
spec = importlib.util.spec_from_file_location("candidate", code)
module = importlib.util.module_from_spec(spec)
sys.modules["candidate"] = module
spec.loader.exec_module(module)
tensors = [torch.empty(shape, dtype=getattr(torch, dtype), device="meta") for shape, dtype in inputs]
answer = encode(launches.forward(module.ModelNew, init_inputs, tensors, 0))
answer["raised"] = answer["raised"] and "{error}: {message}".format(**answer["raised"])
for number, kernel in enumerate(answer["kernels"]):
    kernel["image"] = launches.part(number, 0)
print(json.dumps(answer | {"said": said}))
"""


def require_triton() -> None:
    """Skip the test, loudly, where Triton is not installed."""
    try:
        find_triton()
    except ToolchainUnavailable as error:
        pytest.skip(f"NO TRITON, so nothing was compiled by it: {error}")


def record(
    folder: Path,
    source: str,
    inputs: Sequence[tuple[Sequence[int], str]],
    init_inputs: Sequence[object] = (),
    arch: str = "gfx942",
) -> dict[str, Any]:
    """Return what `Launches` says of a candidate's source; Triton's cache is `folder`/cache."""
    require_triton()
    code = folder / "candidate.py"
    code.write_text(source)
    words = json.dumps([encode(absent_gpu(arch)), str(code), list(init_inputs), list(inputs)])
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, words],
        capture_output=True, text=True, timeout=300, check=False, cwd=ROOT,
        env=os.environ | {"TRITON_CACHE_DIR": str(folder / "cache")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(answer, dict)
    return answer
