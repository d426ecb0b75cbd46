"""Landlock alone: which rights a process has left. Each case in a forked child, which keeps its restrictions."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hkbench.sandbox import landlock, linux


def _abi() -> int:
    try:
        return landlock.version()
    except OSError:
        return 0


ABI = _abi()
pytestmark = pytest.mark.skipif(ABI == 0, reason="this kernel has no Landlock")


def restricted(readable: list[str], writable: list[str], work: Callable[[], object]) -> str:
    """The name of the error that `work` raised under these rules, or nothing."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        said = "not restricted"
        try:
            linux.no_new_privileges()
            landlock.restrict(readable, writable)
            said = ""
            work()
        except OSError as error:
            said = said or type(error).__name__
        finally:
            os.write(write_end, said.encode())
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        answer = pipe.read()
    assert os.waitpid(pid, 0)[1] == 0
    return answer


def test_reading(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open/file").write_text("x")
    (tmp_path / "closed").write_text("x")
    readable = [str(tmp_path / "open"), str(tmp_path / "missing")]
    assert restricted(readable, [], (tmp_path / "open/file").read_text) == ""
    assert restricted(readable, [], (tmp_path / "closed").read_text) == "PermissionError"
    assert restricted(readable, [], lambda: list(tmp_path.iterdir())) == "PermissionError"
    assert restricted([str(tmp_path / "closed")], [], (tmp_path / "closed").read_text) == ""


def test_writing(tmp_path: Path) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    own.mkdir()
    other.mkdir()
    (other / "file").write_text("kept")
    rules = [str(tmp_path)], [str(own)]

    def write_through_a_link() -> None:
        (own / "link").symlink_to(other / "file")
        (own / "link").write_text("x")

    for attempt in (
        lambda: (other / "new").write_text("x"),
        lambda: (other / "file").unlink(),
        lambda: (other / "file").rename(own / "file"),
        lambda: (other / "folder").mkdir(),
        write_through_a_link,
    ):
        assert restricted(*rules, attempt) == "PermissionError"
    if ABI >= 3:
        assert restricted(*rules, lambda: os.truncate(other / "file", 0)) == "PermissionError"
    assert (other / "file").read_text() == "kept"
    assert restricted(*rules, lambda: (own / "new").write_text("x")) == ""
    assert (own / "new").read_text() == "x"


def test_a_device_can_be_asked_when_it_is_listed() -> None:
    def size_of_random_pool() -> None:
        import fcntl

        with Path("/dev/urandom").open("rb") as device:
            fcntl.ioctl(device, 0x80045200, bytes(4))  # RNDGETENTCNT

    assert restricted([], ["/dev/urandom"], size_of_random_pool) == ""
    if ABI >= 5:
        assert restricted(["/dev/urandom"], [], size_of_random_pool) == "PermissionError"


@pytest.mark.skipif(ABI < landlock.NETWORK_ABI, reason="this kernel's Landlock knows no ports")
def test_tcp() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        assert restricted(["/"], [], lambda: socket.create_connection(address, 5).close()) == "PermissionError"
        assert restricted(["/"], [], lambda: socket.create_server(("127.0.0.1", 0)).close()) == "PermissionError"


@pytest.mark.skipif(ABI < landlock.SIGNAL_ABI, reason="this kernel's Landlock knows no signals")
def test_signals_and_abstract_sockets() -> None:
    parent = os.getpid()
    assert restricted(["/"], [], lambda: os.kill(parent, 0)) == "PermissionError"
    assert restricted(["/"], [], lambda: os.kill(os.getpid(), 0)) == ""
    with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
        name = b"\0hkbench-test-" + str(parent).encode()
        server.bind(name)
        server.listen()
        assert restricted(["/"], [], lambda: client.connect(name)) == "PermissionError"


def test_another_process_is_out_of_reach() -> None:
    # Capabilities would let the one see more, and keep the other from being seen: neither has any here.
    def look(path: str) -> None:
        linux.drop_capabilities()
        Path(path).read_bytes()

    ready, done = os.pipe()
    victim = os.fork()
    if victim == 0:
        linux.drop_capabilities()
        os.write(done, b"x")
        time.sleep(60)
        os._exit(0)
    try:
        os.read(ready, 1)
        assert restricted(["/proc"], [], lambda: look(f"/proc/{victim}/environ")) == "PermissionError"
        assert restricted(["/proc"], [], lambda: look("/proc/self/environ")) == ""
    finally:
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)
