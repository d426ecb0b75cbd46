"""What PyTorch's CPU build raises where a GPU's would not, and what any PyTorch raises."""

from __future__ import annotations

import pytest

from hkbench.evaluation.lacking import lacking
from hkbench.records import Failure, FailureKind, Stage

SOURCE = "import torch\n    here(\n"


def _failure(message: str, line: int = 2, kind: FailureKind = FailureKind.RUNTIME_ERROR) -> Failure:
    trace = f'  File "kernel.py", line {line}, in forward\n    here(\n  File "torch.py", line 1, in here\n    raise'
    return Failure(stage=Stage.RUN, kind=kind, message=message, detail=trace)


@pytest.mark.parametrize(
    "message",
    [
        "AttributeError: module 'torch._C' has no attribute '_cuda_sleep'",
        "torch._inductor.exc.InductorError: RuntimeError: PyTorch was compiled without CUDA support",
        "RuntimeError: Tried to instantiate dummy base class _CUDAGreenContext",
        "RuntimeError: Cannot get CUDA generator without ATen_cuda library. PyTorch splits its backend",
        "RuntimeError: NVTX functions not installed. Are you sure you have a CUDA build?",
        "TypeError: type torch.cuda.FloatTensor not available. Torch not compiled with CUDA enabled.",
        "RuntimeError: torch.UntypedStorage(): Storage device not recognized: cuda",
        "NotImplementedError: Could not run 'aten::_nnz' with arguments from the 'SparseCsrCUDA' backend.",
        "ModuleNotFoundError: amdsmi does not seem to be installed or it can't be imported.",
    ],
)
@pytest.mark.parametrize("line", [1, 2, 9])
def test_what_the_cpu_build_lacks_is_unsupported(message: str, line: int) -> None:
    found = lacking(_failure(message, line), SOURCE)
    assert found.kind is FailureKind.UNSUPPORTED
    assert message in found.message and "on a GPU" in found.message
    assert ("`here(`" in found.message) is (line == 2)


@pytest.mark.parametrize("symbol", ["hipblasCreate", "rocblas_sgemm", "_ZN2at4cuda26getCurrentCUDASparseHandleEv"])
def test_a_symbol_of_a_library_that_is_not_there_is_unsupported_by_its_name(symbol: str) -> None:
    found = lacking(_failure(f"ImportError: /a/b.so: undefined symbol: {symbol}", kind=FailureKind.LOAD_ERROR), SOURCE)
    assert found.kind is FailureKind.UNSUPPORTED and found.message.startswith(symbol)


@pytest.mark.parametrize(
    "failure",
    [
        _failure("ImportError: /a/b.so: undefined symbol: hip_launch", kind=FailureKind.LOAD_ERROR),
        _failure("ImportError: /a/b.so: undefined symbol: _Z6launchPfi", kind=FailureKind.LOAD_ERROR),
        _failure("RuntimeError: Expected all tensors to be on the same device, but found cuda:0 and cpu!"),
        _failure("AttributeError: module 'torch' has no attribute 'softmaxx'"),
        _failure("no attribute '_cuda_sleep' in torch._C' has no attribute '_", kind=FailureKind.WRONG_VALUES),
    ],
)
def test_the_candidates_own_failure_stays(failure: Failure) -> None:
    assert lacking(failure, SOURCE) == failure
