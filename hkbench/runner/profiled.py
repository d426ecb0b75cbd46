"""The process that a profiler looks at: `python .../hkbench/runner/profiled.py FILE`.

FILE is JSON: the candidate's `code`, the `problem` with its `overrides`, the `device`, a `seed`, how many `warmups`
and how many `forwards`. The model gets its own parameters and the problem's own inputs, made here: nothing of the
evaluator's comes to this process, and nothing that it computes goes back.

On a GPU the last `forwards` passes stand between a marker kernel and the end. On NVIDIA they are what
cudaProfilerStart and cudaProfilerStop enclose, so that ncu sees nothing else. Triton's profiler begins and ends its
session in this process.
"""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

if __name__ == "__main__":
    # Started by its path: a profiler may do so without our PYTHONPATH, and the cage lets nobody list the folders above
    # this one, as an ordinary import of the packages would. This folder's own names are not to hide those of others.
    folder = sys.path.pop(0)
    home = folder.rpartition("/")[0]
    for name in ("", "runner", "protocol", "fastbuild", "fastbuild/inside"):
        package = ".".join(filter(None, ("hkbench", *name.split("/"))))
        sys.modules[package] = ModuleType(package)
        sys.modules[package].__path__ = [f"{home}/{name}".rstrip("/")]
    beside = f"{home.rpartition('/')[0]}/hipkittens_build"
    spec = spec_from_file_location("hipkittens_build", f"{beside}/__init__.py", submodule_search_locations=[beside])
    assert spec is not None and spec.loader is not None
    sys.modules["hipkittens_build"] = module_from_spec(spec)
    spec.loader.exec_module(sys.modules["hipkittens_build"])

import importlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

from hkbench.fastbuild.inside.patch_torch import enable_fast_builds_if_offered
from hkbench.protocol.constants import PROTON_SESSION
from hkbench.protocol.memory import mapped
from hkbench.runner.capture import cpp_extension
from hkbench.runner.load import load_file


def main(path: str) -> None:
    """Make the passes. Raises what the candidate or the problem raises."""
    asked = json.loads(Path(path).read_text())
    device = torch.device(asked["device"])
    if device.type == "cuda":
        torch.cuda.set_device(device)
    problem = load_file("problem", asked["problem"], asked["overrides"])
    enable_fast_builds_if_offered(
        cpp_extension
    )  # its build stands in this folder as long as it is asked for in the same words
    candidate = load_file("candidate", asked["code"], {})
    torch.manual_seed(asked["seed"])
    model = candidate.ModelNew(*problem.get_init_inputs()).to(device)
    with torch.device(device):
        inputs = [mapped(value, lambda tensor: tensor.to(device)) for value in problem.get_inputs()]
    with torch.no_grad():
        for _ in range(asked["warmups"]):
            model(*inputs)
        _begin(device)
        with _session():
            for _ in range(asked["forwards"]):
                model(*inputs)
            _finish(device)
        _end(device)


def _begin(device: torch.device) -> None:
    """Mark the beginning of the passes, so that earlier work can be told apart."""
    if device.type != "cuda":
        return
    torch.cuda._sleep(1)  # a kernel that no pass has: the passes after it are found by their repeating
    torch.cuda.synchronize(device)
    if torch.version.cuda is not None:
        _check(torch.cuda.cudart().cudaProfilerStart())


@contextmanager
def _session() -> Iterator[None]:
    """Have Triton's profiler look at the passes, where it is asked to."""
    path = os.environ.get(PROTON_SESSION)
    if path is None:
        yield
        return
    proton = importlib.import_module("triton.profiler")
    proton.start(path)
    yield
    proton.finalize()


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _end(device: torch.device) -> None:
    if device.type == "cuda" and torch.version.cuda is not None:
        _check(torch.cuda.cudart().cudaProfilerStop())


def _check(status: int) -> None:
    torch.cuda.check_error(int(status))


if __name__ == "__main__":
    main(sys.argv[1])
