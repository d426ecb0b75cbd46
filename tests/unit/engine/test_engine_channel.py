"""The engine's end of an evaluator's socket: a frame, or a typed error."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest
from support.junk import Junk

from hkbench.engine.channel import Channel
from hkbench.errors import WorkerLost
from hkbench.evaluation import frames
from hkbench.protocol.wire import HEADER, MAGIC, MAX_TRUSTED_BODY


async def received(data: bytes) -> frames.Frame:
    """What comes of bytes after which the evaluator ends."""
    ours, theirs = socket.socketpair()
    async with await Channel.open(ours) as channel:
        with theirs:
            theirs.sendall(data)
        return await asyncio.wait_for(channel.receive(), 10.0)


async def test_a_frame() -> None:
    step = frames.Stepped(step="größer")
    body = json.dumps(frames.written(step)).encode()
    assert await received(HEADER.pack(MAGIC, len(body)) + body) == step


async def test_more_than_a_runner_may_say() -> None:
    message = frames.Stepped(step="x" * (5 << 20))
    ours, theirs = socket.socketpair()
    async with await Channel.open(ours) as channel:
        sending = asyncio.to_thread(frames.send, theirs, message)
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
        HEADER.pack(MAGIC, 2) + b"{}",
        HEADER.pack(MAGIC, 18) + b'{"frame":"rumour"}',
        HEADER.pack(MAGIC, 19) + b'{"frame":"stepped"}',
    ],
)
async def test_what_is_no_frame(data: bytes) -> None:
    with pytest.raises(WorkerLost):
        await received(data)


async def test_junk() -> None:
    body = json.dumps(frames.written(frames.Failed(error="WorkerLost", message="it ended"))).encode()
    for seed in range(200):
        spoiled = Junk(seed).text(HEADER.pack(MAGIC, len(body)) + body)
        try:
            assert isinstance(await received(spoiled), frames.Frame)
        except WorkerLost:
            continue
