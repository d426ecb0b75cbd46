"""Bundles of code objects, as Clang's offload bundler writes them: made by hand, and by the compiler at hand."""

from __future__ import annotations

import os
import struct
import subprocess
import zlib
from pathlib import Path

import pytest
import zstandard
from support.compilers import hip_or_skip
from support.device_code import MAGIC, bundle

from hkbench.engine.stripped import replaced_files
from hkbench.profile import elf
from hkbench.toolchain.offload_bundle import SECTION, BadBundle, bundles, emptied

BOTH = bundle(**{"host-x86_64": b"", "hipv4-gfx942": b"first", "hipv4-gfx950": b"second"})
ZLIB, ZSTD = 0, 1
COPIES = '#include <hip/hip_runtime.h>\nextern "C" __global__ void direct_copy_kernel_cuda(float* x) { x[0] = 1; }\n'
COMPUTES = COPIES.replace("direct_copy_kernel_cuda", "gemm_kernel") + (
    'extern "C" __global__ void other_kernel(float* x) { x[1] = 2; }\n'
)


def packed(content: bytes, version: int, method: int = ZSTD) -> bytes:
    inner = zstandard.ZstdCompressor().compress(content) if method == ZSTD else zlib.compress(content)
    sizes = {1: "<I", 2: "<II", 3: "<QQ"}[version]
    head = 8 + struct.calcsize(sizes) + 8
    said = (len(content),) if version == 1 else (head + len(inner), len(content))
    return struct.pack("<4sHH", b"CCOB", version, method) + struct.pack(sizes, *said) + bytes(8) + inner


Read = tuple[int, int, list[bytes]]  #: where a bundle begins and ends, and what is in it


def read(section: bytes) -> list[Read]:
    return [(begin, end, [bytes(code) for code in found]) for begin, end, found in bundles(memoryview(section))]


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("method", [ZLIB, ZSTD])
def test_packed_bundles_one_after_the_other(version: int, method: int) -> None:
    one = packed(BOTH, version, method)
    images = [b"", b"first", b"second"]
    assert read(one + bytes(64) + one) == [(0, len(one), images), (len(one) + 64, 2 * len(one) + 64, images)]


def test_a_bundle_and_filling_behind_it() -> None:
    assert read(BOTH + bytes(4096)) == [(0, len(BOTH), [b"", b"first", b"second"])]


def test_an_emptied_bundle_has_nothing_in_it() -> None:
    ((_, _, found),) = read(emptied(memoryview(BOTH)))
    assert found == []


@pytest.mark.parametrize(
    "section",
    [
        b"\x01" * 64,
        MAGIC + struct.pack("<Q", 1 << 40),
        MAGIC + struct.pack("<Q", 2),
        MAGIC + struct.pack("<QQQQ", 1, 0, 1 << 40, 0),
        packed(b"no bundle", 3)[:-4],
        struct.pack("<4sHH", b"CCOB", 9, ZSTD) + bytes(64),
        struct.pack("<4sHHQQQ", b"CCOB", 3, ZSTD, 64, 100, 0) + b"\x01" * 32,
    ],
    ids=["no bundle", "too many", "cut", "beyond the end", "packed and cut", "another version", "no zstd"],
)
def test_what_is_written_otherwise_is_said_to_be_unknown(section: bytes) -> None:
    with pytest.raises(BadBundle):
        read(section)


@pytest.mark.hipcc
@pytest.mark.parametrize("option", ["--no-offload-compress", "--offload-compress"])
def test_what_the_compiler_writes(tmp_path: Path, option: str) -> None:
    toolchain = hip_or_skip("no bundle of the compiler's was read")
    objects = []
    for name, source in (("copies", COPIES), ("computes", COMPUTES)):
        (tmp_path / f"{name}.hip").write_text(source)
        made = tmp_path / f"{name}.o"
        words = ("-c", "-fPIC", "--offload-arch=gfx942", "--offload-arch=gfx950", option)
        subprocess.run([str(toolchain.hipcc), *words, str(tmp_path / f"{name}.hip"), "-o", str(made)], check=True)
        objects.append(str(made))
    library = tmp_path / "libtorch_hip.so"
    subprocess.run(["g++", "-shared", *objects, "-o", str(library)], check=True)
    os.truncate(library, 1 << 17)  # as large as what computes something on a GPU
    copy = Path(replaced_files([str(tmp_path)], tmp_path / "store")[str(library)])
    for path, kept in ((library, True), (copy, False)):
        content = path.read_bytes()
        section = elf.sections(content)[SECTION]
        (_, _, copies), (_, _, computes) = read(content[section.offset : section.offset + section.size])
        assert all(b"direct_copy_kernel_cuda.kd" in code for code in copies[1:])
        assert len(copies) == 3  # the host's is empty
        assert len(computes) == 3 * kept
        assert all(b"gemm_kernel.kd" in code for code in computes[1:])
