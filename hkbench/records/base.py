"""What all records share: frozen, strict about unknown fields, no behaviour."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """An immutable value. Unknown fields are refused; a missing figure is `None`, never 0."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=True, ser_json_inf_nan="strings")


class Backend(StrEnum):
    """The language a candidate's kernels are written in."""

    HIPKITTENS = "hipkittens"
    HIP = "hip"
    CUDA = "cuda"
    TRITON = "triton"
    CPP = "cpp"


class DeviceKind(StrEnum):
    """The kind of machine that measures."""

    ROCM = "rocm"
    CUDA = "cuda"
    CPU = "cpu"
