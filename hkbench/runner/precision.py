"""What the candidate sets in PyTorch to compute with fewer bits, seen at the setters, whenever it is put back."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch

MAX_SEEN = 64
_SHORT = {"tf32", "bf16", "high", "medium"}  #: values of the settings that are words


@dataclass(frozen=True)
class _Flag:
    """A setter of torch._C: what a user calls it, and how the value in force is read; {0} and {1} are arguments."""

    name: str
    getter: str


_FLAGS = {
    "_set_cublas_allow_tf32": _Flag("torch.backends.cuda.matmul.allow_tf32", "_get_cublas_allow_tf32"),
    "_set_cudnn_allow_tf32": _Flag("torch.backends.cudnn.allow_tf32", "_get_cudnn_allow_tf32"),
    "_set_onednn_allow_tf32": _Flag("torch.backends.mkldnn.allow_tf32", "_get_onednn_allow_tf32"),
    "_set_float32_matmul_precision": _Flag("torch.set_float32_matmul_precision", "_get_float32_matmul_precision"),
    "_set_fp32_precision_setter": _Flag("fp32_precision of {0}.{1}", "_get_fp32_precision_getter"),
    "_set_cublas_allow_fp16_reduced_precision_reduction": _Flag(
        "torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction",
        "_get_cublas_allow_fp16_reduced_precision_reduction",
    ),
    "_set_cublas_allow_bf16_reduced_precision_reduction": _Flag(
        "torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction",
        "_get_cublas_allow_bf16_reduced_precision_reduction",
    ),
    "_set_cublas_allow_fp16_accumulation": _Flag(
        "torch.backends.cuda.matmul.allow_fp16_accumulation", "_get_cublas_allow_fp16_accumulation"
    ),
    "_set_cpu_allow_fp16_reduced_precision_reduction": _Flag(
        "torch.backends.cpu.allow_fp16_reduced_precision_reduction", "_get_cpu_allow_fp16_reduced_precision_reduction"
    ),
    "_set_math_sdp_allow_fp16_bf16_reduction": _Flag(
        "torch.backends.cuda.allow_fp16_bf16_reduction_math_sdp", "_get_math_sdp_allow_fp16_bf16_reduction"
    ),
}


class PrecisionWatch:
    """Stand in for the setters of this process; tell of each setting once."""

    def __init__(self, path: str) -> None:
        """Take the candidate's file, whose line a setting is told with."""
        self._path = path
        self._told: set[tuple[str, str]] = set()
        self._new: list[dict[str, object]] = []
        for setter, flag in _FLAGS.items():
            whole = getattr(torch._C, setter, None)
            if whole is not None:
                self._stand_in(setter, self._watched(whole, flag))
        torch.set_autocast_enabled = self._autocast(torch.set_autocast_enabled)

    def take(self) -> list[dict[str, object]]:
        """Return what was set since the last time."""
        found, self._new = self._new, []
        return found

    @staticmethod
    def _stand_in(setter: str, watched: Callable[..., Any]) -> None:
        before = getattr(torch._C, setter)
        setattr(torch._C, setter, watched)
        for module in (torch.backends.cudnn, torch.backends.mkldnn):  # whose properties hold the setter itself
            for kept in vars(type(module)).values():
                if getattr(kept, "setter", None) is before:
                    kept.setter = watched

    def _watched(self, setter: Callable[..., Any], flag: _Flag) -> Callable[..., Any]:
        getter = getattr(torch._C, flag.getter, None)

        def watched(*given: Any) -> Any:
            keys = given[: flag.name.count("{")]
            value = given[len(keys)] if len(given) > len(keys) else None
            before = getter(*keys) if getter is not None else None
            before = before[0] if isinstance(before, tuple) else before
            result = setter(*given)
            lowers = value is True or (isinstance(value, str) and value in _SHORT)
            if lowers and value != before:
                self._note(flag.name.format(*keys), str(value))
            return result

        return watched

    def _autocast(self, setter: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*given: Any) -> Any:
            if given and given[-1] is True:
                self._note("torch.autocast", str(given[0]) if len(given) > 1 else "cuda")
            return setter(*given)

        return watched

    def _note(self, flag: str, value: str) -> None:
        if (flag, value) in self._told or len(self._told) >= MAX_SEEN:
            return
        self._told.add((flag, value))
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename != self._path:
            frame = frame.f_back
        self._new.append({"flag": flag, "value": value, "line": None if frame is None else frame.f_lineno})
