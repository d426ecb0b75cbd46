"""The messages between evaluator and runner: framed JSON over a private socket, tensors beside it in shared memory.

A frame is the magic, the length of the body (32 bits, big-endian) and the body, one JSON object in UTF-8. What
the runner says is data that the evaluator checks field by field; nothing is ever unpickled. Tensor bytes do not travel
in frames: the evaluator owns two regions, `inbox` (parameters and inputs) and `outbox` (outputs), whose layout only the
evaluator decides.

Whatever a peer sends ends as a message or as a `WireError`. A message is nested at most `MAX_DEPTH` deep, and its
strings hold only what UTF-8 can encode, so that it can be written, printed and recorded without a further look.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import time
from collections.abc import Iterator, Mapping, Sequence

MAGIC = b"HKW1"
HEADER = struct.Struct(">4sI")
MAX_BODY = 4 * 1024 * 1024
#: Of a frame between processes of ours, which holds all that a runner said: letters as escapes, code in base64.
MAX_TRUSTED_BODY = 32 * MAX_BODY
MAX_DEPTH = 64  #: of lists and objects within one another; Python's own functions give up at some hundreds
_written = json.JSONEncoder(separators=(",", ":")).encode  # made once: an answer is on the evaluator's clock
_WITH_DESCRIPTORS = b"F"  #: open files travel beside at least one byte

Message = dict[str, object]


class WireError(Exception):
    """The peer sent something that is not a frame, or left."""


class PeerClosed(WireError):
    """The peer closed its end."""


def send(sock: socket.socket, message: Mapping[str, object], max_body: int = MAX_BODY) -> None:
    """Send one frame.

    Raises:
        PeerClosed: the peer is gone.
        WireError: the message takes more than `max_body` bytes.
    """
    body = _written(message).encode()
    if len(body) > max_body:
        raise WireError(f"message of {len(body)} bytes is over the limit of {max_body}")
    try:
        _unhurried(sock)
        sock.sendall(HEADER.pack(MAGIC, len(body)) + body)
    except (BrokenPipeError, ConnectionResetError) as error:
        raise PeerClosed("the peer closed the channel") from error


def send_descriptors(sock: socket.socket, descriptors: Sequence[int]) -> None:
    """Hand over open files behind the frame that speaks of them.

    Raises:
        PeerClosed: the peer is gone.
    """
    try:
        socket.send_fds(sock, [_WITH_DESCRIPTORS], list(descriptors))
    except (BrokenPipeError, ConnectionResetError) as error:
        raise PeerClosed("the peer closed the channel") from error


def receive_descriptors(sock: socket.socket, count: int, seconds: float | None = None) -> list[int]:
    """Return the open files that follow the frame just received.

    Raises:
        WireError: other than `count` files came.
        TimeoutError: nothing came within `seconds`.
    """
    sock.settimeout(seconds)
    data, descriptors, _flags, _address = socket.recv_fds(sock, len(_WITH_DESCRIPTORS), count)
    if data != _WITH_DESCRIPTORS or len(descriptors) != count:
        for descriptor in descriptors:
            os.close(descriptor)
        raise WireError(f"{count} open files were announced, {len(descriptors)} came")
    return descriptors


def receive(sock: socket.socket, deadline: float | None = None) -> Message:
    """Read one frame; `deadline` is on `time.monotonic`'s clock.

    Raises:
        TimeoutError: the deadline passed.
        PeerClosed: the peer is gone.
        WireError: what came is not a frame.
    """
    magic, length = HEADER.unpack(_read(sock, HEADER.size, deadline))
    if magic != MAGIC or length > MAX_BODY:
        raise WireError("the peer sent bytes that are not a frame")
    return parse(_read(sock, length, deadline))


def parse(body: bytes) -> Message:
    """Read the JSON object of one frame or line, with every string made encodable.

    Raises:
        WireError: it is no JSON object, or nested more than `MAX_DEPTH` deep.
    """
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise WireError("the peer sent a frame that is not JSON") from error
    if not isinstance(message, dict):
        raise WireError("the peer sent a frame that is not a JSON object")
    return {encodable(key): _plain(value, MAX_DEPTH) for key, value in message.items()}


def encodable(text: str) -> str:
    """Return `text` with a question mark for each lone surrogate, which JSON can spell and UTF-8 cannot hold."""
    return text if text.isascii() else text.encode(errors="replace").decode()


def _plain(value: object, depth: int) -> object:
    if isinstance(value, str):
        return encodable(value)
    if not isinstance(value, (list, dict)):
        return value
    if not depth:
        raise WireError(f"the peer sent a frame that is nested more than {MAX_DEPTH} deep")
    if isinstance(value, list):
        return [_plain(item, depth - 1) for item in value]
    return {encodable(key): _plain(item, depth - 1) for key, item in value.items()}


def _unhurried(sock: socket.socket) -> None:
    """Have a socket wait without limit. To ask is no system call, to say it is; a runner's answers are timed."""
    if sock.gettimeout() is not None:
        sock.settimeout(None)


def _read(sock: socket.socket, count: int, deadline: float | None) -> bytes:
    parts: list[bytes] = []
    while count:
        if deadline is None:
            _unhurried(sock)
        else:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            sock.settimeout(left)
        try:
            part = sock.recv(min(count, 1 << 20))
        except ConnectionResetError as error:
            raise PeerClosed("the peer closed the channel") from error
        if not part:
            raise PeerClosed("the peer closed the channel")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def leaves(value: object, path: str) -> Iterator[tuple[str, object]]:
    """Yield the leaves of nested tuples, lists and dicts with their paths: `output[1]["key"]`, in a fixed order.

    The path names the structure, so equal lists of paths mean equal structure (a list and a tuple count as the same).
    """
    if isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield from leaves(item, f"{path}[{index}]")
    elif isinstance(value, dict):
        for key in value:
            yield from leaves(value[key], f"{path}[{key!r}]")
    else:
        yield path, value
