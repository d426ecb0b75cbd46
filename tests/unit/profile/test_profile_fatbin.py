"""Containers of device code, as nvcc writes them, with object files of the compiler at hand in the place of cubins."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

import lz4.block
import pytest
import zstandard
from support.device_code import container, entry

from hkbench.profile.fatbin import Container, UnknownFormat, containers, emptied

LZ4, ZSTD = 0x2000, 0x8000
PTX = 1


@pytest.fixture(scope="module")
def cubin(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Machine code of two functions, each in a section of its own."""
    folder = tmp_path_factory.mktemp("cubin")
    source, made = folder / "two.cpp", folder / "two.o"
    source.write_text('extern "C" int first() { return 1; } extern "C" int second() { return 2; }')
    subprocess.run(["g++", "-c", "-ffunction-sections", str(source), "-o", str(made)], check=True)
    return made.read_bytes()


def read(section: bytes) -> list[Container]:
    return list(containers(memoryview(section)))


def test_kernels_of_all_entries_however_they_are_packed(cubin: bytes) -> None:
    packed = (
        entry(cubin),
        entry(lz4.block.compress(cubin, store_size=False), LZ4, len(cubin)),
        entry(zstandard.ZstdCompressor().compress(cubin), ZSTD, len(cubin)),
    )
    for one in packed:
        (found,) = read(container(one))
        assert found.kernels == {"first", "second"}


def test_containers_follow_one_another_with_padding_between_them(cubin: bytes) -> None:
    one, other = container(entry(cubin)), container()
    first, second = read(one + bytes(16) + other)
    assert (first.begin, first.end) == (0, len(one))
    assert (second.begin, second.end, second.kernels) == (len(one) + 16, len(one) + 16 + len(other), frozenset())


def test_text_for_a_later_compiler_is_no_kernel(cubin: bytes) -> None:
    (found,) = read(container(entry(b".version 8.0", kind=PTX), entry(cubin)))
    assert found.kernels == {"first", "second"}


def test_an_emptied_container_has_the_same_head_and_nothing_in_it(cubin: bytes) -> None:
    whole = container(entry(cubin))
    left = emptied(memoryview(whole))
    (found,) = read(left)
    assert left[:8] == whole[:8]
    assert found.kernels == frozenset()


@pytest.mark.parametrize(
    "section",
    [
        b"\x01" * 64,
        container(entry(b"no frame of zstd", ZSTD, 100)),
        container(entry(b"\xff" * 32, LZ4, 100)),
        container(struct.pack("<HHIQ", 2, 0x101, 64, 1 << 40) + bytes(48)),
        container()[:8] + struct.pack("<Q", 1 << 40),
    ],
    ids=["no container", "no zstd", "no lz4", "an entry beyond the end", "a container beyond the end"],
)
def test_what_is_written_otherwise_is_said_to_be_unknown(section: bytes) -> None:
    with pytest.raises(UnknownFormat):
        read(section)


def test_a_file_without_device_code_has_no_section_of_it(tmp_path: Path) -> None:
    assert read(b"") == []
