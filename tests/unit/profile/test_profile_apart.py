"""What a candidate built and wrote is looked through in processes with limits, and comes out as it would here."""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import pytest

from hkbench.profile import copies, hipkittens, names
from hkbench.profile.copies import copied_kernels_apart
from hkbench.profile.hipkittens import kernel_language, kernel_language_apart
from hkbench.profile.names import BuildFolder, without_comments
from hkbench.sandbox.apart import NotFinished
from hkbench.sandbox.folders import MAX_DEPTH, TooDeep

KERNEL = "#include <kittens.cuh>\n__global__ void work(float* x) {\n  kittens::zero(x);\n}\n"


def filled(folder: Path) -> Path:
    (folder / "deep").mkdir()
    (folder / "deep" / "a.so").write_bytes(b"\x7fELF\0early_kernel\0_Z5otherPf\0")
    (folder / os.fsdecode(b"odd\xff.so")).write_bytes(b"\0odd_kernel\0")
    (folder / "blas.so").write_bytes(b"OpenBLAS 0.3")
    return folder


def test_what_a_build_left(tmp_path: Path) -> None:
    here, apart = BuildFolder(str(filled(tmp_path))), BuildFolder(str(tmp_path))
    assert apart.read_apart() == here.read()
    assert apart.known == here.known
    assert "odd_kernel" in here.read().kernels and f"{tmp_path}/blas.so" in here.read().objects
    assert BuildFolder(str(tmp_path), apart.whole).read_apart() == here.read()
    (tmp_path / "later.so").write_bytes(b"\0later_kernel\0")
    (tmp_path / "blas.so").unlink()
    assert apart.read_apart() == here.read()


def test_a_folder_without_changes_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = BuildFolder(str(filled(tmp_path)))
    first.read_apart()
    looks: list[int] = []

    def look() -> dict[str, str]:
        looks.append(1)
        return {"kernel": "/installed"}

    again = BuildFolder(str(tmp_path), first.whole)
    with monkeypatch.context() as patched:
        patched.setattr(names, "answered", None)
        assert again.read_apart() == first.read()
    assert [again.copied(look) for _ in range(2)] == [{"kernel": "/installed"}] * 2 and len(looks) == 1
    (tmp_path / "deep" / "a.so").write_bytes(b"\x7fELF\0other_kernel\0")
    assert "other_kernel" in again.read_apart().kernels
    again.copied(look)
    assert len(looks) == 2


def test_a_folder_that_is_too_deep(tmp_path: Path) -> None:
    (tmp_path / "/".join("d" * (MAX_DEPTH + 2))).mkdir(parents=True)
    with pytest.raises(TooDeep):
        BuildFolder(str(tmp_path)).read_apart()


def test_files_that_take_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "words.so").write_bytes(b"".join(b"w%d " % number for number in range(3_000_000)))
    monkeypatch.setattr(names, "READ_MEMORY", 64 << 20)
    with pytest.raises(NotFinished):
        BuildFolder(str(tmp_path)).read_apart()


def test_copied_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = " ".join(f"x[{number}] = y[{number}] + {number % 7};" for number in range(40))
    text = f"__global__ void known(float* x, float* y) {{ {body} }}"
    own = {run: "/installed/kernel.cuh" for _, found in copies.own_runs([text]) for run in found}
    monkeypatch.setattr(copies, "installed_runs", lambda: own)
    (tmp_path / "renamed.cu").write_text(text.replace("known", "renamed"))
    assert copied_kernels_apart(text, str(tmp_path)) == dict.fromkeys(("known", "renamed"), "/installed/kernel.cuh")
    monkeypatch.setattr(copies, "SECONDS", 1.0)
    endless = "".join(f"__global__ void k{number}(int x) {{ a b c d e f g" for number in range(20_000))
    with pytest.raises(NotFinished):
        copied_kernels_apart(endless, str(tmp_path))


def test_the_language_of_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernel_language_apart([KERNEL]) == kernel_language([KERNEL])
    monkeypatch.setattr(hipkittens, "SECONDS", 1.0)
    assert kernel_language_apart([KERNEL + "int x = " + "a<b>::" * 8_000 + "c;"]) is None


def test_comments_are_those_of_a_regular_expression() -> None:
    order = random.Random(3)
    for _ in range(3000):
        text = "".join(order.choices(["/*", "*/", "//", "\n", "/", "*", "x", '"'], k=order.randrange(12)))
        assert without_comments(text) == re.sub(r"/\*.*?\*/|//[^\n]*", " ", text, flags=re.DOTALL), text


@pytest.mark.parametrize("flood", ["/*", "/**", "//", "*/", "/*/", "/* */", "/*\n//"])
def test_comments_without_an_end_take_no_time(flood: str) -> None:
    without_comments(flood * 300_000)
