"""Bundles of code objects, as Clang's offload bundler writes them: made by hand, and by the compiler at hand."""

from __future__ import annotations

import struct
import subprocess
import zlib
from pathlib import Path

import pytest
import zstandard
from support.compilers import hip_or_skip

from hkbench.profile import elf
from hkbench.profile.fatbin import Container, UnknownFormat
from hkbench.profile.offload_bundle import SECTION, containers, emptied

MAGIC = b"__CLANG_OFFLOAD_BUNDLE__"
ZLIB, ZSTD = 0, 1
COPIES = '#include <hip/hip_runtime.h>\nextern "C" __global__ void direct_copy_kernel_cuda(float* x) { x[0] = 1; }\n'
COMPUTES = COPIES.replace("direct_copy_kernel_cuda", "gemm_kernel") + (
    'extern "C" __global__ void other_kernel(float* x) { x[1] = 2; }\n'
)


@pytest.fixture(scope="module")
def code_object(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A shared library with the symbols of two kernels' descriptors, linked for the host."""
    folder = tmp_path_factory.mktemp("code_object")
    source, made = folder / "two.s", folder / "two.so"
    source.write_text("".join(f'.globl "{name}.kd"\n"{name}.kd": .quad 0\n' for name in ("first", "second")))
    subprocess.run(["gcc", "-shared", "-nostdlib", str(source), "-o", str(made)], check=True)
    return made.read_bytes()


def bundle(*images: bytes) -> bytes:
    """A bundle of the host's empty entry and these code objects."""
    entries = [
        ("host-x86_64-unknown-linux--", b""),
        *((f"hipv4-amdgcn-amd-amdhsa--gfx{n}", i) for n, i in enumerate(images)),
    ]
    at = len(MAGIC) + 8 + sum(24 + len(name) for name, _ in entries)
    head = MAGIC + struct.pack("<Q", len(entries))
    for name, image in entries:
        head += struct.pack("<QQQ", at, len(image), len(name)) + name.encode()
        at += len(image)
    return head + b"".join(image for _, image in entries)


def packed(content: bytes, version: int, method: int = ZSTD) -> bytes:
    inner = zstandard.ZstdCompressor().compress(content) if method == ZSTD else zlib.compress(content)
    sizes = {1: "<I", 2: "<II", 3: "<QQ"}[version]
    head = 8 + struct.calcsize(sizes) + 8
    said = (len(content),) if version == 1 else (head + len(inner), len(content))
    return struct.pack("<4sHH", b"CCOB", version, method) + struct.pack(sizes, *said) + bytes(8) + inner


def read(section: bytes) -> list[Container]:
    return list(containers(memoryview(section)))


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("method", [ZLIB, ZSTD])
def test_kernels_of_packed_bundles_one_after_the_other(code_object: bytes, version: int, method: int) -> None:
    one = packed(bundle(code_object), version, method)
    first, second = read(one + bytes(64) + one)
    assert first.kernels == second.kernels == {"first", "second"}
    assert (second.begin, second.end) == (len(one) + 64, 2 * len(one) + 64)


def test_kernels_of_a_bundle_and_filling_behind_it(code_object: bytes) -> None:
    one = bundle(code_object, code_object)
    (found,) = read(one + bytes(4096))
    assert (found.begin, found.end) == (0, len(one))
    assert found.kernels == {"first", "second"}


def test_an_emptied_bundle_has_nothing_in_it(code_object: bytes) -> None:
    (found,) = read(emptied(memoryview(bundle(code_object))))
    assert found.kernels == frozenset()


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
    with pytest.raises(UnknownFormat):
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
    library = tmp_path / "library.so"
    subprocess.run(["g++", "-shared", *objects, "-o", str(library)], check=True)
    content = library.read_bytes()
    section = elf.sections(content)[SECTION]
    found = read(content[section.offset : section.offset + section.size])
    assert [one.kernels for one in found] == [{"direct_copy_kernel_cuda"}, {"gemm_kernel", "other_kernel"}]
