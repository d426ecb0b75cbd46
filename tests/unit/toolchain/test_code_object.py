"""Offload bundles and metadata by their text form; test_compiled_kernels.py reads real ones."""

from __future__ import annotations

import struct

import pytest
from support.device_code import MAGIC, bundle

from hkbench.toolchain.code_object import KernelMetadata, NotInspected, parse_metadata, unbundled

DEVICE = "hipv4-amdgcn-amd-amdhsa--gfx942"


def test_bundles_that_follow_one_another_are_all_read() -> None:
    first, second = bundle(**{"host-x86_64": b"", DEVICE: b"one"}), bundle(**{DEVICE: b"two"})
    content = first + bytes(4096 - len(first)) + second
    assert unbundled(content) == [("host-x86_64", b""), (DEVICE, b"one"), (DEVICE, b"two")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x7fELF", "no Clang offload bundle"),
        (b"CCOB\x02\x00", "compressed"),
        (MAGIC, "cut off"),
        (MAGIC + struct.pack("<Q", 1 << 60), "claims"),
        (MAGIC + struct.pack("<Q", 0), "claims"),
        (bundle(**{DEVICE: b"x"}) * 65, "more than their section"),
        (MAGIC + struct.pack("<Q", 2) + struct.pack("<QQQ", 0, 80, 0) * 2, "more than their section"),
        (bundle(**{DEVICE: b"device code"})[:-1], "cut off"),
    ],
)
def test_what_is_no_bundle_is_said(content: bytes, message: str) -> None:
    with pytest.raises(NotInspected, match=message):
        unbundled(content)


NOTES = """
Displaying notes found in: .note
    AMDGPU Metadata:
        ---
amdhsa.kernels:
  - .agpr_count:     0
    .args:
      - .name:           x
        .size:           8
        .value_kind:     global_buffer
    .group_segment_fixed_size: 1024
    .max_flat_workgroup_size: 256
    .name:           _Z5scalePf
    .private_segment_fixed_size: 64
    .sgpr_count:     20
    .sgpr_spill_count: 1
    .symbol:         _Z5scalePf.kd
    .vgpr_count:     128
    .vgpr_spill_count: 15
  - .args:           []
    .name:           '_Z1k$1'
    .vgpr_count:     99999999999999999999
amdhsa.printf:
  - '1:1:4:%d'
amdhsa.target:   amdgcn-amd-amdhsa--gfx942
"""


def test_metadata_of_two_kernels() -> None:
    scale = KernelMetadata(
        "_Z5scalePf", 256, registers=128, agprs=0, sgprs=20, lds_bytes=1024, scratch_bytes_per_lane=64, vgpr_spills=15,
        sgpr_spills=1,
    )  # fmt: skip
    assert parse_metadata(NOTES) == (scale, KernelMetadata("_Z1k$1", None))
    assert parse_metadata("no notes\n") == ()
