"""Landlock: a process gives up, for good, every file, port and foreign process that is not on its list.

By the system calls themselves (linux/landlock.h): the C library has no functions for them. Each ABI version of the
kernel knows some rights more; those that it does not know are left out.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

from hkbench.sandbox import linux

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_FLAG = 1
_PATH_BENEATH = 1

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
TRUNCATE, IOCTL_DEVICE = 1 << 14, 1 << 15
_FILE_RIGHTS = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEVICE
_READ = EXECUTE | READ_FILE | READ_DIR
_KNOWN_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}  #: number of file rights by ABI; from 5 on 16
_TCP = 0b11  #: bind, connect
_SCOPES = 0b11  #: abstract Unix sockets, signals

NETWORK_ABI = 4
SIGNAL_ABI = 6


def version() -> int:
    """Return the ABI version of the running kernel.

    Raises:
        OSError: the kernel has no Landlock, or it is switched off.
    """
    return linux.syscall("landlock_create_ruleset", _CREATE_RULESET, None, 0, _VERSION_FLAG)


def restrict(readable: Iterable[str], writable: Iterable[str]) -> None:
    """Confine this thread and what it starts. `readable` may be read and executed, `writable` everything but devices.

    Paths that do not exist are passed over: there is nothing to open. Needs `linux.no_new_privileges()`.

    Raises:
        OSError: the kernel refused.
    """
    abi = version()
    handled = (1 << _KNOWN_RIGHTS.get(abi, 16)) - 1
    ruleset = _ruleset(handled, abi)
    try:
        for path in readable:
            _allow(ruleset, path, _READ & handled)
        for path in writable:
            _allow(ruleset, path, handled & ~(_MAKE_CHAR | _MAKE_BLOCK))
        linux.syscall("landlock_restrict_self", _RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _ruleset(handled: int, abi: int) -> int:
    attributes = struct.pack("=Q", handled)
    if abi >= NETWORK_ABI:
        attributes += struct.pack("=Q", _TCP)
    if abi >= SIGNAL_ABI:
        attributes += struct.pack("=Q", _SCOPES)
    return linux.syscall("landlock_create_ruleset", _CREATE_RULESET, attributes, len(attributes), 0)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            rights &= _FILE_RIGHTS
        attribute = ctypes.create_string_buffer(struct.pack("=Qi", rights, fd), 12)
        linux.syscall("landlock_add_rule", _ADD_RULE, ruleset, _PATH_BENEATH, ctypes.addressof(attribute), 0)
    finally:
        os.close(fd)
