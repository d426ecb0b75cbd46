"""hkbench doctor, and what refuses to run below a level of isolation."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import pytest
from support.compilers import hip_or_skip

from hkbench.cli import doctor, doctor_tools, main
from hkbench.cli.doctor_row import AMD, NVIDIA, Row
from hkbench.cli.settings import add_evaluation, evaluation_settings
from hkbench.devices.reading import GpuReading, SourceReport
from hkbench.engine.confinement import Cages, require, survey
from hkbench.errors import DeviceUnavailable, IsolationUnavailable, ToolchainUnavailable
from hkbench.records import DeviceFacts, DeviceKind, Isolation, IsolationLevel, Protection, Track
from hkbench.sandbox.cage import NAMESPACES
from hkbench.toolchain.hip import HipToolchain
from hkbench.toolchain.triton import Triton

PARTIAL = Isolation(
    level=IsolationLevel.PARTIAL,
    layers=("bubblewrap", "landlock 4", "guard"),
    holds=(Protection.LIMITS, Protection.FILES),
    missing=("signals: they reach other processes",),
)


STATES = {"ok", "missing", "not needed", "problem"}


@pytest.fixture
def no_service(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LLM_GATEWAY_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "LLM_GATEWAY_URL", "LLM_MODEL"):
        monkeypatch.delenv(name, raising=False)


def test_it_prints_what_there_is(capsys: pytest.CaptureFixture[str], no_service: None) -> None:
    code = main.main(["doctor", "--no-devices"])
    text = capsys.readouterr().out
    assert code == (69 if "Not ready: " in text else 0) and ("\nReady: " in text) == (code == 0)
    states = {line[:10].strip() for line in text.splitlines()[:-2] if line[:1].strip()}
    assert states <= STATES
    for word in (" prompts ", " problems ", " disk ", " memory ", " service    not checked", "git:"):
        assert word in text
    for word in ("isolation ", "layers ", "guard", "python ", "torch ", "g++:", "nvcc:", "ninja:", "ncu:", "GiB free"):
        assert word in text
    for word in (
        " hip ",
        " hipkittens ",
        " triton ",
        "rocprofv3:",
        "rocprofv2:",
        "rocprof:",
        "  used     torch",
    ):
        assert word in text


def test_the_same_as_data_and_a_problem(tmp_path: Path, capsys: pytest.CaptureFixture[str], no_service: None) -> None:
    assert main.main(["doctor", "--no-devices", "--json", "--prompts", str(tmp_path / "none")]) == 69
    data = json.loads(capsys.readouterr().out)
    rows = {row["what"]: row for row in data["rows"]}
    assert data["problems"] == sum(row["problem"] is not None for row in data["rows"]) >= 1
    assert "config.json" in rows["prompts"]["problem"] and rows["problems"]["problem"] is None
    assert [one["what"] for one in rows["isolation"]["details"]][:2] == ["layers", "holds"]
    assert {row["state"] for row in data["rows"]} <= STATES and rows["prompts"]["state"] == "problem"


def test_what_only_an_absent_gpu_needs_is_said_in_one_line() -> None:
    rows = [
        Row("torch", "2.9"),
        Row("hip", "there is none", missing_for=AMD),
        Row("profiler", "rocprof: not found", missing_for=AMD),
        Row("compiler", "nvcc: not found", missing_for=NVIDIA),
    ]
    cpu, amd = {DeviceKind.CPU}, {DeviceKind.ROCM}
    assert [row.state(cpu) for row in rows] == ["ok", "not needed", "not needed", "not needed"]
    assert [row.state(amd) for row in rows] == ["ok", "missing", "missing", "not needed"]
    assert [row.state(None) for row in rows] == ["ok", "missing", "missing", "missing"]
    folded = doctor._folded(rows, cpu)
    assert [row.what for row in folded] == ["torch", "compiler", "AMD"]
    assert "hip, rocprof" in folded[-1].text
    assert doctor._folded(rows, amd) == rows == doctor._folded(rows, None)


def test_triton_or_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_tools, "find_triton", lambda: Triton("3.9.0", Path("/packages/triton")))
    expected = "triton     3.9.0, with its AMD back end: compiles for gfx942, gfx950 (/packages/triton)"
    assert list(doctor_tools.triton().lines()) == [expected]

    def missing() -> Triton:
        raise ToolchainUnavailable("Triton is not installed: run `pip install triton`")

    monkeypatch.setattr(doctor_tools, "find_triton", missing)
    assert list(doctor_tools.triton().lines()) == ["triton     Triton is not installed: run `pip install triton`"]


def hip_toolchain(folder: Path, targets: str, is_rocm: bool = True) -> HipToolchain:
    compiler = folder / "llvm/bin/clang++"
    compiler.parent.mkdir(parents=True)
    compiler.write_text(f"#!/bin/sh\necho '  {targets}' >&2\n")
    compiler.chmod(0o755)
    return HipToolchain(folder, folder / "bin/hipcc", "6.4.43484", "clang version 19.0.0", is_rocm)


def test_the_hip_toolchain_and_what_it_cannot_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = hip_toolchain(tmp_path / "old", "gfx90a gfx942")
    monkeypatch.setattr(doctor, "find_hip", lambda: old)
    head, targets, missing = doctor._hip().lines()
    assert head == f"hip        HIP 6.4.43484, clang version 19.0.0 ({tmp_path / 'old'})"
    assert targets == "  targets  gfx942"
    assert missing.startswith("  missing  gfx950: ")
    new = hip_toolchain(tmp_path / "new", "gfx942 gfx950 gfx9-4-generic", is_rocm=False)
    monkeypatch.setattr(doctor, "find_hip", lambda: new)
    head, targets = doctor._hip().lines()
    assert "compiles only" in head and targets == "  targets  gfx942, gfx950"


@pytest.mark.hipcc
def test_the_compiler_that_is_here() -> None:
    hip_or_skip("what doctor says of it was not tested")
    head, targets, *missing = doctor._hip().lines()
    assert head.startswith("hip        HIP ") and targets == "  targets  gfx942, gfx950" and not missing


MI300X = DeviceFacts(
    kind=DeviceKind.ROCM, index=0, name="AMD Instinct MI300X", arch="gfx942", memory_bytes=205822885888,
    compute_units=304, wave_size=64, lds_bytes=65536, llc_bytes=256 << 20,
)  # fmt: skip
READING = GpuReading(index=0, name="AMD Instinct MI300X", arch="gfx942", compute_units=304, pci="0000:1b:00")
NO_SMI = SourceReport(source="AMD SMI", error="amdsmi is not installed")


def machine(monkeypatch: pytest.MonkeyPatch, torch: tuple[DeviceFacts, ...], smi: SourceReport, kfd: Path) -> None:
    async def devices() -> tuple[DeviceFacts, ...]:
        return torch

    monkeypatch.setattr(doctor, "_torch_devices", devices)
    monkeypatch.setattr(doctor, "ask_amd_smi", lambda: smi)
    monkeypatch.setattr(doctor, "KFD", kfd)


async def device_lines() -> list[str]:
    return [line for row in (await doctor._devices())[0] for line in row.lines()]


async def test_an_amd_gpu_by_all_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    smi = SourceReport(source="AMD SMI", gpus=(READING.model_copy(update={"compute_units": 300}),))
    machine(monkeypatch, (MI300X,), smi, tmp_path / "none")
    text = "\n".join(await device_lines())
    assert text.startswith("device     rocm 0: AMD Instinct MI300X, gfx942\n  memory   191.7 GiB")
    assert "warning  sources disagree on compute_units: torch says 304, AMD SMI says 300" in text
    assert "peaks    MI300X (AMD1, AMD2): 5.3 TB/s" in text


async def test_an_amd_gpu_that_torch_cannot_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kfd = tmp_path / "kfd"
    kfd.touch()
    cpu = DeviceFacts(kind=DeviceKind.CPU, index=0, name="a processor", arch="x86_64")
    machine(monkeypatch, (cpu,), SourceReport(source="AMD SMI", gpus=(READING,)), kfd)
    lines = await device_lines()
    assert lines[0] == "device     cpu 0: a processor, x86_64"
    assert lines[1] == "device     rocm 0: AMD Instinct MI300X, gfx942"
    assert any("torch cannot use an AMD GPU here" in line for line in lines)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert any("join its group (render, video)" in line for line in await device_lines())


async def test_no_amd_source_is_asked_where_there_is_no_amd_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    h200 = DeviceFacts(kind=DeviceKind.CUDA, index=0, name="NVIDIA H200", arch="sm_90", llc_bytes=60 << 20)
    machine(monkeypatch, (h200,), NO_SMI, tmp_path / "none")
    text = "\n".join(await device_lines())
    assert text.startswith("device     cuda 0: NVIDIA H200, sm_90\n") and "flushed by 120 MiB" in text
    assert "missing" not in text


async def test_no_device_is_a_problem(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def devices() -> tuple[DeviceFacts, ...]:
        raise DeviceUnavailable("no device: install torch")

    monkeypatch.setattr(doctor, "_torch_devices", devices)
    monkeypatch.setattr(doctor, "KFD", tmp_path / "none")
    assert await device_lines() == ["device     none can be used", "  problem  no device: install torch"]


def test_whether_own_work_can_be_established_is_said_of_each_gpu() -> None:
    kinds = {DeviceKind.CPU, DeviceKind.CUDA, DeviceKind.ROCM}
    apart = PARTIAL.model_copy(update={"layers": (*PARTIAL.layers, f"{NAMESPACES} (mount)")})
    for isolation, state in ((PARTIAL, "missing"), (apart, "ok")):
        rows = list(doctor._own_work(kinds, isolation))
        assert [row.text.partition(":")[0] for row in rows] == ["cuda", "rocm"]
        assert {row.state(kinds) for row in rows} == {state} and all(row.problem is None for row in rows)
    assert list(doctor._own_work({DeviceKind.CPU, DeviceKind.EMULATED_GFX942}, PARTIAL)) == []


async def test_without_amd_smi_torch_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine(monkeypatch, (MI300X,), NO_SMI, tmp_path / "none")
    assert "  missing  AMD SMI: amdsmi is not installed" in await device_lines()


async def test_the_survey_is_an_isolation() -> None:
    found = await survey()
    assert found.layers[-1] == "guard"
    assert (found.level is IsolationLevel.FULL) == (set(found.holds) == set(Protection))


def test_a_level_that_is_not_reached() -> None:
    require(PARTIAL, IsolationLevel.LIMITS)
    require(PARTIAL, IsolationLevel.PARTIAL)
    with pytest.raises(IsolationUnavailable, match=r"`partial`.*\n  signals: they reach other") as caught:
        require(PARTIAL, IsolationLevel.FULL)
    assert caught.value.exit_code == 69


def test_each_runner_sees_its_own_code_only(tmp_path: Path) -> None:
    cage = Cages(PARTIAL).cage(tmp_path / "private", str(tmp_path / "code.py"))
    assert cage.layers == ("landlock 4",)
    assert cage.writable[0] == str(tmp_path / "private")
    assert str(tmp_path / "code.py") in cage.readable
    assert not any(Path(tmp_path / "other.py").is_relative_to(path) for path in cage.readable)


def test_the_flags() -> None:
    parser = argparse.ArgumentParser()
    add_evaluation(parser)
    settings = evaluation_settings(parser.parse_args(["--require-isolation", "full", "--track", "any"]))
    assert (settings.require_isolation, settings.track) == (IsolationLevel.FULL, Track.ANY)
    defaults = evaluation_settings(parser.parse_args([]))
    assert (defaults.require_isolation, defaults.track) == (IsolationLevel.LIMITS, Track.OWN)
