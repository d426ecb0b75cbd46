"""What ptxas prints, as records."""

from __future__ import annotations

from pathlib import Path

from hkbench.toolchain.ptx import SM, parse_ptxas, target_of

PRINTED = """ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z5scalePf' for 'sm_90'
ptxas info    : Function properties for _Z5scalePf
    48 bytes stack frame, 24 bytes spill stores, 16 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 48 bytes cumulative stack size, 4096 bytes smem
ptxas info    : Compiling entry function 'plain' for 'sm_90'
ptxas info    : Used 10 registers, used 0 barriers
"""


def test_each_kernel_has_its_figures() -> None:
    first, second = parse_ptxas(PRINTED)
    assert (first.name, first.arch, first.registers, first.shared_bytes) == ("_Z5scalePf", "sm_90", 255, 4096)
    assert (first.stack_bytes, first.spill_store_bytes, first.spill_load_bytes) == (48, 24, 16)
    assert (second.registers, second.shared_bytes, second.spill_store_bytes) == (10, 0, None)


def test_lines_before_the_first_kernel_say_nothing() -> None:
    assert parse_ptxas("ptxas info    : Used 3 registers\nptxas fatal   : no\n") == ()


def test_the_target_is_the_one_that_the_code_names(tmp_path: Path) -> None:
    source = tmp_path / "a.ptx"
    source.write_text(".version 8.8\n.target sm_90a\n.address_size 64\n")
    assert target_of(source) == "sm_90a"
    source.write_text("nothing of that kind\n")
    assert target_of(source) is None


def test_targets_of_nvidia() -> None:
    assert all(SM.fullmatch(arch) for arch in ("sm_75", "sm_90a", "sm_100f", "sm_121"))
    assert not any(SM.fullmatch(arch) for arch in ("sm_9", "gfx942", "compute_90", "sm_90 -I/"))
