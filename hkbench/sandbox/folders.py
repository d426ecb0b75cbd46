"""Folders that a candidate filled, read and removed whatever lies in them.

Files and folders are reached from an open folder by a single name, so that no path is too long and no link is followed.
Nothing here calls itself: neither depth nor number of entries can exhaust a stack, and few files are open at a time.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

MAX_DEPTH = 64  #: of folders within one another; builds make a dozen
PATH_MAX = 4096  #: bytes of a path that the kernel takes
_REGULAR = re.compile(r"\*\*/|\*|.", re.DOTALL)
_MEANS = {"**/": "(?:[^/]+/)*", "*": "[^/]*"}
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_OWN = 0o700  #: what the owner of a folder needs to empty it


class TooDeep(Exception):
    """A folder holds folders more than `MAX_DEPTH` deep."""

    def __init__(self) -> None:
        super().__init__(f"folders lie more than {MAX_DEPTH} deep within one another")


@dataclass(frozen=True)
class Entry:
    """A name in a folder. `parent` is that folder, open until the next entry is asked for."""

    path: str  #: for people and as a key: it may be too long to open
    name: str
    parent: int
    is_folder: bool  #: not by a link


def walk(folder: str, in_order: bool = False) -> Iterator[Entry]:
    """Yield everything below a folder, each folder before its contents. Nothing where it cannot be read.

    `in_order`: by name, for which all names of a folder are held at once.

    Raises:
        TooDeep: after what lies before the folder that is too deep.
    """
    stack: list[_Open] = []
    try:
        with suppress(OSError):
            stack.append(_Open(folder, None, folder, in_order))
        while stack:
            top = stack[-1]
            entry = top.next()
            if entry is None:
                stack.pop().close()
                continue
            found = Entry(f"{top.path}/{entry.name}", entry.name, top.handle, _is_folder(entry))
            yield found
            if not found.is_folder:
                continue
            if len(stack) > MAX_DEPTH:
                raise TooDeep
            with suppress(OSError):  # it is gone by now, or may not be read
                stack.append(_Open(entry.name, top.handle, found.path, in_order))
    finally:
        for left in stack:
            left.close()


class _Open:
    """A folder that is being listed."""

    def __init__(self, name: str, parent: int | None, path: str, in_order: bool) -> None:
        self.path = path
        self.handle = os.open(name, _FOLDER, dir_fd=parent)
        self._entries = self._listed(in_order)

    def _listed(self, in_order: bool) -> Iterator[os.DirEntry[str]]:
        with os.scandir(self.handle) as entries:
            yield from sorted(entries, key=lambda entry: entry.name) if in_order else entries

    def next(self) -> os.DirEntry[str] | None:
        try:
            return next(self._entries, None)
        except OSError:
            return None

    def close(self) -> None:
        del self._entries  # closes the listing
        os.close(self.handle)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def state(folder: str, limit: int) -> str | None:
    """Return what changes when anything below a folder does; None where more than `limit` names are there, or too deep.

    The kernel's own account of each name: its node, size and times. Nobody without privileges sets the last of them.
    """
    seen = sha256()
    try:
        for number, entry in enumerate(walk(folder, in_order=True)):
            if number >= limit:
                return None
            with suppress(OSError):  # it is gone by now
                told = os.stat(entry.name, dir_fd=entry.parent, follow_symlinks=False)
                what = (entry.path, told.st_mode, told.st_ino, told.st_size, told.st_mtime_ns, told.st_ctime_ns)
                seen.update(repr(what).encode(errors="replace"))
    except TooDeep:
        return None
    return seen.hexdigest()


def matching(folder: Path, pattern: str) -> list[Path]:
    """Return the plain files below a folder whose path in it is like a pattern with `*` and `**/`, in order.

    Of a folder that is too deep those that were found until then.
    """
    wanted = re.compile(_REGULAR.sub(lambda sign: _MEANS.get(sign[0]) or re.escape(sign[0]), pattern))
    root = f"{folder}/"
    found: list[Path] = []
    with suppress(TooDeep):
        for entry in walk(str(folder)):
            if not entry.is_folder and len(os.fsencode(entry.path)) < PATH_MAX:
                found += [Path(entry.path)] if wanted.fullmatch(entry.path.removeprefix(root)) and _plain(entry) else []
    return sorted(found)


def _plain(entry: Entry) -> bool:
    try:
        return stat.S_ISREG(os.stat(entry.name, dir_fd=entry.parent, follow_symlinks=False).st_mode)
    except OSError:
        return False


def read(entry: Entry, limit: int) -> bytes:
    """Return the first bytes of a plain file; nothing for what is none or cannot be read."""
    try:
        handle = os.open(entry.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=entry.parent)
    except OSError:
        return b""
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return b""
    with os.fdopen(handle, "rb") as file:
        try:
            return file.read(limit)
        except OSError:
            return b""


def remove(folder: Path, seconds: float) -> None:
    """Remove a folder with everything in it, or whatever else has its name. Nobody may write there any more.

    What lies deeper is moved up, level by level, so that the work grows with the number of entries alone.

    Raises:
        OSError: it cannot be removed, or (TimeoutError) not within some seconds; then a part of it may be left.
    """
    deadline = time.monotonic() + seconds
    try:
        root = _open_to_empty(str(folder), None)
    except FileNotFoundError:
        return
    except OSError:
        folder.unlink()  # a link, or no folder
        return
    moved = _Moved(root)
    try:
        while names := os.listdir(root):
            for name in names:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{folder} could not be emptied within {seconds:g} s")
                _remove(name, root, moved)
    finally:
        os.close(root)
    folder.rmdir()


class _Moved:
    """Names for what is moved up, that nothing there has."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._prefix = secrets.token_hex(16)
        self._count = 0

    def up(self, name: str, parent: int) -> None:
        self._count += 1
        target = f"{self._prefix}-{self._count}"
        try:
            os.rename(name, target, src_dir_fd=parent, dst_dir_fd=self._root)
        except PermissionError:  # a folder that is moved has to be writable: its `..` changes
            os.close(_open_to_empty(name, parent))
            os.rename(name, target, src_dir_fd=parent, dst_dir_fd=self._root)


def _remove(name: str, parent: int, moved: _Moved) -> None:
    """Remove a file, or a folder with its files, whose folders are moved up."""
    if _unlinked(name, parent):
        return
    inner = _open_to_empty(name, parent)
    try:
        for child in os.listdir(inner):
            if not _unlinked(child, inner):
                moved.up(child, inner)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=parent)


def _unlinked(name: str, parent: int) -> bool:
    try:
        os.unlink(name, dir_fd=parent)
    except IsADirectoryError:
        return False
    return True


def _open_to_empty(name: str, parent: int | None) -> int:
    """Open a folder of ours, whatever rights it was given."""
    try:
        handle = os.open(name, _FOLDER, dir_fd=parent)
    except PermissionError:
        place = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            os.chmod(f"/proc/self/fd/{place}", _OWN)  # noqa: PTH101 - the open folder, not a path that may have changed
        finally:
            os.close(place)
        return os.open(name, _FOLDER, dir_fd=parent)
    if os.fstat(handle).st_mode & _OWN != _OWN:
        os.fchmod(handle, _OWN)
    return handle
