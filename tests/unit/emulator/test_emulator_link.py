"""What a runner says to the device is read strictly: anything else is refused, and nothing crashes."""

from __future__ import annotations

import random
import socket
from dataclasses import replace

import pytest

from hkbench.emulator import link
from hkbench.emulator.link import (
    AddRange,
    LaunchKernel,
    LoadCode,
    Malformed,
    Operation,
    ReadVariable,
    RefusedName,
    RemoveRange,
    WriteVariable,
)

LAUNCH = LaunchKernel(3, "_Z4gemm7globals", (2, 2, 1), (256, 1, 1), 32768, bytes(range(64)))
REQUESTS: list[link.Request] = [
    LoadCode(b"\x7fELF" * 9),
    LAUNCH,
    AddRange(1 << 45, 4096),
    RemoveRange(1 << 45),
    RefusedName("hipGraphLaunch"),
    WriteVariable(2, "weights", 16, bytes(range(12))),
    ReadVariable(2, "weights", 0, 64),
]


def _received(data: bytes) -> link.Request:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(data)
        theirs.shutdown(socket.SHUT_WR)
        return link.receive(ours)


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: type(one).__name__)
def test_what_is_written_is_read(request_: link.Request) -> None:
    assert _received(link.written(request_)) == request_


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda one: type(one).__name__)
def test_every_cut_ends_the_link(request_: link.Request) -> None:
    whole = link.written(request_)
    for length in range(len(whole)):
        with pytest.raises(link.Left):
            _received(whole[:length])


@pytest.mark.parametrize(
    ("launch", "why"),
    [
        (replace(LAUNCH, grid=(0, 1, 1)), "workgroups"),
        (replace(LAUNCH, grid=(1, 1, 1 << 31)), "workgroups"),
        (replace(LAUNCH, block=(1025, 1, 1)), "threads"),
        (replace(LAUNCH, block=(64, 64, 64)), "threads"),
        (replace(LAUNCH, block=(1, 0, 1)), "threads"),
        (replace(LAUNCH, kernel=""), "printed"),
        (replace(LAUNCH, kernel="a\nb"), "printed"),
    ],
)
def test_a_launch_that_no_runtime_sends_is_malformed(launch: LaunchKernel, why: str) -> None:
    with pytest.raises(Malformed, match=why):
        _received(link.written(launch))


def test_lengths_beyond_the_limits_are_refused_before_they_are_read() -> None:
    for one, limit in link._LIMITS.items():
        with pytest.raises(Malformed):
            _received(link.HEAD.pack(link.MAGIC, one, limit + 1))
    for magic, operation in ((b"HKD2", 1), (link.MAGIC, 0), (link.MAGIC, 8), (link.MAGIC, 1 << 31)):
        with pytest.raises(Malformed, match="no frame"):
            _received(link.HEAD.pack(magic, operation, 0))


def test_parts_with_other_lengths_than_said_are_malformed() -> None:
    body = link.written(LAUNCH)[link.HEAD.size :]
    for extra in (b"x", b"", bytes(5000)):
        cut = body + extra if extra else body[:-1]
        with pytest.raises(Malformed):
            link.parse(Operation.LAUNCH, cut)


def test_random_bodies_are_requests_or_malformed() -> None:
    draw = random.Random(7)
    bodies = [link.written(one)[link.HEAD.size :] for one in REQUESTS]
    for _ in range(20_000):
        body = bytearray(draw.choice(bodies) if draw.random() < 0.8 else draw.randbytes(draw.randrange(200)))
        for _ in range(draw.randrange(4)):
            if body:
                body[draw.randrange(len(body))] = draw.randrange(256)
        try:
            found = link.parse(draw.choice(list(Operation)), bytes(body))
        except Malformed:
            continue
        if isinstance(found, LaunchKernel):
            assert found.kernel.isascii() and len(found.kernarg) <= link.MAX_KERNARG
            assert 0 < found.block[0] * found.block[1] * found.block[2] <= link.MAX_WORKGROUP
