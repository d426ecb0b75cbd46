"""The engine's end of a judge's socket: a frame, or a typed error."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest
from support.junk import Junk

from hkbench.engine.channel import Channel
from hkbench.errors import WorkerLost
from hkbench.runner.wire import HEADER, MAGIC, MAX_TRUSTED_BODY, send


async def received(data: bytes) -> dict[str, object]:
    """What comes of bytes after which the judge ends."""
    ours, theirs = socket.socketpair()
    async with await Channel.open(ours) as channel:
        with theirs:
            theirs.sendall(data)
        return await asyncio.wait_for(channel.receive(), 10.0)


async def test_a_frame() -> None:
    body = json.dumps({"result": {"text": "größer"}}).encode()
    assert await received(HEADER.pack(MAGIC, len(body)) + body) == {"result": {"text": "größer"}}


async def test_more_than_a_runner_may_say() -> None:
    message = {"result": "x" * (5 << 20)}
    ours, theirs = socket.socketpair()
    async with await Channel.open(ours) as channel:
        sending = asyncio.to_thread(send, theirs, message, MAX_TRUSTED_BODY)
        _, found = await asyncio.gather(sending, channel.receive())
        theirs.close()
    assert found == message


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HTTP/1.1 200 OK",
        MAGIC,
        HEADER.pack(MAGIC, MAX_TRUSTED_BODY + 1),
        HEADER.pack(b"HKW2", 2) + b"{}",
        HEADER.pack(MAGIC, 2) + b"[]",
        HEADER.pack(MAGIC, 9) + b"[" * 9,
        HEADER.pack(MAGIC, 9) + b"{}",
    ],
)
async def test_what_is_no_frame(data: bytes) -> None:
    with pytest.raises(WorkerLost):
        await received(data)


async def test_junk() -> None:
    body = json.dumps({"result": {"verdict": [1, 2.5, "x"]}}).encode()
    for seed in range(200):
        spoiled = Junk(seed).text(HEADER.pack(MAGIC, len(body)) + body)
        try:
            assert isinstance(await received(spoiled), dict)
        except WorkerLost:
            continue
