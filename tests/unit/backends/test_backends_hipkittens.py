"""A run with HipKittens ends before its first candidate where it could only fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.kittens import kittens_or_skip

from hkbench.backends.hipkittens import provide
from hkbench.cli import main
from hkbench.errors import ToolchainUnavailable, UsageError
from hkbench.records import DeviceFacts, DeviceKind
from hkbench.toolchain.hipkittens import Dialect

MI300X = DeviceFacts(index=0, kind=DeviceKind.ROCM, name="AMD Instinct MI300X", arch="gfx942")


async def test_without_a_checkout_the_machine_is_at_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HIPKITTENS_ROOT", "THUNDERKITTENS_ROOT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("hipkittens_build.headers.INSTALLED", tmp_path)
    with pytest.raises(ToolchainUnavailable, match="set HIPKITTENS_ROOT"):
        await provide(MI300X)


async def test_an_architecture_without_a_dialect() -> None:
    with pytest.raises(ToolchainUnavailable, match="no dialect for gfx90a"):
        await provide(MI300X.model_copy(update={"arch": "gfx90a"}))


@pytest.mark.hipcc
async def test_the_checkout_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIPKITTENS_ROOT", str(kittens_or_skip(Dialect.CDNA3, "no checkout was looked at")))
    versions = (await provide(MI300X)).versions
    assert versions["hipkittens"].startswith("cdna3@") and versions["hipkittens_include"].startswith("sha256:")


async def test_a_cpu_is_no_device_for_it() -> None:
    with pytest.raises(UsageError, match="backend hipkittens is for AMD GPUs, and this device is a CPU"):
        await provide(DeviceFacts(index=0, kind=DeviceKind.CPU, name="a CPU"))


def test_a_batch_asks_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replies = tmp_path / "replies"
    folder = replies / "1_Scaled_residual_bf16" / "attempt_1" / "sample_1"
    folder.mkdir(parents=True)
    (folder / "response.txt").write_text("```python\nclass ModelNew: ...\n```\n")
    words = ["run", "1", "1", "--device", "cpu", "--backend", "hipkittens", "--samples", "1"]
    assert main.main([*words, "--replay", str(replies), "--results", str(tmp_path / "run")]) == UsageError.exit_code
    assert "backend hipkittens is for AMD GPUs" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
