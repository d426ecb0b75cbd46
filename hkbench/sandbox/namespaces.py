"""Namespaces: a process tree with its own process numbers, network, IPC, host name and a root of chosen folders.

The new root is an empty tmpfs with read-only bind mounts of what may be read and plain ones of what may be written.
Everything else, sockets of services included, has no name in it. Needs Linux 5.12 (mount_setattr).
"""

from __future__ import annotations

import contextlib
import os
import signal
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from hkbench.sandbox import linux

_CLONE_NEWNS, _CLONE_NEWUTS, _CLONE_NEWIPC = 0x20000, 0x4000000, 0x8000000
_CLONE_NEWUSER, _CLONE_NEWPID, _CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000
_CLONE_NUMBER = {"x86_64": 56, "aarch64": 220}
_PIVOT_NUMBER = {"x86_64": 155, "aarch64": 41}
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_AT_FDCWD, _AT_RECURSIVE, _AT_EMPTY_PATH = -100, 0x8000, 0x1000
_OPEN_TREE_CLONE, _OPEN_TREE_CLOEXEC = 1, os.O_CLOEXEC
_MOVE_FROM_FD = 4
_RDONLY, _NOSUID, _NODEV, _NOEXEC = 1, 2, 4, 8  #: the same for mount(2) and mount_setattr(2)
_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 1 << 18
_MNT_DETACH = 2

SHARED_MEMORY_BYTES = 4 << 30  #: of the private /dev/shm


def fork(own_processes: bool) -> int:
    """Fork like os.fork, but with the child in new namespaces, and `own_processes` as their process 1.

    The child must do little before it forks once more: the C library does not know of this fork.

    Raises:
        OSError: the kernel refused new namespaces.
    """
    flags = _CLONE_NEWUSER | _CLONE_NEWNS | _CLONE_NEWNET | _CLONE_NEWIPC | _CLONE_NEWUTS
    flags |= _CLONE_NEWPID if own_processes else 0
    number = _CLONE_NUMBER[os.uname().machine]
    _end_library_threads()
    return linux.syscall("clone", number, flags | signal.SIGCHLD, 0, 0, 0, 0)


def _end_library_threads() -> None:
    """Let libraries (OpenBLAS) end their threads, as they do at each regular fork.

    The child of a bare clone has none of these threads, but would wait for their end when it forks itself.
    """
    if len(os.listdir("/proc/self/task")) > 1:
        pid = os.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)


def map_user(uid: int, gid: int) -> None:
    """Map the child's user and group to their own numbers; nobody else has one."""
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def overlay(places: Mapping[str, str]) -> None:
    """Move into a mount namespace in which other files, the values, are seen in the place of some, the keys.

    Raises:
        OSError: the kernel refused the namespace or a mount.
    """
    uid, gid = os.geteuid(), os.getegid()
    try:
        linux.call("unshare", _CLONE_NEWNS)
    except PermissionError:
        linux.call("unshare", _CLONE_NEWUSER | _CLONE_NEWNS)
        map_user(uid, gid)
    linux.call("mount", None, b"/", None, _MS_REC | _MS_PRIVATE, None)
    for place, file in places.items():
        linux.call("mount", os.fsencode(file), os.fsencode(place), None, _MS_BIND, None)
        _set_attributes(_AT_FDCWD, os.fsencode(place), 0, _RDONLY)


def enter_root(readable: Iterable[str], writable: Iterable[str], own_processes: bool) -> None:
    """Build the new root in the child and move into it. The first writable folder's `tmp` becomes /tmp as well.

    /proc is left writable for what the runner has to set there; `lock_proc` ends that.

    Raises:
        OSError: a mount was refused.
    """
    writable = list(writable)
    linux.call("mount", None, b"/", None, _MS_REC | _MS_PRIVATE, None)
    links: dict[str, str] = {}
    modes = {resolved(path, links): False for path in readable} | {resolved(path, links): True for path in writable}
    if own_processes:
        modes = {path: mode for path, mode in modes.items() if not _within(path, "/proc")}
    trees = list(_clone_trees(modes))
    temporary = f"{writable[0]}/tmp" if writable else ""  # noqa: S108 - the private one
    if temporary and Path(temporary).is_dir():
        trees += [(place, _clone_tree(temporary)) for place in ("/tmp", "/var/tmp")]  # noqa: S108
    base = next(path for path in ("/mnt", "/tmp", "/usr") if Path(path).is_dir())  # noqa: S108
    os.chdir("/")
    _mount("tmpfs", base, _NOSUID | _NODEV, "size=16m,mode=755")
    for path, tree in sorted(trees, key=lambda item: (item[0].count("/"), item[0])):
        _place(tree, base, path)
    if own_processes:
        Path(base, "proc").mkdir(exist_ok=True)
        _mount("proc", f"{base}/proc", _NOSUID | _NODEV | _NOEXEC, None)
    shared = Path(base, "dev/shm")
    shared.mkdir(parents=True, exist_ok=True)
    _mount("tmpfs", str(shared), _NOSUID | _NODEV, f"size={SHARED_MEMORY_BYTES},mode=1777")
    for name, target in {**links, "/dev/fd": "/proc/self/fd"}.items():
        if not os.path.lexists(base + name):
            Path(base + name).parent.mkdir(parents=True, exist_ok=True)
            Path(base + name).symlink_to(target)
    _pivot(base)
    _set_attributes(_AT_FDCWD, b"/", 0, _RDONLY)


def lock_proc() -> None:
    """Make the kernel's switches in /proc read-only: a user who owns the machine's files could set them there.

    What belongs to the processes of this namespace stays writable: CUDA does not start where it cannot write below
    /proc/self (error 304).
    """
    _set_attributes(_AT_FDCWD, b"/proc", 0, _NOSUID | _NODEV | _NOEXEC)
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() or entry.is_symlink():
            continue
        if entry.is_dir() or entry.stat().st_mode & 0o222:
            path = entry.path.encode()
            linux.call("mount", path, path, None, _MS_BIND | _MS_REC, None)
            _set_attributes(_AT_FDCWD, path, _AT_RECURSIVE, _RDONLY)


def resolved(path: str, links: dict[str, str]) -> str:
    """Return the real path; every symbolic link on the way, by its own real path, is added to `links`."""
    pending = [part for part in reversed(path.split("/")) if part not in ("", ".")]
    here = ""
    hops = 0
    while pending:
        part = pending.pop()
        if part == "..":
            here = here.rpartition("/")[0]
            continue
        step = f"{here}/{part}"
        try:
            target = str(Path(step).readlink())
        except OSError:
            here = step
            continue
        hops += 1
        if hops > 40:  # as many as the kernel follows
            return path
        links[step] = target
        if target.startswith("/"):
            here = ""
        pending += [name for name in reversed(target.split("/")) if name not in ("", ".")]
    return here or "/"


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _clone_trees(modes: dict[str, bool]) -> Iterator[tuple[str, int]]:
    """Yield detached copies of the outermost mounts; a path that is gone or out of reach is left out."""
    for path in sorted(modes, key=lambda item: item.count("/")):
        mode = modes[path]
        if any(_within(path, other) and modes[other] is mode for other in modes if other != path):
            continue
        try:
            tree = _clone_tree(path)
        except (FileNotFoundError, PermissionError):
            if mode:
                raise
            continue
        extra = _NOSUID | (0 if _within(path, "/dev") else _NODEV)
        # /proc is locked later, when the runner has set its own values there.
        extra |= 0 if mode or _within(path, "/proc") else _RDONLY
        _set_attributes(tree, b"", _AT_EMPTY_PATH | _AT_RECURSIVE, extra)
        yield path, tree


def _clone_tree(path: str) -> int:
    flags = _OPEN_TREE_CLONE | _OPEN_TREE_CLOEXEC | _AT_RECURSIVE
    return linux.syscall(f"open_tree {path}", _OPEN_TREE, _AT_FDCWD, os.fsencode(path), flags)


def _set_attributes(fd: int, path: bytes, flags: int, attributes: int) -> None:
    record = struct.pack("=QQQQ", attributes, 0, 0, 0)
    linux.syscall("mount_setattr", _MOUNT_SETATTR, fd, path, flags, record, len(record))


def _place(tree: int, base: str, path: str) -> None:
    place = base + path
    if not os.path.lexists(place):
        if Path(f"/proc/self/fd/{tree}").is_dir():
            Path(place).mkdir(parents=True)
        else:
            Path(place).parent.mkdir(parents=True, exist_ok=True)
            Path(place).touch()
    linux.syscall(f"move_mount {path}", _MOVE_MOUNT, tree, b"", _AT_FDCWD, os.fsencode(place), _MOVE_FROM_FD)
    os.close(tree)


def _mount(kind: str, place: str, flags: int, options: str | None) -> None:
    data = None if options is None else options.encode()
    try:
        linux.call("mount", kind.encode(), os.fsencode(place), kind.encode(), flags, data)
    except OSError as error:
        raise OSError(error.errno, f"mounting {kind}: {os.strerror(error.errno or 0)}") from error


def _pivot(base: str) -> None:
    os.chdir(base)
    linux.syscall("pivot_root", _PIVOT_NUMBER[os.uname().machine], b".", b".")
    linux.call("umount2", b".", _MNT_DETACH)
    with contextlib.suppress(FileNotFoundError):
        os.chdir("/")
