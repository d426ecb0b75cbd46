"""Has an evaluator do on a tiny problem what it does for every verdict, before there is a candidate.

A GPU's driver loads each kernel when it is launched for the first time. Those of an evaluator (drawing, comparing,
filling) take 0.2 to 0.7 s on an H200, which an evaluator that stays with its GPU spends once, while the first
candidates are built; so do the 1.8 s in which the kernels of installed packages are read.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import torch

from hkbench.analysis import compare, roofline
from hkbench.analysis.input_distributions import Variator, trial_plan
from hkbench.analysis.reference import Reference
from hkbench.evaluation.arena import Layout, SharedBuffer
from hkbench.evaluation.device_code import device_code
from hkbench.evaluation.quiet import IdleProbe
from hkbench.profile.copies import installed_runs
from hkbench.records import DeviceFacts, Problem, SizeSet

_SOURCE = """
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.rand(64))
    def forward(self, x):
        return torch.relu(x @ torch.diag(self.scale)) + x.sum(1, keepdim=True)
def get_inputs():
    return [torch.randn(64, 64) + torch.rand(64, 64)]
def get_init_inputs():
    return []
"""


def warm(device: torch.device, facts: DeviceFacts) -> None:
    """Use the device as an evaluation does. Raises what a device raises that does not work."""
    problem = Problem(number=0, name="warm", level=None, path=Path("warm.py"), source=_SOURCE, sha256="")
    reference = Reference(problem, SizeSet.FULL, device, 0)
    variator = Variator(reference)
    for seed, plan in enumerate(trial_plan(5, has_parameters=True)):
        drawn = variator.draw(plan.inputs, seed)
        _shared(drawn.inputs[0], device)
        for path, native in drawn.native.items():
            precise = drawn.precise[path]
            assert isinstance(native, torch.Tensor) and isinstance(precise, torch.Tensor)
            for answer in (native.clone(), native + 1.0):
                compare.compare_output(path, native, precise, answer, None)
            compare.plainly_right(precise, native.clone(), None)
    inputs = reference.inputs(0)
    roofline.least_time(reference, inputs, reference.native(inputs), facts)
    IdleProbe(device).look()
    if device.type == "cuda":
        with suppress(RuntimeError):  # an evaluation says so
            device_code(device)
        installed_runs()
    reference.forget()


def _shared(tensor: torch.Tensor, device: torch.device) -> None:
    """Do with shared memory what an evaluation does with it."""
    if device.type != "cuda":
        return
    layout = Layout()
    place = layout.place(tensor)
    try:
        arena = SharedBuffer.on_device(layout.size, device)
    except RuntimeError:
        return  # an evaluation goes by the host then, and says so
    arena.put(place, tensor)
    torch.equal(arena.get(place).view(torch.int64), tensor.view(torch.int64))
    arena.poison()
    arena.release()
