"""The engine's end of an evaluator's socket, for asyncio: the bytes of `protocol.wire`, the frames of `evaluation`."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket

from hkbench.errors import WorkerLost
from hkbench.evaluation import frames
from hkbench.protocol.wire import HEADER, MAGIC, MAX_TRUSTED_BODY, WireError, parse


class Channel:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, sock: socket.socket) -> Channel:
        return cls(*await asyncio.open_connection(sock=sock))

    async def send(self, frame: frames.Frame) -> None:
        body = json.dumps(frames.written(frame)).encode()
        self._writer.write(HEADER.pack(MAGIC, len(body)) + body)
        try:
            await self._writer.drain()
        except (BrokenPipeError, ConnectionResetError) as error:
            raise WorkerLost("an evaluator process ended early; its message stands above") from error

    async def receive(self) -> frames.Frame:
        """Raise WorkerLost when the evaluator process ended without a result, or sent what is no frame."""
        try:
            magic, length = HEADER.unpack(await self._reader.readexactly(HEADER.size))
            if magic != MAGIC or length > MAX_TRUSTED_BODY:
                raise WorkerLost("an evaluator process sent bytes that are not a frame; start the command again")
            return frames.read(parse(await self._reader.readexactly(length)))
        except WireError as error:
            raise WorkerLost(f"an evaluator process: {error}; start the command again") from error
        except (asyncio.IncompleteReadError, ConnectionResetError) as error:
            raise WorkerLost(
                "an evaluator process ended without a result (killed for memory?); the sample is judged again on resume"
            ) from error

    async def close(self) -> None:
        self._writer.close()
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the other end went first
            await self._writer.wait_closed()

    async def __aenter__(self) -> Channel:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
