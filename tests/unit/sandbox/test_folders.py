"""Folders that somebody filled with the worst that a file system takes."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from hkbench.sandbox import folders
from hkbench.sandbox.folders import MAX_DEPTH, TooDeep


def nest(folder: Path, depth: int, name: str = "d") -> None:
    """Makes folders within one another, each reached from the one around it."""
    handle = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=handle)
        inner = os.open(name, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(os.open("bottom.so", os.O_CREAT | os.O_WRONLY, dir_fd=handle))
    os.close(handle)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_a_walk_names_everything_once_and_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "b" / "c").mkdir(parents=True)
    (tmp_path / "b" / "c" / "file").write_text("text")
    (tmp_path / "a").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / os.fsdecode(b"\xff")).write_text("odd")
    before = open_files()
    found = [(entry.path.removeprefix(f"{tmp_path}/"), entry.is_folder) for entry in folders.walk(str(tmp_path), True)]
    assert found == [("a", False), ("b", True), ("b/c", True), ("b/c/file", False), ("pipe", False), ("\udcff", False)]
    assert sorted(entry.path for entry in folders.walk(str(tmp_path))) == sorted(
        f"{tmp_path}/{path}" for path, _ in found
    )
    assert open_files() == before


def test_what_is_read_is_a_plain_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    found = {entry.name: folders.read(entry, 4) for entry in folders.walk(str(tmp_path))}
    assert found == {"file": b"0123", "link": b"", "pipe": b"", "folder": b""}


def test_files_like_a_pattern(tmp_path: Path) -> None:
    for name in ("trace.csv", "a/trace.csv", "a/b/trace.csv", "a/b/other.csv", "trace.csv.bak", "c/x.csv", "c/d/y.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "a" / "link.csv").symlink_to(tmp_path / "trace.csv")
    (tmp_path / "e.csv").mkdir()
    for pattern in ("**/trace.csv", "c/**/*.csv", "*.csv", "trace.csv", "none/*", "a/*/trace.csv"):
        expected = [path for path in tmp_path.glob(pattern) if path.is_file() and not path.is_symlink()]
        assert folders.matching(tmp_path, pattern) == sorted(expected), pattern
    nest(tmp_path, 3000)
    nest(tmp_path / "e.csv", 60, "n" * 255)
    folders.matching(tmp_path, "**/bottom.so")
    folders.remove(tmp_path / "d", 60.0)
    folders.remove(tmp_path / "e.csv", 60.0)


def test_folders_as_deep_as_the_limit_are_read(tmp_path: Path) -> None:
    nest(tmp_path, MAX_DEPTH)
    assert [entry.name for entry in folders.walk(str(tmp_path))][-1] == "bottom.so"


@pytest.mark.parametrize(("depth", "name"), [(MAX_DEPTH + 1, "d"), (3000, "d"), (200, "n" * 255)])
def test_deeper_folders_are_refused_and_removed(tmp_path: Path, depth: int, name: str) -> None:
    target = tmp_path / "target"
    target.mkdir()
    nest(target, depth, name)
    before = open_files()
    with pytest.raises(TooDeep):
        list(folders.walk(str(target)))
    folders.remove(target, 60.0)
    assert not target.exists()
    assert open_files() == before


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert list(folders.walk(str(tmp_path / "none"))) == []
    folders.remove(tmp_path / "none", 60.0)
    folders.remove(tmp_path / "none" / "deeper", 60.0)


def test_what_links_lead_to_stays(tmp_path: Path) -> None:
    outside, target = tmp_path / "outside", tmp_path / "target"
    for folder in (outside, target / "a" / "b", target / "a" / "c" / "d"):
        folder.mkdir(parents=True)
    (outside / "kept").write_text("kept")
    (target / "a" / "b" / "link").symlink_to(outside)
    (target / "link").symlink_to(outside)
    os.mkfifo(target / "a" / "pipe")
    (target / os.fsdecode(b"\xff\n")).write_text("odd")
    folders.remove(target, 60.0)
    assert not target.exists()
    assert (outside / "kept").read_text() == "kept"
    target.symlink_to(outside)
    folders.remove(target, 60.0)
    assert not os.path.lexists(target)
    assert (outside / "kept").exists()


def test_folders_without_rights_are_removed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    (target / "a" / "b" / "c").mkdir(parents=True)
    (target / "a" / "b" / "file").write_text("x")
    for folder in (target / "a" / "b" / "c", target / "a" / "b", target / "a", target):
        folder.chmod(0)
    pid = os.fork()
    if pid == 0:  # root may do anything: as somebody else
        status = 1
        try:
            if os.geteuid() == 0:
                for path in (target / "a" / "b" / "c", target / "a" / "b" / "file", target / "a" / "b", target / "a"):
                    os.chown(path, 65534, 65534)
                os.chown(target, 65534, 65534)
                os.chown(tmp_path, 65534, 65534)
                for parent in tmp_path.parents[:3]:
                    parent.chmod(parent.stat().st_mode | 0o755)
                os.setresgid(65534, 65534, 65534)
                os.setresuid(65534, 65534, 65534)
            folders.remove(target, 60.0)
            status = int(target.exists())
        finally:
            os._exit(status)
    assert os.waitpid(pid, 0)[1] == 0
    assert not target.exists()


def test_removal_has_an_end(tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "target" / "file").touch()
    with pytest.raises(TimeoutError):
        folders.remove(tmp_path / "target", -1.0)
    folders.remove(tmp_path / "target", 60.0)
    assert not (tmp_path / "target").exists()


def test_any_change_below_a_folder_changes_its_state(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    file = inner / "file"
    file.write_text("one")
    states = [folders.state(str(tmp_path), 10)]
    assert folders.state(str(tmp_path), 10) == states[0] is not None
    times = file.stat().st_atime_ns, file.stat().st_mtime_ns

    def put_back() -> None:
        file.write_text("two")
        os.utime(file, ns=times)

    def exchange() -> None:
        file.unlink()
        file.symlink_to("/dev/null")

    for change in (put_back, exchange, (inner / "other").touch, lambda: inner.rename(tmp_path / "renamed")):
        time.sleep(0.02)  # the clock of file systems is coarse
        change()
        states.append(folders.state(str(tmp_path), 10))
    assert len(set(states)) == len(states)


def test_a_folder_with_too_much_in_it_has_no_state(tmp_path: Path) -> None:
    nest(tmp_path, 3)
    assert folders.state(str(tmp_path), 3) is None
    nest(tmp_path, MAX_DEPTH + 2, "deep")
    assert folders.state(str(tmp_path), 1000) is None
