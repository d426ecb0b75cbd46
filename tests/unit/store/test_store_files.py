from __future__ import annotations

from pathlib import Path

import pytest

from hkbench.store.files import write_atomic
from hkbench.store.sanitize import one_line, strip_escapes


def test_writes_and_replaces_without_leftovers(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    write_atomic(path, "one\r\nü\n")
    write_atomic(path, "two\r\nü\n")
    assert path.read_bytes() == "two\r\nü\n".encode()
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    write_atomic(path, "old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_atomic(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        write_atomic(tmp_path / "none" / "a.txt", "x")


def test_a_lone_surrogate_is_written_as_its_escape(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a", "x\ud800y")
    assert (tmp_path / "a").read_text() == "x\\ud800y"


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b2Jcleared", "cleared"),
        ("\x1bPq#0\x1b\\image", "image"),
        ("\x1bcreset", "reset"),
        ("\x1b]52;c;unterminated", "52;c;unterminated"),
        ("a\x1b", "a"),
        ("bell\x07 back\x08 nul\x00", "bell back nul"),
        ("over\rwritten\r\nline", "overwritten\nline"),
        ("\u202egnp.exe", "gnp.exe"),
        ("tab\tand\nline ✓ é 漢", "tab\tand\nline ✓ é 漢"),
    ],
)
def test_strip_escapes(text: str, plain: str) -> None:
    assert strip_escapes(text) == plain


def test_stripping_leaves_no_control_character_in_any_nesting() -> None:
    nested = "\x1b\x1b[31m[31m\x1b]\x1b[0m0;x\x07\x9d\x1b\\\x9b\x1b[A"
    assert all(c in "\t\n" or (c >= " " and not "\x7f" <= c <= "\x9f") for c in strip_escapes(nested))


def test_one_line() -> None:
    assert one_line("a\n  b\tc", 10) == "a b c"
    assert one_line("abcdefgh", 5) == "abcd…"
    assert one_line("abcde", 5) == "abcde"
