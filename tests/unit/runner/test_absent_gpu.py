"""Tensors of a GPU that is not there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest
import torch

from hkbench.runner.absent_gpu import DEVICE, STORAGE_ALIGNMENT, AbsentGpuMode, is_on_gpu


@pytest.fixture(autouse=True)
def _within() -> Iterator[None]:
    with AbsentGpuMode():
        yield


def test_a_tensor_on_cuda_has_no_contents_and_says_that_it_lies_there() -> None:
    x = torch.empty(1 << 20, 1 << 16, device="cuda", dtype=torch.bfloat16)  # 128 GiB
    assert (x.device, x.is_cuda, x.is_meta, x.get_device()) == (DEVICE, True, False, 0)
    assert (x.shape, x.dtype, is_on_gpu(x)) == ((1 << 20, 1 << 16), torch.bfloat16, True)
    same = (torch.empty_like(x), torch.zeros(3, device=x.device), torch.ones(3).cuda(), torch.ones(3).to("cuda:0"))
    assert all(is_on_gpu(one) and one.device == DEVICE for one in same)
    assert (x @ x.t()).shape == (1 << 20, 1 << 20)


def test_what_is_on_the_cpu_stays_there_and_keeps_its_values() -> None:
    x = torch.arange(4)
    assert (x.device.type, x.is_cuda, is_on_gpu(x), x.sum().item()) == ("cpu", False, False, 6)


def test_a_module_goes_to_the_gpu_with_its_parameters() -> None:
    module = torch.nn.Linear(8, 4).to(DEVICE).half()
    assert all(is_on_gpu(parameter) and parameter.dtype == torch.float16 for parameter in module.parameters())
    assert module(torch.empty(2, 8, device="cuda", dtype=torch.float16)).device == DEVICE


def test_contents_cannot_be_asked_for() -> None:
    x = torch.zeros(4, device="cuda")
    for ask in (lambda: x.sum().item(), lambda: x.cpu(), lambda: bool((x > 0).any()), lambda: x.tolist()):
        with pytest.raises((RuntimeError, NotImplementedError)):
            ask()


@pytest.mark.parametrize(("begin", "aligned"), [(0, True), (4, True), (1, False), (6, False)])
def test_addresses_are_aligned_as_the_storage_and_the_offset_are(begin: int, aligned: bool) -> None:
    x = torch.empty(64, device="cuda")
    assert x[begin:].data_ptr() == STORAGE_ALIGNMENT + 4 * begin
    assert (x[begin:].data_ptr() % 16 == 0) is aligned


def test_a_custom_operator_runs_its_own_function_and_not_its_fake() -> None:
    ran = []

    @torch.library.custom_op("absent_gpu_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        ran.append(x.device)
        return torch.empty_like(x)

    @twice.register_fake
    def _(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    twice(torch.empty(3, device="cuda"))
    torch.ops.absent_gpu_test.twice(torch.empty(3, device="cuda"))
    assert ran == [DEVICE, DEVICE]


_QUESTIONS = """
import torch
from hkbench.protocol.messages import AbsentGpu
from hkbench.runner.absent_gpu import answer_questions
answer_questions(AbsentGpu(name="MI355X", arch="gfx950", compute_units=256, memory=288, lds=163840))
properties = torch.cuda.get_device_properties(0)
assert torch.cuda.is_available() and torch.cuda.device_count() == 1 and torch.version.hip is not None
assert (properties.multi_processor_count, properties.gcnArchName, properties.warp_size) == (256, "gfx950", 64)
assert torch.cuda.get_device_capability() == (9, 5) and torch.cuda.get_device_name() == "MI355X"
side = torch.cuda.Stream()
with torch.cuda.device(0), torch.cuda.stream(side):
    side.wait_stream(torch.cuda.current_stream())
    torch.empty(3, device="meta").record_stream(side)
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph, pool=torch.cuda.graph_pool_handle()):
    torch.empty(3, device="meta")
graph.replay()
event = torch.cuda.Event(enable_timing=True)
event.record()
torch.cuda.synchronize()
assert event.query()
print("answered")
"""


def test_questions_about_the_device_are_answered() -> None:
    done = subprocess.run([sys.executable, "-c", _QUESTIONS], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "answered\n", done.stderr[-2000:]
