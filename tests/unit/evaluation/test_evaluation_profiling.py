"""Which profiler the evaluator takes, and what it makes of steps that fail. No process is started here."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.jobs import evaluate_job
from support.small_problems import AFFINE, candidate_file, problem_file

from hkbench.errors import DeviceUnavailable
from hkbench.evaluation import profiling
from hkbench.evaluation.job import PROFILE_FOLDER, EvaluateJob
from hkbench.evaluation.link import ProtocolError, RunnerExited, RunnerTimeout
from hkbench.evaluation.profiling import NotProfiled, ProfilerHandle, Profiling, chosen
from hkbench.evaluation.runner_end import RunnerEnd
from hkbench.profile import Choice, Profiler
from hkbench.protocol.codec import encode
from hkbench.protocol.messages import Command
from hkbench.records import (
    DeviceFacts,
    DeviceKind,
    EvaluationSettings,
    Isolation,
    IsolationLevel,
    KernelProfile,
    Owner,
    SizeSet,
)

DATA = Path(__file__).resolve().parents[1] / "profile" / "data"
FULL = ("namespaces", "landlock 7", "seccomp", "guard")
H100 = DeviceFacts(kind=DeviceKind.CUDA, index=0, name="an H100", arch="sm_90")
MI300 = DeviceFacts(kind=DeviceKind.ROCM, index=0, name="an MI300X", arch="gfx942")
END = RunnerEnd("asked", None, None, (), 0, 0, "the candidate's words")
Reply = dict[str, Any] | Exception


def job(folder: Path, layers: tuple[str, ...] = FULL, sizes: SizeSet = SizeSet.FULL) -> EvaluateJob:
    private = folder / "build" / "candidate"
    private.mkdir(parents=True)
    problem = problem_file(folder / "problems", AFFINE)
    return evaluate_job(
        problem=problem.model_copy(update={"cpu_sizes": {"rows": 3}}),
        code=str(candidate_file(folder, "# a candidate")),
        folder=str(private),
        sizes=sizes,
        settings=EvaluationSettings(profile_timeout=100.0),
        isolation=Isolation(level=IsolationLevel.PARTIAL, layers=layers, holds=(), missing=()),
    )


class Link:
    """A runner whose answers are written down before. `reply` sees the request, and may leave files."""

    def __init__(self, reply: Callable[[dict[str, Any]], Reply], end: RunnerEnd = END) -> None:
        self._reply = reply
        self._end = end
        self.requests: list[dict[str, Any]] = []

    def request(self, request: Command, seconds: float) -> dict[str, Any]:
        fields = encode(request)
        self.requests.append({**fields, "seconds": seconds})
        answer = self._reply(fields)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def end(self) -> RunnerEnd:
        return self._end


def profiled(job: EvaluateJob, link: Link, facts: DeviceFacts, profiler: Profiler) -> KernelProfile:
    spare = ProfilerHandle(link, lambda: None)  # type: ignore[arg-type]
    return Profiling(job, spare, facts, "cuda:0").profile(Choice(profiler, profiler.value), lambda _: Owner.CANDIDATE)


def fails(job: EvaluateJob, reply: Callable[[dict[str, Any]], Reply], end: RunnerEnd = END) -> str:
    with pytest.raises(NotProfiled) as caught:
        profiled(job, Link(reply, end), H100, Profiler.NCU)
    return str(caught.value)


def done(code: int = 0, output: str = "") -> dict[str, Any]:
    return {"ok": True, "returncode": code, "output": output}


def written(request: dict[str, Any]) -> Path:
    """Where ncu's results go."""
    command = list(request["command"])
    return Path(command[command.index("--log-file") + 1])


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        (FULL, Profiler.NCU),
        (("namespaces, processes shared", "seccomp", "guard"), Profiler.NCU),
        (("landlock 7", "seccomp", "guard"), Profiler.TORCH),
        (("guard",), Profiler.NCU),
    ],
)
def test_ncu_needs_a_cage_with_sockets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, layers: tuple[str, ...], expected: Profiler
) -> None:
    best = Choice(Profiler.NCU, "ncu", ("a better one is not there",))
    monkeypatch.setattr(profiling, "choose", lambda *_, **__: best)
    choice = chosen(job(tmp_path, layers), H100)
    assert choice.profiler is expected
    assert choice.passed_over[0] == "a better one is not there"
    assert any("socket" in reason for reason in choice.passed_over) is (expected is Profiler.TORCH)


@pytest.mark.parametrize(("backend", "expected"), [("triton", Profiler.PROTON), ("cuda", None)])
def test_a_backend_brings_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, backend: str, expected: Profiler | None
) -> None:
    asked: list[Profiler | None] = []

    def choose(_kind: object, _arch: object, further: Profiler | None) -> Choice:
        asked.append(further)
        return Choice(Profiler.TORCH)

    monkeypatch.setattr(profiling, "choose", choose)
    chosen(job(tmp_path).model_copy(update={"backend": backend}), H100)
    assert asked == [expected]


@pytest.mark.parametrize(("sizes", "overrides"), [(SizeSet.FULL, {}), (SizeSet.CPU, {"rows": 3})])
def test_what_the_profiled_process_is_told(tmp_path: Path, sizes: SizeSet, overrides: dict[str, int]) -> None:
    judged = job(tmp_path, sizes=sizes)
    seen: dict[str, Any] = {}

    def reply(request: dict[str, Any]) -> Reply:
        seen.update(request, passes=json.loads(Path(request["command"][-1]).read_text()))
        written(request).write_bytes((DATA / "ncu_raw_symbols.csv").read_bytes())
        return done()

    profile = profiled(judged, Link(reply), H100, Profiler.NCU)
    assert profile.source.startswith("ncu")
    told = seen["passes"]
    assert (told["code"], told["problem"]) == (judged.code, str(judged.problem.path))
    assert (told["overrides"], told["device"], told["forwards"]) == (overrides, "cuda:0", 2)
    private = Path(judged.folder).with_name(PROFILE_FOLDER)
    assert Path(seen["folder"]) == private
    assert written(seen).is_relative_to(private)
    assert Path(seen["environment"]["TMPDIR"]).is_dir()


@pytest.fixture
def two_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the files of tests/unit/profile/data have."""
    monkeypatch.setattr(profiling, "passes", lambda _profiler: 2)


@pytest.mark.usefixtures("two_passes")
def test_a_step_that_fails_costs_its_counters_only(tmp_path: Path) -> None:
    def reply(request: dict[str, Any]) -> Reply:
        command = list(request["command"])
        name, folder = command[command.index("-o") + 1], Path(command[command.index("-d") + 1])
        if name == "counters_2":
            return done(1, "error: request exceeds the capabilities of the hardware")
        names = {"trace": ("rocprofv3_70_kernel_trace.csv", "rocprofv3_agent_info.csv")}
        for source in names.get(name, (f"rocprofv3_{name[-1]}_counter_collection.csv",)):
            target = folder / f"{name}_{'_'.join(source[:-4].split('_')[-2:])}.csv"
            target.write_bytes((DATA / source).read_bytes())
        return done()

    link = Link(reply)
    profile = profiled(job(tmp_path), link, MI300, Profiler.ROCPROFV3)
    assert profile.source == "rocprofv3 (kernel trace, 2 counter passes)"
    assert any("fewer counters" in note for note in profile.notes)
    assert len(link.requests) == 4
    assert all(0 < request["seconds"] <= 100.0 for request in link.requests)


@pytest.mark.usefixtures("two_passes")
def test_after_one_that_took_too_long_no_other_is_run(tmp_path: Path) -> None:
    def reply(request: dict[str, Any]) -> Reply:
        command = list(request["command"])
        if "--kernel-trace" not in command:
            return RunnerTimeout(building=False)
        folder = Path(command[command.index("-d") + 1])
        for kind, source in (("kernel_trace", "rocprofv3_70_kernel_trace"), ("agent_info", "rocprofv3_agent_info")):
            (folder / f"trace_{kind}.csv").write_bytes((DATA / f"{source}.csv").read_bytes())
        return done()

    link = Link(reply)
    profile = profiled(job(tmp_path), link, MI300, Profiler.ROCPROFV3)
    assert len(link.requests) == 2
    assert profile.source == "rocprofv3 (kernel trace, 0 counter passes)"
    text = "\n".join(profile.notes)
    assert "counters_1) did not end in time" in text
    assert "counters_2) was not run: the 100 s of --profile-timeout are over" in text


def test_each_way_to_fail_says_what_happened(tmp_path: Path) -> None:
    judged = job(tmp_path)

    def refused(request: dict[str, Any]) -> Reply:
        written(request).write_text("==PROF== Connected\n==ERROR== ERR_NVGPUCTRPERM - no permission\n")
        return done()  # some versions end well

    assert "NVreg_RestrictProfilingToAdminUsers=0" in fails(judged, refused)
    assert "did not end in time" in fails(judged, lambda _: RunnerTimeout(building=False))
    assert "(memory)" in fails(judged, lambda _: RunnerExited(), RunnerEnd("memory", None, None, (), 0, 0, ""))
    assert "not a frame" in fails(judged, lambda _: ProtocolError("bytes that are not a frame"))
    assert "wrong answer" in fails(judged, lambda _: {"ok": True, "returncode": "0", "output": ""})
    assert "no such file" in fails(judged, lambda _: {"ok": False, "message": "ncu: no such file"})
    assert "launched no kernel" in fails(judged, lambda _: done(0, "==WARNING== No kernels were profiled."))


def test_a_damaged_file_is_named_without_its_folder(tmp_path: Path) -> None:
    def reply(request: dict[str, Any]) -> Reply:
        written(request).write_text('"ID","Kernel Name"\n')
        return done()

    said = fails(job(tmp_path), reply)
    assert said.startswith("ncu: ncu.csv: holds no kernel; ")
    assert "--keep-profile" in said
    assert str(tmp_path) not in said


def test_processes_that_cannot_be_killed_are_the_machines_failure(tmp_path: Path) -> None:
    end = RunnerEnd("asked", None, None, (), 2, 0, "")
    with pytest.raises(DeviceUnavailable, match="2 processes of ncu"):
        profiled(job(tmp_path), Link(lambda _: done(1), end), H100, Profiler.NCU)
