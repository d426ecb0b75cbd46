"""Compile one kernel file alone, by the way that suits its suffix, its text and the target."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hkbench.backends import find_backend
from hkbench.compile_only.build_only import compile_only
from hkbench.compile_only.native_file import compile_native_file
from hkbench.compile_only.triton_file import compile_triton_file
from hkbench.compile_only.workplace import Workplace
from hkbench.engine.confinement import require, survey
from hkbench.errors import InputMissing, UsageError
from hkbench.llm.blocks import source_defines_model_new
from hkbench.problems import load_problem
from hkbench.records import EvaluationSettings, Status, Verdict
from hkbench.records.compiled import CompiledFile
from hkbench.toolchain.ptx import SM

CPU = "cpu"
DEFAULT_ARCHS = {"cuda": "sm_90", "cpp": CPU}  #: of others the first that their backend compiles for
MAX_BYTES = 4 << 20  #: of a kernel file
_SUFFIXES = {".cu": "cuda", ".hip": "hip", ".cpp": "cpp", ".cc": "cpp", ".cxx": "cpp", ".c": "cpp"}
_KITTENS = re.compile(r"kittens\.(cuh|hpp)|\bkittens::|hipkittens_build")
_HIP = re.compile(r"hip/hip_runtime|__global__|hipLaunchKernelGGL")
_TRITON = re.compile(r"^[ \t]*@(triton\.)?jit\b", re.MULTILINE)
#: A problem whose tensors nobody looks at, for candidates that are only imported.
_NO_PROBLEM = """import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x


def get_inputs():
    return []


def get_init_inputs():
    return []
"""


@dataclass(frozen=True)
class Asked:
    """What is compiled and how; `None` where the file decides."""

    file: Path
    arch: str | None = None
    backend: str | None = None
    signatures: Mapping[str, Sequence[str]] = field(default_factory=dict)  #: of Triton kernels, "" for the only one
    options: Mapping[str, int] = field(default_factory=dict)  #: num_warps, num_stages
    problem: Path | None = None  #: of a candidate, which is called with its inputs


async def compile_file(asked: Asked, settings: EvaluationSettings, root: Path) -> tuple[CompiledFile, Workplace]:
    """Return what compiling the file came to, and where what came out is kept; `root` is empty.

    Raises:
        UsageError: the target, or how to compile, cannot be told.
        InputMissing: there is no such file.
        ToolchainUnavailable: a compiler is not here.
    """
    text = _text(asked.file)
    is_candidate = asked.file.suffix == ".py" and source_defines_model_new(text) and not asked.signatures
    language = asked.backend or _language(asked.file, text, asked.arch)
    arch = asked.arch or DEFAULT_ARCHS.get(language) or find_backend(language).compiles_for[0]
    _check(asked.file, language, arch)
    isolation = await survey()
    require(isolation, settings.require_isolation)
    root.mkdir(parents=True, exist_ok=True)
    place = Workplace(root.resolve(), isolation, settings.build_timeout)
    if is_candidate:
        return await _candidate(asked, language, arch, settings, place), place
    if asked.file.suffix == ".py":
        return compile_triton_file(asked.file, arch, asked.signatures, asked.options, place), place
    return compile_native_file(asked.file, language, arch, place), place


def _text(file: Path) -> str:
    if not file.is_file():
        raise InputMissing(f"{file}: there is no such file; name a kernel file")
    if file.stat().st_size > MAX_BYTES:
        raise UsageError(f"{file}: has more than {MAX_BYTES >> 20} MiB; name a kernel file")
    return file.read_text(encoding="utf-8", errors="replace")


def _language(file: Path, text: str, arch: str | None) -> str:
    """Return the language that suffix, text and target tell. Raises UsageError where they do not."""
    suffix = file.suffix.lower()
    if suffix == ".py":
        if _TRITON.search(text):
            return "triton"
        if source_defines_model_new(text):
            return _of_candidate(text, arch)
        raise UsageError(f"{file}: has neither a @triton.jit function nor ModelNew; name a kernel file")
    language = _SUFFIXES.get(suffix)
    if language is None:
        known = ", ".join((".py", *_SUFFIXES))
        raise UsageError(f"{file}: its suffix is none of {known}: say with --backend what it is written in")
    if language != "cuda" and _KITTENS.search(text):
        return "hipkittens"
    if language == "cpp" and _HIP.search(text) and arch != CPU:
        return "hip"
    return language


def _of_candidate(text: str, arch: str | None) -> str:
    if _KITTENS.search(text):
        return "hipkittens"
    if "cuda_sources" in text or "__global__" in text:
        return "cuda" if arch is not None and SM.fullmatch(arch) else "hip"
    return "cpp"


def _check(file: Path, language: str, arch: str) -> None:
    """Raise UsageError where the language is not compiled for the target."""
    nvidia = SM.fullmatch(arch) is not None
    if language == "cuda":
        fits, known = nvidia, "sm_90 and the like"
    elif language == "cpp":
        fits, known = arch == CPU, CPU
    else:
        archs = find_backend(language).compiles_for
        fits = arch in archs or (nvidia and language == "triton")
        known = ", ".join((*archs, *(("sm_90 and the like",) if language == "triton" else ())))
    if not fits:
        raise UsageError(
            f"{file}: is {find_backend(language).title}, which is not compiled for {arch} but for {known}: "
            "name another --arch, or another --backend"
        )


async def _candidate(
    asked: Asked, language: str, arch: str, settings: EvaluationSettings, place: Workplace
) -> CompiledFile:
    """Compile a candidate as `eval.py --build-only` does."""
    if language == "cuda" or SM.fullmatch(arch):
        raise UsageError(
            f"{asked.file}: is a candidate for {arch}; eval.py judges it on such a GPU, and here its kernels are "
            "compiled alone: in Triton with --signature, in CUDA as a .cu file"
        )
    if language == "triton" and asked.problem is None:
        raise UsageError(
            f"{asked.file}: has ModelNew, whose Triton kernels are known from what it launches: name its problem with "
            "--problem, or compile the kernels alone with --signature"
        )
    if asked.problem is None:
        stand_in = place.root / "problem.py"
        stand_in.write_text(_NO_PROBLEM, encoding="utf-8")
    problem = load_problem(asked.problem or stand_in)
    scratch = place.root / "candidate"
    verdict = await compile_only(problem, asked.file, scratch, language, None if language == "cpp" else arch, settings)
    return _of_verdict(asked.file, language, arch, verdict)


def _of_verdict(file: Path, language: str, arch: str, verdict: Verdict) -> CompiledFile:
    ways = {
        "triton": "candidate: one forward pass, what it launches by Triton",
        "cpp": "candidate: imported, and what it builds by the host's compiler",
    }
    failure = verdict.failure
    said = None if failure is None else f"{failure.message}\n{failure.detail or ''}".strip()
    line = None if said is None else re.search(r"\bline (\d+)\b", said)
    return CompiledFile(
        file=file.name,
        way=ways.get(language, "candidate: imported, and what it would build by hipcc"),
        compiler=", ".join(f"{name} {version}" for name, version in verdict.conditions.versions.items()),
        target=arch,
        error=None if verdict.status is Status.COMPILED else said,
        line=None if line is None else int(line[1]),
        resources=verdict.resources,
        notes=(*verdict.conditions.not_checked, *verdict.conditions.warnings),
        seconds=sum(stage.seconds for stage in verdict.stages),
    )
