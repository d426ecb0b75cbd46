"""The few Linux calls that the standard library lacks, and what /proc tells of a process tree."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import struct
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_CAPABILITY_VERSION_3 = 0x20080522
_PAGE = os.sysconf("SC_PAGE_SIZE")

#: PyDLL keeps the interpreter's lock: a child made by a bare clone(2) has nobody to take it back from.
_libc = ctypes.PyDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_readv = _libc.process_vm_readv
_readv.restype = ctypes.c_ssize_t
_readv.argtypes = (ctypes.c_int, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_void_p, ctypes.c_ulong, ctypes.c_ulong)


def syscall(name: str, number: int, *arguments: int | bytes | None) -> int:
    """Return a system call by its number.

    Raises:
        OSError: the kernel refused; the error names the call.
    """
    ctypes.set_errno(0)
    result = int(_libc.syscall(ctypes.c_long(number), *(_argument(item) for item in arguments)))
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def _argument(value: int | bytes | None) -> Any:
    return ctypes.c_long(value) if isinstance(value, int) else ctypes.c_char_p(value)


def call(name: str, *arguments: int | bytes | None) -> int:
    """Return a function of the C library that returns -1 and sets errno.

    Raises:
        OSError: it failed; the error names the function.
    """
    ctypes.set_errno(0)
    result = int(_libc[name](*(_argument(item) for item in arguments)))
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def _prctl(option: int, *values: int) -> int:
    return call("prctl", option, *values, *[0] * (4 - len(values)))


def no_new_privileges() -> None:
    """Deny this process, and what it starts, all privileges of set-user-ID programs and file capabilities."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def set_dumpable(on: bool) -> None:
    """Set whether processes of the same user may trace this one, and read its memory and descriptors in /proc."""
    _prctl(_PR_SET_DUMPABLE, int(on))


def drop_capabilities() -> None:
    """Give up all capabilities, also those that a program run later could get.

    Raises:
        OSError: the kernel refused to take them.
    """
    for capability in range(64):
        try:
            _prctl(_PR_CAPBSET_DROP, capability)
        except OSError as error:
            if error.errno == errno.EINVAL:  # the kernel knows no more
                break
            if error.errno == errno.EPERM:  # without CAP_SETPCAP; no_new_privileges() covers this case
                break
            raise
    with contextlib.suppress(OSError):  # kernels before 4.3 have no ambient set
        _prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    call("capset", struct.pack("=Ii", _CAPABILITY_VERSION_3, 0), bytes(24))


class _Stretch(ctypes.Structure):
    """The struct iovec of process_vm_readv(2)."""

    _fields_ = (("address", ctypes.c_void_p), ("size", ctypes.c_size_t))


def read_memory(pid: int, address: int, size: int) -> bytearray:
    """Copy memory of another process by process_vm_readv(2), which asks for the rights of ptrace(2).

    Raises:
        OSError: the process may not be read, has ended, or has no memory there.
    """
    data = bytearray(size)
    here = (ctypes.c_char * size).from_buffer(data)
    done = 0
    while done < size:
        to = _Stretch(ctypes.addressof(here) + done, size - done)
        source = _Stretch(address + done, size - done)
        ctypes.set_errno(0)
        got = int(_readv(pid, ctypes.byref(to), 1, ctypes.byref(source), 1, 0))
        if got <= 0:
            code = ctypes.get_errno() or errno.EFAULT
            raise OSError(code, f"process_vm_readv: {os.strerror(code)}")
        done += got
    return data


def number_inside(pid: int) -> int:
    """Return a process's number in its own process namespace, which is the one that it knows.

    Raises:
        OSError: it has ended.
    """
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    return pid  # a kernel without namespaces


def die_with_parent() -> None:
    """Ask the kernel to kill this process when its parent ends."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def adopt_orphans() -> None:
    """Make this process the parent of descendants whose own parent ended, so that none can slip away."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def resident_bytes(pids: list[int]) -> int:
    """Return the memory resident in these processes, shared pages counted in each."""
    total = 0
    for pid in pids:
        try:
            total += int(Path("/proc", str(pid), "statm").read_text().split()[1]) * _PAGE
        except (OSError, IndexError):
            continue
    return total
