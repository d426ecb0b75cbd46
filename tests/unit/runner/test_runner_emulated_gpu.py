"""What a candidate's process sees of an emulated GPU: torch's device, HIP's runtime, and what is refused.

Each script runs in a process of its own, which is a GPU's for good.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from support.compilers import hip_or_skip

from hkbench.toolchain.emulated import find_runtime

pytestmark = [pytest.mark.hipcc, pytest.mark.slow]
ROOT = Path(__file__).parents[3]


def _run(folder: Path, script: str) -> None:
    hip_or_skip("nothing was seen of an emulated GPU")
    path = folder / "script.py"
    path.write_text(textwrap.dedent(script))
    words = [sys.executable, str(ROOT / "tests" / "support" / "emulated_gpu.py"), str(find_runtime().folder), str(path)]
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'tests'}"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_torch_computes_on_the_device_as_on_the_host(tmp_path: Path) -> None:
    _run(
        tmp_path,
        """
        import copy
        import torch
        from torch.nn import functional as F

        x = torch.randn(12, 20)
        g = x.cuda()
        assert g.is_cuda and g.device == torch.device("cuda", 0) and g.data_ptr() % 512 == 0
        for number, compute in enumerate((
            lambda t: t @ t.t(), lambda t: F.softmax(t, -1), lambda t: torch.cat([t, t]), lambda t: t.max(1)[1],
            lambda t: t.cumsum(0), lambda t: t[t > 0], lambda t: F.pad(t, (0, 3)), lambda t: t.bfloat16().float(),
            lambda t: t.t().contiguous(), lambda t: t.unfold(1, 5, 5).clone(), lambda t: F.layer_norm(t, (20,)),
            lambda t: torch.where(t > 0, t, torch.zeros_like(t)), lambda t: t.expand(3, 12, 20).sum(0),
            lambda t: t.view(20, 12),
            lambda t: torch.einsum("ij,kj->ik", t, t), lambda t: torch.sort(t.flatten(), descending=True)[0],
        )):
            there, here = compute(g), compute(x)
            assert there.is_cuda and there.dtype == here.dtype, number
            assert torch.allclose(there.cpu(), here, atol=1e-6), (number, there, here)
        assert abs(g.sum().item() - x.sum().item()) < 1e-4 and g.any()
        linear = copy.deepcopy(torch.nn.Linear(20, 5).cuda()).cpu()
        assert torch.allclose(linear.cuda()(g).detach().cpu(), linear.cpu()(x).detach(), atol=1e-6)
        """,
    )


def test_types_of_older_code_make_tensors_on_the_device(tmp_path: Path) -> None:
    _run(
        tmp_path,
        """
        import numpy
        import torch

        made = torch.cuda.FloatTensor(3, 4)
        assert type(made) is torch.Tensor and made.is_cuda and made.shape == (3, 4) and made.isnan().all()
        assert torch.cuda.IntTensor(2).zero_().tolist() == [0, 0] and torch.cuda.ByteTensor().shape == (0,)
        assert torch.cuda.HalfTensor(torch.Size([2, 2])).shape == (2, 2)
        for values in ([3, 5], (3, 5), numpy.array([3, 5])):
            assert torch.cuda.LongTensor(values).tolist() == [3, 5] and torch.cuda.LongTensor(values).is_cuda
        assert torch.cuda.FloatTensor(made).data_ptr() == made.data_ptr()
        assert isinstance(made, torch.cuda.FloatTensor)
        assert not isinstance(made, torch.cuda.IntTensor) and not isinstance(made.cpu(), torch.cuda.FloatTensor)
        assert made.type(torch.cuda.DoubleTensor).type() == "torch.cuda.DoubleTensor"
        torch.set_default_tensor_type(torch.FloatTensor)
        assert not report()["refusals"]
        for which in (torch.cuda.FloatTensor, "torch.cuda.FloatTensor"):
            begin()
            try:
                torch.set_default_tensor_type(which)
            except NotImplementedError:
                pass
            (refusal,) = report()["refusals"]
            assert "set_default_tensor_type" in refusal["message"]
        """,
    )


def test_host_code_makes_bfloat16_of_numbers_as_with_rocms_compiler(tmp_path: Path) -> None:
    _run(
        tmp_path,
        """
        import ctypes
        import math
        import random
        import struct
        from fractions import Fraction

        import torch

        def called(function, kind, number):  # the low half of what comes back as a float
            function.restype, function.argtypes = ctypes.c_float, (kind,)
            return struct.unpack("<H", struct.pack("<f", function(number))[:2])[0]

        def nearest(number):  # of all bfloat16 that are finite; ties to even
            scale = Fraction(2) ** (max(math.frexp(number)[1] - 1, -126) - 7)
            return float(round(Fraction(number) / scale) * scale)

        to_float, to_double = gpu.runtime.__truncsfbf2, gpu.runtime.__truncdfbf2
        draw = random.Random(1)
        singles = [struct.unpack("<f", draw.randbytes(4))[0] for _ in range(2000)]
        singles += [0.0, -0.0, 1.0, 1.00390625, 1.01171875, 3.4e38, float("inf"), float("-inf"), 1e-40, -1e-45]
        for number in singles:
            bits = torch.tensor(number, dtype=torch.float32).to(torch.bfloat16).view(torch.int16).item() & 0xFFFF
            found = called(to_float, ctypes.c_float, number)
            assert found == bits or number != number and found & 0x7FFF > 0x7F80, (number, hex(found), hex(bits))
        doubles = [draw.uniform(-4, 4) * 2.0 ** draw.randint(-140, 120) for _ in range(2000)]
        doubles += [1 + 2**-8, 1 + 2**-8 + 2**-40, 1 + 2**-8 - 2**-40, 1 + 3 * 2**-8 - 2**-40, 1e-60, -1e-60, 0.0]
        for number in doubles:
            found = struct.unpack("<f", struct.pack("<I", called(to_double, ctypes.c_double, number) << 16))[0]
            assert found == nearest(number), (number, found)
        for number in (1e300, float("inf")):
            assert called(to_double, ctypes.c_double, number) == 0x7F80
        """,
    )


def test_views_in_place_operators_and_resized_results_keep_their_memory(tmp_path: Path) -> None:
    _run(
        tmp_path,
        """
        import torch

        x = torch.zeros(4, 6, device="cuda")
        row, where = x[1], x.data_ptr()
        row += 2
        x[:, 0] = 7
        x.mul_(3)
        assert x.data_ptr() == where and row.data_ptr() == where + 6 * 4
        assert row.tolist() == [21.0] + [6.0] * 5
        out = torch.empty(0, device="cuda")
        torch.add(x, 1, out=out)
        assert out.is_cuda and out.shape == (4, 6) and out[1, 1].item() == 7.0
        assert torch.empty(64, device="cuda").isnan().all(), "what is handed out holds no old answer"
        del out, row
        assert report()["violation"] is None
        """,
    )


def test_the_runtime_hands_out_the_devices_memory_and_refuses_the_rest_by_name(tmp_path: Path) -> None:
    _run(
        tmp_path,
        """
        import ctypes
        import torch

        hip = gpu.runtime
        pointer = ctypes.c_void_p()
        assert hip.hipMalloc(ctypes.byref(pointer), ctypes.c_size_t(1 << 20)) == 0
        assert pointer.value % 512 == 0
        assert hip.hipMemset(pointer, 1, ctypes.c_size_t(1 << 20)) == 0
        assert hip.hipFree(pointer) == 0 and hip.hipFree(pointer) == 1 and hip.hipGetLastError() == 1
        assert hip.hipMalloc(ctypes.byref(pointer), ctypes.c_size_t(1 << 40)) == 2, "out of memory"
        assert gpu.error() == "out of memory (error 2)" and gpu.error() is None
        count = ctypes.c_int()
        assert hip.hipGetDeviceCount(ctypes.byref(count)) == 0 and count.value == 1
        assert report()["violation"] is None and report()["refusals"] == []
        assert hip.hipGraphCreate() == 801 and gpu.error() == "operation not supported (error 801)"
        try:
            torch.cuda.CUDAGraph()
        except NotImplementedError:
            pass
        told = [one["message"].split()[0] for one in report()["refusals"]]
        assert told == ["hipGraphCreate", "torch.cuda.CUDAGraph"], told
        """,
    )


def test_torch_cuda_answers_as_on_the_gpu_that_is_emulated(tmp_path: Path) -> None:
    _run(
        tmp_path,
        """
        import torch

        known = torch.cuda.get_device_properties(0)
        assert torch.cuda.is_available() and torch.cuda.device_count() == 1 and torch.version.hip == "7.2.0"
        assert (known.gcnArchName, known.multi_processor_count, known.warp_size) == ("gfx942", 304, 64)
        assert torch.cuda.get_device_capability() == (9, 4)
        assert torch._C._cuda_getCurrentRawStream(0) == torch.cuda.current_stream().cuda_stream == 0
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record(); end.record(); torch.cuda.synchronize()
        assert begin.elapsed_time(end) == 1000.0, "no clock is read"
        with torch.cuda.stream(torch.cuda.Stream()):
            assert torch.ones(3, device="cuda").sum().item() == 3.0
        """,
    )


def test_generators_of_the_device_have_states_of_their_own(tmp_path: Path) -> None:
    _run(
        tmp_path,
        """
        import torch

        def numbers(**how):
            return torch.randn(5, device="cuda", **how).tolist()

        one, other = torch.Generator("cuda").manual_seed(3), torch.Generator(device="cuda:0").manual_seed(3)
        assert one.device == torch.device("cuda", 0)
        first = numbers(generator=one)
        assert first == numbers(generator=other) != numbers(generator=one)
        state = one.get_state()
        drawn = torch.randperm(9, device="cuda", generator=one).tolist()
        assert sorted(drawn) == list(range(9))
        one.set_state(state)
        assert torch.randperm(9, device="cuda", generator=one.clone_state()).tolist() == drawn
        for seed in (torch.manual_seed, torch.cuda.manual_seed, torch.cuda.manual_seed_all):
            seed(4)
            before = numbers()
            seed(4)
            assert numbers() == before
        state = torch.cuda.get_rng_state()
        before = numbers(generator=torch.cuda.default_generators[0])
        torch.cuda.set_rng_state(state)
        assert numbers() == before
        try:
            numbers(generator=torch.Generator())
        except RuntimeError as error:
            assert "Expected a 'cuda' device type for generator" in str(error)
        else:
            raise AssertionError("the host's generator was taken")
        """,
    )


def test_streams_pinned_memory_autocast_and_figures_of_memory_are_there(tmp_path: Path) -> None:
    _run(
        tmp_path,
        """
        import torch

        with torch.cuda.Stream(priority=-1) as stream, torch.cuda.device_of(torch.ones(1, device="cuda")):
            stream.wait_stream(torch.cuda.current_stream())
            assert stream.record_event().query() and not torch.cuda.is_current_stream_capturing()
        torch.cuda.set_stream(stream)
        pinned = torch.ones(8).pin_memory()
        assert pinned.is_pinned() and not torch.ones(8).is_pinned() and pinned.device.type == "cpu"
        there = pinned.cuda(0, non_blocking=True)
        assert there.to("cpu", non_blocking=True).tolist() == [1.0] * 8
        assert torch.accelerator.current_accelerator().type == "cuda"

        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        large = torch.ones(1 << 18, device="cuda")
        assert torch.cuda.memory_allocated() - before >= large.nbytes
        assert sum(torch.cuda.mem_get_info()) == 2 * (192 << 30) - torch.cuda.memory_allocated()
        del large
        assert torch.cuda.memory_allocated() == before
        assert torch.cuda.max_memory_allocated() - before >= 1 << 20

        x = torch.randn(8, 8)
        for autocast in (torch.autocast("cuda"), torch.amp.autocast("cuda", torch.bfloat16)):
            with autocast:
                product = x.cuda() @ x.cuda()
                assert product.dtype == torch.get_autocast_dtype("cuda")
                assert product.softmax(-1).dtype == product.log_softmax(-1).dtype == torch.float32
                assert torch.allclose(product.softmax(-1).cpu(), product.cpu().float().softmax(-1))
        weight = torch.ones(3, device="cuda", requires_grad=True)
        (weight * 2).sum().backward()
        assert weight.grad.tolist() == [2.0] * 3
        assert report()["violation"] is None and report()["refusals"] == []
        """,
    )


def test_what_torch_cannot_do_there_is_refused_by_name(tmp_path: Path) -> None:
    _run(
        tmp_path,
        """
        import torch

        x = torch.eye(4, device="cuda")
        calls = {
            "aten::_sparse_coo_tensor_with_dims_and_tensors": lambda: torch.eye(4).to_sparse().cuda(),
            "aten::_to_sparse": x.to_sparse,
            "aten::_nnz": lambda: torch.eye(4).to_sparse_csr().cuda()._nnz(),
            "aten::quantize_per_tensor": lambda: torch.quantize_per_tensor(x, 0.1, 0, torch.qint8),
            "aten::_thnn_fused_gru_cell": lambda: torch.nn.GRU(4, 4).cuda()(x[None]),
            "torch.cuda.memory_stats": torch.cuda.memory_stats,
            "torch.cuda.MemPool": torch.cuda.MemPool,
        }
        for name, call in calls.items():
            begin()
            try:
                call()
            except NotImplementedError as error:
                assert name in str(error), error
            else:
                raise AssertionError(name)
            (refusal,) = report()["refusals"]
            assert name in refusal["message"], refusal
        """,
    )
