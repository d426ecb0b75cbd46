"""Frames between judge and runner."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator

import pytest

from hkbench.protocol import wire
from hkbench.protocol.wire import HEADER, MAGIC, MAX_BODY


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    left, right = socket.socketpair()
    with left, right:
        yield left, right


def frame(body: bytes) -> bytes:
    return HEADER.pack(MAGIC, len(body)) + body


@pytest.mark.parametrize(
    "message",
    [{}, {"op": "call", "flush": True}, {"text": "größer → \U0001f600", "n": [1, 2.5, None, -1e300]}],
)
def test_round_trip(pair: tuple[socket.socket, socket.socket], message: wire.Message) -> None:
    wire.send(pair[0], message)
    assert wire.receive(pair[1], time.monotonic() + 5) == message


@pytest.mark.parametrize(
    "body",
    [
        b'{"\\ud800k": ["\\uDFFF", {"a": "x\\udc80\\u00e9"}]}',
        b'{"\xed\xa0\x80k": ["\xed\xbf\xbf", {"a": "x\xed\xb2\x80\xc3\xa9"}]}',
    ],
)
def test_no_string_holds_what_cannot_be_encoded(pair: tuple[socket.socket, socket.socket], body: bytes) -> None:
    pair[0].sendall(frame(body))
    assert wire.receive(pair[1], time.monotonic() + 5) == {"?k": ["?", {"a": "x?é"}]}


def test_as_deep_as_the_limit(pair: tuple[socket.socket, socket.socket]) -> None:
    depth = wire.MAX_DEPTH
    pair[0].sendall(frame(b'{"a":' + b"[" * depth + b"]" * depth + b"}"))
    assert wire.receive(pair[1], time.monotonic() + 5)
    pair[0].sendall(frame(b'{"a":' + b"[" * (depth + 1) + b"]" * (depth + 1) + b"}"))
    with pytest.raises(wire.WireError, match="deep"):
        wire.receive(pair[1], time.monotonic() + 5)


def test_open_files_follow_their_frame(pair: tuple[socket.socket, socket.socket]) -> None:
    read, write = os.pipe()
    wire.send(pair[0], {"op": "device"})
    wire.send_descriptors(pair[0], [read, write])
    wire.send(pair[0], {"op": "next"})
    assert wire.receive(pair[1]) == {"op": "device"}
    received = wire.receive_descriptors(pair[1], 2)
    assert wire.receive(pair[1]) == {"op": "next"}
    os.write(received[1], b"through")
    assert os.read(read, 10) == b"through"
    for fd in (read, write, *received):
        os.close(fd)


def test_announced_files_that_do_not_come_are_an_error(pair: tuple[socket.socket, socket.socket]) -> None:
    wire.send(pair[0], {})
    with pytest.raises(wire.WireError, match="2 open files were announced, 0 came"):
        wire.receive_descriptors(pair[1], 2)


def test_a_frame_in_small_pieces(pair: tuple[socket.socket, socket.socket]) -> None:
    data = frame(b'{"a": 1}') + frame(b'{"b": 2}')

    def drip() -> None:
        for byte in data:
            pair[0].sendall(bytes([byte]))

    thread = threading.Thread(target=drip)
    thread.start()
    assert wire.receive(pair[1], time.monotonic() + 5) == {"a": 1}
    assert wire.receive(pair[1]) == {"b": 2}
    thread.join()


def test_a_large_frame(pair: tuple[socket.socket, socket.socket]) -> None:
    message = {"text": "x" * (MAX_BODY - 20)}
    thread = threading.Thread(target=wire.send, args=(pair[0], message))
    thread.start()
    assert wire.receive(pair[1], time.monotonic() + 20) == message
    thread.join()


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\n",
        HEADER.pack(MAGIC, MAX_BODY + 1),
        HEADER.pack(b"HKW2", 2) + b"{}",
        frame(b"{"),
        frame(b""),
        frame(b"\xff\xfe{}"),
        frame(b"[1]"),
        frame(b"3"),
        frame(b"[" * 200_000 + b"]" * 200_000),
        frame(b'{"a":' * 100_000),
        frame(b'{"n": ' + b"9" * 5000 + b"}"),
    ],
    ids=[
        "junk",
        "too long",
        "magic",
        "cut JSON",
        "empty",
        "not UTF-8",
        "list",
        "number",
        "deep",
        "deep dict",
        "digits",
    ],
)
def test_what_is_not_a_message(pair: tuple[socket.socket, socket.socket], data: bytes) -> None:
    thread = threading.Thread(target=pair[0].sendall, args=(data,))
    thread.start()
    with pytest.raises(wire.WireError) as caught:
        wire.receive(pair[1], time.monotonic() + 5)
    assert not isinstance(caught.value, wire.PeerClosed)
    thread.join()


def test_a_message_over_the_limit_is_not_sent(pair: tuple[socket.socket, socket.socket]) -> None:
    with pytest.raises(wire.WireError, match="over the limit"):
        wire.send(pair[0], {"text": "x" * MAX_BODY})
    wire.send(pair[0], {"after": True})
    assert wire.receive(pair[1], time.monotonic() + 5) == {"after": True}


@pytest.mark.parametrize("data", [b"", MAGIC, frame(b'{"a": 1}')[:-1]])
def test_a_peer_that_leaves(data: bytes) -> None:
    left, right = socket.socketpair()
    left.sendall(data)
    left.close()
    with right, pytest.raises(wire.PeerClosed):
        wire.receive(right, time.monotonic() + 5)


def test_a_peer_that_left_before_it_read_everything() -> None:
    left, right = socket.socketpair()
    right.sendall(b"unread")
    left.close()
    with right, pytest.raises(wire.PeerClosed):
        wire.receive(right, time.monotonic() + 5)


def test_sending_to_nobody() -> None:
    left, right = socket.socketpair()
    left.close()
    with right, pytest.raises(wire.PeerClosed):
        wire.send(right, {"a": 1})


@pytest.mark.parametrize("data", [b"", frame(b'{"a": 1}')[:-2]])
def test_the_deadline(pair: tuple[socket.socket, socket.socket], data: bytes) -> None:
    pair[0].sendall(data)
    with pytest.raises(TimeoutError):
        wire.receive(pair[1], time.monotonic() + 0.05)


def test_a_deadline_that_has_passed(pair: tuple[socket.socket, socket.socket]) -> None:
    pair[0].sendall(frame(b"{}"))
    with pytest.raises(TimeoutError):
        wire.receive(pair[1], time.monotonic() - 1)


def test_leaves_name_the_structure() -> None:
    value: tuple[object, ...] = (1, [2, {"k": 3, 7: (4,)}], OrderedDict(z=5, a=6), None, [])
    assert dict(wire.leaves(value, "output")) == {
        "output[0]": 1,
        "output[1][0]": 2,
        "output[1][1]['k']": 3,
        "output[1][1][7][0]": 4,
        "output[2]['z']": 5,
        "output[2]['a']": 6,
        "output[3]": None,
    }
    assert list(wire.leaves(8, "output")) == [("output", 8)]


def test_a_value_that_holds_itself_is_an_error() -> None:
    value: list[object] = []
    value.append(value)
    with pytest.raises(RecursionError):
        list(wire.leaves(value, "output"))


def test_the_frame_is_what_the_docs_say(pair: tuple[socket.socket, socket.socket]) -> None:
    wire.send(pair[0], {"a": [1]})
    body = json.dumps({"a": [1]}, separators=(",", ":")).encode()
    assert pair[1].recv(100) == b"HKW1" + len(body).to_bytes(4, "big") + body
