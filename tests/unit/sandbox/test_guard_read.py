"""Memory of a frozen runner, as the guard reads it."""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import time
from pathlib import Path

import pytest
from support.guard_alone import NO_WALLS, guarded, own_world

from hkbench.evaluation.link import Unreadable

SIZE = 3 << 20
NOTHING = 8  #: no process has memory at this address


def show(sock: socket.socket) -> None:
    held = ctypes.create_string_buffer(os.urandom(16) * (SIZE // 16), SIZE)
    sock.sendall(struct.pack("=QQ", os.getpid(), ctypes.addressof(held)) + held.raw[:16])
    time.sleep(600)


@pytest.mark.parametrize("walls", [False, True], ids=["plain", "namespaces"])
def test_memory_is_read_where_it_lies(tmp_path: Path, walls: bool) -> None:
    with guarded(show, tmp_path, own_world(tmp_path) if walls else NO_WALLS) as alone:
        said = alone.hear()
        process, address = struct.unpack("=QQ", said[:16])
        alone.link.freeze()
        assert alone.link.read(process, address, SIZE) == said[16:] * (SIZE // 16)
        assert alone.link.read(process, address + 16, 0) == b""
        assert alone.link.freeze().running == 0, "what the guard says next is understood"
        for wrong in ((process, NOTHING, 16), (process, address, 1 << 40), (process + 1000, address, 16)):
            with pytest.raises(Unreadable):
                alone.link.read(*wrong)
        assert alone.link.read(process, address, 16) == said[16:]
