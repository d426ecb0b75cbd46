"""What all records share: frozen, strict about unknown fields, no behaviour."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict


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


def _one_component(name: str) -> str:
    """Refuse a name that would lead out of the folder in which it names another one."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise ValueError(f"{name[:80]!r} is not the name of a folder: write it without `/`, as in 4_RMSNorm")
    return name


#: The name of a folder in another one: a single component of a path.
FolderName = Annotated[str, AfterValidator(_one_component)]
