"""What a runner may not use up: the guard ends it, says why, and leaves nobody alive."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.guard_alone import NO_WALLS, alive, guarded, own_world

from hkbench.sandbox.guard import OUTPUT_HALF
from hkbench.sandbox.limits import ENTRY_BYTES, FOLDER_BYTES, DiskMeter


def print_without_end(_: socket.socket) -> None:
    block = b"x" * (1 << 20)
    while True:
        os.write(1, block)


def fork_on(_channel: socket.socket) -> None:
    """Doubles up to 128 processes: beyond the limit, yet no danger to the machine if the guard fails."""
    for _ in range(7):
        os.fork()
    time.sleep(60)


def flee(_channel: socket.socket) -> None:
    """The runner ends; what it leaves lives as long as it takes to start the next, at most 2000 times."""
    if os.fork():
        os._exit(0)
    for _ in range(2000):
        if os.fork():
            os._exit(0)


def leave_zombies(_channel: socket.socket) -> None:
    for _ in range(200):
        if os.fork() == 0:
            os._exit(0)
    time.sleep(60)


def fill_the_disk(_: socket.socket) -> None:
    with Path("big").open("wb") as file:
        while True:
            file.write(bytes(1 << 20))
            file.flush()
            time.sleep(0.01)


def fill_the_disk_without_a_name(_: socket.socket) -> None:
    with Path("big").open("wb") as file:
        Path("big").unlink()
        while True:
            file.write(bytes(1 << 20))
            file.flush()
            time.sleep(0.01)


def fill_the_disk_with_empty_files(_: socket.socket) -> None:
    Path("deep").mkdir()
    number = 0
    while True:
        number += 1
        Path("deep", str(number)).touch()


def eat(_: socket.socket) -> None:
    kept = []
    while True:
        kept.append(bytearray(b"x" * (16 << 20)))


def hoard_in_a_queue(_: socket.socket) -> None:
    """Memory files that lie in a socket's queue and are open nowhere: each is filled through a copy that is closed."""
    left, right = socket.socketpair()
    block = bytes(16 << 20)
    for number in range(40):
        file = os.memfd_create(f"hoard_{number}")
        socket.send_fds(left, [b"F"], [file])
        os.write(file, block)
        os.close(file)
    time.sleep(60)
    right.close()


def hoard_in_closed_files(_: socket.socket) -> None:
    """Memory files that are mapped and closed, and whose pages nobody touches through the mapping."""
    libc, block = ctypes.CDLL(None), bytes(16 << 20)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    for number in range(40):
        file = os.memfd_create(f"hoard_{number}")
        os.write(file, block)
        libc.mmap(None, len(block), mmap.PROT_READ, mmap.MAP_SHARED, file, 0)
        os.close(file)
    time.sleep(60)


def share_a_little(channel: socket.socket) -> None:
    """As an allocator does that hands memory to another process: less than the limit."""
    left, right = socket.socketpair()
    for _ in range(6):
        file = os.memfd_create("shared")
        socket.send_fds(left, [b"F"], [file])
        os.write(file, bytes(16 << 20))
        os.close(file)
    time.sleep(0.5)
    channel.sendall(b"done")
    time.sleep(60)
    right.close()


def burn(_: socket.socket) -> None:
    while True:
        if os.fork() == 0:
            until = time.process_time() + 0.2
            while time.process_time() < until:
                pass
            os._exit(0)
        os.wait()


@pytest.mark.parametrize(
    ("target", "limits", "reason"),
    [
        (print_without_end, {"output_bytes": 50 << 20}, "output"),
        (fill_the_disk, {"disk_bytes": 20 << 20}, "disk"),
        (fill_the_disk_without_a_name, {"disk_bytes": 20 << 20}, "disk"),
        (fill_the_disk_with_empty_files, {"disk_bytes": 4 << 20}, "disk"),
        (eat, {"memory_bytes": 300 << 20}, "memory"),
        (hoard_in_a_queue, {"memory_bytes": 500 << 20}, "memory"),
        (hoard_in_closed_files, {"memory_bytes": 500 << 20}, "memory"),
        (burn, {"cpu_seconds": 0.5}, "cpu"),
        (leave_zombies, {"processes": 50}, "processes"),
    ],
)
def test_a_limit_that_is_passed(
    tmp_path: Path, target: Callable[[socket.socket], None], limits: dict[str, float], reason: str
) -> None:
    with guarded(target, tmp_path, NO_WALLS, **limits) as alone:
        end = alone.end_by_itself()
    assert (end.reason, end.survivors) == (reason, 0)
    assert len(end.output) < 2 * OUTPUT_HALF + 100
    assert sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file()) < 400 << 20


def test_memory_in_a_queue_counts_as_what_it_is(tmp_path: Path) -> None:
    with guarded(share_a_little, tmp_path, NO_WALLS, memory_bytes=1 << 30) as alone:
        assert alone.hear() == b"done"
        end = alone.link.end()
    assert end.reason == "asked"
    assert end.peak_bytes > 96 << 20


@pytest.mark.parametrize("target", [fork_on, flee], ids=["bomb", "flight"])
@pytest.mark.parametrize("walled", [False, True], ids=["plain", "namespaces"])
def test_who_forks_and_forks_is_gone(tmp_path: Path, target: Callable[[socket.socket], None], walled: bool) -> None:
    began = time.monotonic()
    with guarded(target, tmp_path, own_world(tmp_path) if walled else NO_WALLS, processes=50) as alone:
        end = alone.end_by_itself()
    assert (end.reason, end.survivors) == ("processes" if target is fork_on else "ended", 0)
    assert time.monotonic() - began < 45  # they would sleep for a minute


def ignore_everything(sock: socket.socket) -> None:
    """In a session of its own, as an orphan."""
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(number, signal.SIG_IGN)
        sock.sendall(str(os.getpid()).encode())
        while True:
            time.sleep(1)
    os.wait()
    time.sleep(600)


@pytest.mark.parametrize("frozen", [False, True], ids=["running", "frozen"])
def test_an_orphan_in_its_own_session_that_ignores_signals(tmp_path: Path, frozen: bool) -> None:
    with guarded(ignore_everything, tmp_path) as alone:
        pid = alone.pid()
        if frozen:
            alone.link.freeze()
        assert alive(pid)
        assert alone.link.end().survivors == 0
        assert not alive(pid)


def test_the_sum_of_a_folder(tmp_path: Path) -> None:
    def sums() -> int:
        meter = DiskMeter(str(tmp_path))
        while True:
            found = meter.look([])
            if meter._sizes is None:
                return found

    assert sums() == 0
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "file").write_bytes(bytes(1 << 20))
    os.link(tmp_path / "sub" / "file", tmp_path / "again")
    (tmp_path / "outside").symlink_to("/usr/bin")
    (tmp_path / "loop").symlink_to(tmp_path)
    assert 1 << 20 <= sums() < (1 << 20) + FOLDER_BYTES + 8 * ENTRY_BYTES


def test_a_large_folder_is_counted_in_slices(tmp_path: Path) -> None:
    for number in range(4000):
        (tmp_path / str(number)).touch()
    meter = DiskMeter(str(tmp_path))
    looks = 1
    while meter.look([]) < 4000 * ENTRY_BYTES:
        looks += 1
    assert looks > 1
