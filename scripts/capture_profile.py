#!/usr/bin/env python3
"""Evaluate one candidate and write down what its profile came to: the files, the verdict, and the prompt of both.

    verdict.json       the whole verdict
    profile/...        what the profiler wrote, and a JSON file a run of it: command, exit status, seconds, output
    prompt.txt         the prompt of the next attempt
    section.md         its section on this attempt, without the code
    machine.txt        what the driver and the kernel let a profiler do here

Prints the profile and the section. Exit code: 0 a profiler of the maker's gave the profile, 1 it did not.

    python scripts/capture_profile.py --code examples/candidates/slow_cuda.py \\
        --problem problems/level1/4_RMSNorm_fp32.py --out captured
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from hkbench.engine.confinement import survey  # noqa: E402
from hkbench.engine.evaluator import LocalEvaluator  # noqa: E402
from hkbench.lab.prompting import Prompter  # noqa: E402
from hkbench.problems import load_problem  # noqa: E402
from hkbench.profile.installed import find_program  # noqa: E402
from hkbench.prompts import load_prompts, reflect_on  # noqa: E402
from hkbench.records import BackendName, DeviceKind, EvaluationSettings, KernelProfile, Track, Verdict  # noqa: E402
from hkbench.registry import backend_names  # noqa: E402
from hkbench.sandbox.cage import LANDLOCK, NAMESPACES, SECCOMP, Cage  # noqa: E402
from hkbench.sandbox.command import words  # noqa: E402
from hkbench.sandbox.environment import device_files, readable_paths  # noqa: E402

SEEN = ("/proc/driver/nvidia/version", "/proc/driver/nvidia/params", "/proc/sys/kernel/perf_event_paranoid")
WANTED = ("RmProfilingAdminOnly", "NVRM version", "CapEff", "CapBnd", "Seccomp:", "NoNewPrivs")
PROBE_SECONDS = 40.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--code", type=Path, required=True)
    parser.add_argument("--problem", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    parser.add_argument("--backend", choices=backend_names(), help="whose hints the prompt gives")
    parser.add_argument("--device", type=DeviceKind, choices=DeviceKind.known(), help="default: the best there is")
    parser.add_argument("--profile-timeout", type=float, default=EvaluationSettings().profile_timeout, metavar="S")
    parser.add_argument("--timing-runs", type=int, metavar="N")
    parser.add_argument("--diagnose", action="store_true", help="where ncu failed, try it in smaller cages")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    verdict = asyncio.run(_evaluate(options))
    (options.out / "machine.txt").write_text(_machine())
    if verdict.profile is not None:
        print(_shown(verdict.profile))
    for warning in verdict.conditions.warnings:
        print(f"note: {warning}")
    if verdict.profile is not None and not verdict.profile.source.startswith("torch"):
        return 0
    print(f"status {verdict.status}: no profile by a profiler of the maker's")
    if options.diagnose:
        _diagnose(options.out)
    return 1


async def _evaluate(options: argparse.Namespace) -> Verdict:
    problem = load_problem(options.problem)
    settings = EvaluationSettings(
        track=Track.ANY,
        timing_runs=options.timing_runs,
        profile_timeout=options.profile_timeout,
        keep_profile=str((options.out / "profile").absolute()),
    )
    async with LocalEvaluator(options.device, settings) as evaluator:
        backend = options.backend or _backend(evaluator.device.kind)
        with tempfile.TemporaryDirectory(prefix="hkbench-") as scratch:
            judged = await evaluator.evaluate(problem, options.code, Path(scratch, "build"), backend)
        assert judged.verdict is not None
        (options.out / "verdict.json").write_text(judged.verdict.model_dump_json(indent=2) + "\n")
        book = load_prompts(ROOT / "prompts")
        prompter = Prompter(book, backend, evaluator, settings)
        source = options.code.read_text()
        prompt = await prompter.render(problem, reflect_on(judged.verdict, source, 1, book, backend))
        (options.out / "prompt.txt").write_text(prompt.text)
        short = await prompter.render(problem, reflect_on(judged.verdict, None, 1, book, backend))
        section = _section(short.text)
        (options.out / "section.md").write_text(section)
        print(section)
    return judged.verdict


def _backend(kind: DeviceKind) -> BackendName:
    return {DeviceKind.CPU: "cpp", DeviceKind.CUDA: "cuda", DeviceKind.ROCM: "hip"}[kind]


def _section(prompt: str) -> str:
    begin = prompt.index("## Your attempt")
    end = prompt.find("\n## ", begin + 1)
    return prompt[begin : end if end > 0 else None].rstrip() + "\n"


def _shown(profile: KernelProfile) -> str:
    lines = [f"{profile.source}: {profile.seconds * 1e3:.4g} ms a pass"]
    for use in profile.kernels:
        figures = ", ".join(f"{name} {figure.value:.4g} {figure.unit}" for name, figure in use.figures.items())
        lines.append(f"  {use.name[:100]}: {use.owner}, {use.calls} calls, {use.seconds * 1e3:.4g} ms ({figures})")
    lines += [f"  finding: {finding}" for finding in profile.findings]
    lines += [f"  note: {note}" for note in profile.notes]
    return "\n".join(lines)


def _machine() -> str:
    """Return lines that say what a profiler may do here."""
    lines = []
    for path in (*SEEN, "/proc/self/status"):
        try:
            text = Path(path).read_text()
        except OSError as error:
            lines.append(f"{path}: {error.strerror}")
            continue
        wanted = [line for line in text.splitlines() if any(word in line for word in WANTED)] or text.splitlines()[:3]
        lines += [f"{path}: {line}" for line in wanted]
    lines.append(f"GPU device files: {sorted(str(path) for path in Path('/dev').glob('nvidia*'))}")
    return "\n".join(lines) + "\n"


def _diagnose(out: Path) -> None:
    """Print what the profiler said, and how it fares around three lines in cages of fewer and fewer layers."""
    for path in sorted(out.glob("profile/*/*.json")):
        kept = json.loads(path.read_text())
        print(f"--- {path.name}: exit status {kept['returncode']} after {kept['seconds']} s\n{kept['output'][-4000:]}")
    program = find_program("ncu")
    if program is None:
        return
    found = asyncio.run(survey())
    print(f"--- isolation {found.level}: {', '.join(found.layers)}; missing: {'; '.join(found.missing) or 'nothing'}")
    layers = tuple(layer for layer in found.layers if layer.split()[0] in (NAMESPACES, LANDLOCK, SECCOMP))
    for without in ((), (SECCOMP,), (LANDLOCK,), (SECCOMP, LANDLOCK), (SECCOMP, LANDLOCK, NAMESPACES)):
        left = tuple(layer for layer in layers if layer.split()[0].rstrip(",") not in without)
        with tempfile.TemporaryDirectory(prefix="hkbench-") as folder:
            _probe(Path(folder), program, left)


def _probe(folder: Path, program: str, layers: tuple[str, ...]) -> None:
    for name in ("home", "tmp"):
        (folder / name).mkdir()
    cage = Cage(readable_paths(), (str(folder), *device_files()), layers, named_pipes=True)
    log = folder / "ncu.csv"
    code = "import torch; x = torch.randn(1 << 20, device='cuda'); (x + x).sum().item(); print('computed')"
    options = ["--clock-control", "none", "--csv", "--page", "raw", "--launch-count", "1", "--log-file", str(log)]
    command = [*words(cage), program, *options, "--metrics", "gpu__time_duration.sum", sys.executable, "-c", code]
    own = {"HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp")}
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=PROBE_SECONDS,
            cwd=folder,
            env=os.environ | own | {"PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])},
        )
        said = f"exit status {done.returncode}: {(done.stdout + done.stderr)[-600:]}"
    except subprocess.TimeoutExpired:
        said = f"no end within {PROBE_SECONDS:g} s"
    wrote = log.read_text(errors="replace")[-900:] if log.exists() else "(no log)"
    print(f"--- ncu with the layers {', '.join(layers) or 'none'}: {said}\n{wrote}")


if __name__ == "__main__":
    sys.exit(main())
