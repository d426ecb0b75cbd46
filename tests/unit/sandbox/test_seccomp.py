"""The seccomp filter: its program interpreted here for both machines, and the kernel's own word on this one."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import stat
import struct
import subprocess
from collections.abc import Callable
from functools import partial

import pytest

from hkbench.sandbox import linux, seccomp

ALLOW, KILL = 0x7FFF0000, 0x80000000
ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
COLUMN = {"x86_64": 0, "aarch64": 1}
MACHINES = pytest.mark.parametrize("machine", list(ARCHITECTURE))


def decide(
    machine: str,
    number: int,
    *arguments: int,
    architecture: int | None = None,
    sockets: bool = True,
    pipes: bool = False,
    timers: bool = False,
) -> int:
    """What the program returns for a call: a small interpreter of the instructions that it uses."""
    padded = [value & (1 << 64) - 1 for value in [*arguments, *[0] * (6 - len(arguments))]]
    data = struct.pack("<IIQ6Q", number, architecture or ARCHITECTURE[machine], 0, *padded)
    code = list(struct.iter_unpack("=HBBI", seccomp.program(machine, sockets, pipes, timers)))
    at = accumulator = 0
    while True:
        operation, if_true, if_false, value = code[at]
        at += 1
        match operation:
            case 0x20:
                (accumulator,) = struct.unpack_from("<I", data, value)
            case 0x54:
                accumulator &= value
            case 0x06:
                return int(value)
            case 0x15:
                at += if_true if accumulator == value else if_false
            case 0x35:
                at += if_true if accumulator >= value else if_false
            case 0x45:
                at += if_true if accumulator & value else if_false
            case _:
                raise AssertionError(f"an instruction that this test does not know: {operation:#x}")


def refusal(code: int) -> int:
    return 0x00050000 | code


@MACHINES
def test_calls_that_are_denied(machine: str) -> None:
    column = COLUMN[machine]
    for name, numbers in seccomp.DENIED.items():
        if (number := numbers[column]) is not None:
            assert decide(machine, number) == refusal(errno.EPERM), name
    assert decide(machine, 435) == refusal(errno.ENOSYS)  # clone3


@MACHINES
def test_calls_that_everybody_needs(machine: str) -> None:
    needed = {
        "x86_64": (0, 1, 2, 9, 10, 16, 57, 59, 202, 257, 319, 231),
        "aarch64": (29, 56, 63, 64, 98, 221, 222, 279),
    }
    for number in needed[machine]:
        assert decide(machine, number) == ALLOW
    # Neither table names a call twice, or one under the other machine's number.
    numbers = [pair[COLUMN[machine]] for pair in seccomp.DENIED.values() if pair[COLUMN[machine]] is not None]
    assert len(numbers) == len(set(numbers))


@MACHINES
def test_arguments_decide(machine: str) -> None:
    column = COLUMN[machine]
    clone, personality, prlimit = (56, 220)[column], (135, 92)[column], (302, 261)[column]
    make_socket, pair, connect = (41, 198)[column], (53, 199)[column], (42, 203)[column]
    denied = refusal(errno.EPERM)
    assert decide(machine, clone, 0x3D0F00) == ALLOW  # a thread
    assert decide(machine, clone, 17) == ALLOW  # a process
    for flag in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert decide(machine, clone, flag | 17) == denied
        assert decide(machine, clone, flag | 17 | 1 << 40) == denied
    assert (decide(machine, personality, 0xFFFFFFFF), decide(machine, personality, 0x40000)) == (ALLOW, denied)
    assert (decide(machine, prlimit, 0), decide(machine, prlimit, 1)) == (ALLOW, denied)
    # PR_SET_DUMPABLE would hide a process from the guard; PR_GET_DUMPABLE and PR_SET_NAME are ordinary.
    assert [decide(machine, (157, 167)[column], option) for option in (4, 3, 15)] == [denied, ALLOW, ALLOW]
    # F_SETSIG chooses the signal of a file that is ready: SIGCONT would continue who is stopped. F_SETOWN is ordinary.
    assert [decide(machine, (72, 25)[column], 3, command) for command in (10, 8, 2)] == [denied, ALLOW, ALLOW]
    timer = seccomp.DENIED["timer_create"][column]
    assert timer is not None
    assert (decide(machine, timer), decide(machine, timer, timers=True)) == (denied, ALLOW)
    for family in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, socket.AF_PACKET, 38, 40):
        assert decide(machine, make_socket, family, 1) == denied
    assert decide(machine, make_socket, socket.AF_UNIX, 1) == ALLOW
    assert decide(machine, make_socket, socket.AF_UNIX, 1, sockets=False) == denied
    assert decide(machine, connect, 3, sockets=False) == denied
    assert decide(machine, pair, 1, socket.SOCK_STREAM | socket.SOCK_CLOEXEC, sockets=False) == ALLOW
    assert decide(machine, pair, 1, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC, sockets=False) == denied


@MACHINES
def test_named_pipes_and_nothing_else_may_be_made_where_they_are_allowed(machine: str) -> None:
    column = COLUMN[machine]
    at = (259, 33)[column]
    denied = refusal(errno.EPERM)
    assert decide(machine, at, 0, 0, stat.S_IFIFO | 0o600) == denied
    assert decide(machine, at, 0, 0, stat.S_IFIFO | 0o600, pipes=True) == ALLOW
    for kind in (stat.S_IFCHR, stat.S_IFBLK, stat.S_IFSOCK, stat.S_IFREG, 0):
        assert decide(machine, at, 0, 0, kind | 0o600, pipes=True) == denied
    if machine == "x86_64":
        assert decide(machine, 133, 0, stat.S_IFIFO | 0o600, pipes=True) == ALLOW
        assert decide(machine, 133, 0, stat.S_IFCHR | 0o600, pipes=True) == denied
    for name, numbers in seccomp.DENIED.items():
        if (number := numbers[column]) is not None:
            assert decide(machine, number, pipes=True) == denied, name


@MACHINES
def test_calls_of_another_machine_kill(machine: str) -> None:
    assert decide(machine, 1, architecture=0x40000003) == KILL  # 32-bit x86
    if machine == "x86_64":
        assert decide(machine, 0x40000000 | 1) == KILL  # x32


def filtered(work: Callable[[], object]) -> int | str:
    """In a forked child under the filter: the error's number that `work` raised, 0, or the signal that ended it."""
    pid = os.fork()
    if pid == 0:
        status = 255
        try:
            linux.no_new_privileges()
            seccomp.install(sockets=True)
            status = 0
            work()
        except OSError as error:
            status = status or error.errno or 254
        finally:
            os._exit(status)
    status = os.waitpid(pid, 0)[1]
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else f"signal {os.WTERMSIG(status)}"


here = pytest.mark.skipif(not seccomp.supported(), reason="no filter is known for this machine")


@here
def test_the_kernel_obeys() -> None:
    column = COLUMN[os.uname().machine]
    for name in ("ptrace", "unshare", "keyctl", "io_uring_setup", "process_vm_readv", "perf_event_open", "userfaultfd"):
        number = seccomp.DENIED[name][column]
        assert number is not None
        assert filtered(partial(linux.syscall, name, number, 0, 0, 0)) == errno.EPERM, name
    assert filtered(lambda: socket.socket(socket.AF_INET)) == errno.EPERM
    assert filtered(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)) == errno.EPERM
    assert filtered(lambda: socket.socket(socket.AF_UNIX)) == 0
    assert filtered(lambda: socket.socketpair()) == 0
    assert filtered(lambda: os.waitpid(os.fork() or os._exit(0), 0)) == 0
    assert filtered(lambda: subprocess.run(["true"], check=True)) == 0


@here
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="32-bit calls are a matter of x86")
def test_calls_of_32_bit_programs_kill() -> None:
    def old_getpid() -> None:
        import mmap

        # mov eax, 20 (getpid of i386); int 0x80; ret
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        page.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
        ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()

    assert filtered(old_getpid) in ("signal 31", "signal 11")  # SIGSEGV: the kernel has no 32-bit entry at all
