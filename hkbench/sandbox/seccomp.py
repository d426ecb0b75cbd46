"""A seccomp filter: which system calls a runner may not make. Assembled here, in classic BPF, for x86-64 and AArch64.

A list of what is denied, not of what is allowed: GPU drivers, compilers and interpreters use most of the rest. What is
denied are doors to other processes, to the network, to new namespaces and mounts, and interfaces of the kernel with
a history of holes that no kernel author needs.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from dataclasses import dataclass, field

from hkbench.sandbox import linux

_TIMER = "timer_create"
#: Denied with EPERM: number on x86-64, number on AArch64 (`None`: the machine has no such call).
DENIED: dict[str, tuple[int | None, int | None]] = {
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "process_mrelease": (448, 448),
    "migrate_pages": (256, 238), "perf_event_open": (298, 241),
    # mounts, roots, namespaces
    "mount": (165, 40), "umount2": (166, 39), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467), "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97),
    "setns": (308, 268), "mknod": (133, None), "mknodat": (259, 33),
    # memory that belongs to no process
    "shmget": (29, 194), "msgget": (68, 186),
    # signals that the kernel sends by itself: SIGCONT continues a process that the guard has stopped
    _TIMER: (222, 107), "mq_open": (240, 180),
    # files past their paths
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264),
    # large interfaces of the kernel
    "bpf": (321, 280), "userfaultfd": (323, 282), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427), "keyctl": (250, 219), "add_key": (248, 217), "request_key": (249, 218),
    "fanotify_init": (300, 262), "lookup_dcookie": (212, 18), "nfsservctl": (180, 42), "uselib": (134, None),
    # the machine
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "create_module": (174, None), "reboot": (169, 142), "swapon": (167, 224),
    "swapoff": (168, 225), "settimeofday": (164, 170), "clock_settime": (227, 112), "clock_adjtime": (305, 266),
    "adjtimex": (159, 171), "iopl": (172, None), "ioperm": (173, None), "modify_ldt": (154, None), "acct": (163, 89),
    "quotactl": (179, 60), "quotactl_fd": (443, 443), "syslog": (103, 116), "vhangup": (153, 58),
    "sethostname": (170, 161), "setdomainname": (171, 162),
}  # fmt: skip

_CLONE, _CLONE3, _PERSONALITY, _PRCTL, _FCNTL = (56, 220), (435, 435), (135, 92), (157, 167), (72, 25)
_F_SETSIG = 10  #: another signal than SIGIO where a file is ready
_PR_SET_DUMPABLE = 4  #: the guard cannot sample a process that is not dumpable
_MODE = {"mknod": 1, "mknodat": 2}  #: which argument says what is made
_SOCKET, _SOCKETPAIR, _CONNECT, _PRLIMIT = (41, 198), (53, 199), (42, 203), (302, 261)
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}  #: column above, AUDIT_ARCH_*
_X32_BIT = 0x40000000
_NEW_NAMESPACES = 0x7E020080  #: CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET,TIME}; TIME shares bits with the signal
_NEW_TIME = 0x80
_FILE_TYPE, _NAMED_PIPE = 0o170000, 0o010000
_AF_UNIX, _SOCK_DGRAM, _SOCK_TYPE_MASK = 1, 2, 0xF
_QUERY = 0xFFFFFFFF

_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_EQUAL, _ANY_BIT, _AT_LEAST = 0x15, 0x45, 0x35
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  #: offsets in struct seccomp_data; arguments are 64-bit, little-endian

_PR_SET_SECCOMP, _MODE_FILTER = 22, 2


@dataclass
class _Program:
    code: list[tuple[int, int, int, int]] = field(default_factory=list)

    def add(self, operation: int, value: int, if_true: int = 0, if_false: int = 0) -> None:
        self.code.append((operation, if_true, if_false, value))

    def deny(self, number: int, code: int = errno.EPERM) -> None:
        """Let the call `number` fail with `code`. The accumulator holds the number before and after."""
        self.add(_EQUAL, number, 0, 1)
        self.add(_RETURN, _ERRNO | code)

    def deny_if(self, number: int, argument: int, operation: int, value: int, deny_on: bool, mask: int = 0) -> None:
        """Let the call fail with EPERM where the test of the argument's low half gives `deny_on`; else allow it."""
        self.add(_EQUAL, number, 0, 4 + bool(mask))
        self.add(_LOAD, _ARGUMENTS + 8 * argument)
        if mask:
            self.add(_AND, mask)
        self.add(operation, value, *((0, 1) if deny_on else (1, 0)))
        self.add(_RETURN, _ERRNO | errno.EPERM)
        self.add(_RETURN, _ALLOW)


def supported() -> bool:
    return os.uname().machine in _ARCHITECTURES


def program(machine: str, sockets: bool, pipes: bool = False, timers: bool = False) -> bytes:
    """Return the filter as an array of struct sock_filter.

    `sockets`: new Unix sockets are allowed and can be connected. `pipes`: named pipes may be made. `timers`: timers
    that send a signal may be made.
    """
    column, architecture = _ARCHITECTURES[machine]
    bpf = _Program()
    bpf.add(_LOAD, _ARCHITECTURE)
    bpf.add(_EQUAL, architecture, 1, 0)
    bpf.add(_RETURN, _KILL)
    bpf.add(_LOAD, _NUMBER)
    if machine == "x86_64":
        bpf.add(_AT_LEAST, _X32_BIT, 0, 1)
        bpf.add(_RETURN, _KILL)
    for name, numbers in DENIED.items():
        number = numbers[column]
        if number is None or (timers and name == _TIMER):
            continue
        if pipes and name in _MODE:
            bpf.deny_if(number, _MODE[name], _EQUAL, _NAMED_PIPE, deny_on=False, mask=_FILE_TYPE)
        else:
            bpf.deny(number)
    bpf.deny(
        _CLONE3[column], errno.ENOSYS
    )  # its flags lie in memory, where a filter cannot look; callers then use clone
    # CLONE_NEWTIME is no flag of clone(2): its bit belongs to the exit signal there.
    bpf.deny_if(_CLONE[column], 0, _ANY_BIT, _NEW_NAMESPACES & ~_NEW_TIME, deny_on=True)
    bpf.deny_if(_PERSONALITY[column], 0, _EQUAL, _QUERY, deny_on=False)
    bpf.deny_if(_PRCTL[column], 0, _EQUAL, _PR_SET_DUMPABLE, deny_on=True)
    bpf.deny_if(_FCNTL[column], 1, _EQUAL, _F_SETSIG, deny_on=True)
    bpf.deny_if(_PRLIMIT[column], 0, _EQUAL, 0, deny_on=False)  # 0: the caller itself
    if sockets:
        bpf.deny_if(_SOCKET[column], 0, _EQUAL, _AF_UNIX, deny_on=False)
    else:
        # With the whole file system in sight, a Unix socket of some service may be a way out.
        bpf.deny(_SOCKET[column])
        bpf.deny(_CONNECT[column])
        bpf.deny_if(_SOCKETPAIR[column], 1, _EQUAL, _SOCK_DGRAM, deny_on=True, mask=_SOCK_TYPE_MASK)
    bpf.add(_RETURN, _ALLOW)
    return b"".join(struct.pack("=HBBI", *line) for line in bpf.code)


def install(sockets: bool, pipes: bool = False, timers: bool = False) -> None:
    """Put the filter of `program` on this thread and what it starts. Needs `linux.no_new_privileges()`.

    Raises:
        OSError: the kernel has no seccomp filters, or this machine's calls are not known here.
    """
    machine = os.uname().machine
    if machine not in _ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no seccomp filter is known for {machine}")
    code = ctypes.create_string_buffer(program(machine, sockets, pipes, timers))
    header = ctypes.create_string_buffer(struct.pack("@HP", (len(code) - 1) // 8, ctypes.addressof(code)))
    linux.call("prctl", _PR_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(header), 0, 0)
