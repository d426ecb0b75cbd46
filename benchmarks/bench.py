#!/usr/bin/env python3
"""Every benchmark that this machine can run, one after the other; what it cannot is named, with the reason.

    make bench                                             # the same as: python benchmarks/bench.py
    make bench BENCH="--only builds-g++ harness"
    KERNELBENCH_DIR=... make bench BENCH="--repeats 1 --json figures"

Each is a script of this folder that prints both sides and their ratio, and can be run by itself with more options; its
command stands above its output. On two cores without a GPU all takes about half an hour, beside KernelBench's evaluator
on a GPU some hours: it has to be waited for.

Exit code 0: what ran came to its end, 1: something did not, 130: interrupted.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.runs import interruptible
from hkbench.cli.arguments import positive
from hkbench.errors import Interrupted, ToolchainUnavailable
from hkbench.records import DeviceKind
from hkbench.toolchain.hip import find_hip

ROOT = Path(__file__).resolve().parents[1]
INTERRUPTED = Interrupted.exit_code
ENDING_SECONDS = 60.0  #: after which a benchmark that was interrupted is killed
AT_ONCE = 3  #: of KernelBench's evaluations: that many of the largest inputs fit into a GPU of 140 GB


@dataclass(frozen=True)
class Machine:
    """What decides on which benchmarks can run."""

    kind: DeviceKind
    gpus: int
    kernelbench: bool  #: whether KERNELBENCH_DIR names a folder
    nvcc: bool
    no_hip: str | None  #: why hipcc cannot be run


@dataclass(frozen=True)
class Step:
    """One script. `missing`: why it cannot run here."""

    name: str
    compared: str
    words: Sequence[str]
    missing: str | None = None


@dataclass(frozen=True)
class Outcome:
    step: Step
    code: int | None  #: None: it was not started
    seconds: float

    @property
    def words(self) -> str:
        if self.code is None:
            return f"not run: {self.step.missing}"
        return f"{'done' if self.code == 0 else f'FAILED with exit code {self.code}'}, {self.seconds / 60:.1f} min"


def this_machine() -> Machine:
    import torch
    from torch.utils import cpp_extension

    gpus = torch.cuda.device_count()
    kind = DeviceKind.CPU if gpus == 0 else DeviceKind.ROCM if torch.version.hip else DeviceKind.CUDA
    no_hip: str | None = None
    try:
        find_hip()
    except ToolchainUnavailable as error:
        no_hip = str(error)
    home: str | None = cpp_extension._find_cuda_home()
    checkout = os.environ.get("KERNELBENCH_DIR")
    return Machine(
        kind=kind,
        gpus=gpus,
        kernelbench=bool(checkout and Path(checkout).is_dir()),
        nvcc=home is not None and Path(home, "bin", "nvcc").is_file(),
        no_hip=no_hip,
    )


def steps(machine: Machine, repeats: int) -> list[Step]:
    """Return all steps in the order: a verdict, its build, a batch, the harness, the evaluator's times."""
    device = ["--device", machine.kind.value]
    verdicts = ["verdicts.py", "--device", "cuda", "--timing-runs", "40", "--repeats", str(repeats)]
    verdicts += ["--apart", str(AT_ONCE)]
    gpus = [str(2**power) for power in reversed(range(machine.gpus.bit_length()))]
    no_gpu = "there is no GPU here that torch can use" if machine.kind is DeviceKind.CPU else None
    no_rival = no_gpu
    if machine.kind is DeviceKind.ROCM:
        no_rival = "its candidates are CUDA, and the GPU here is AMD's"
    elif no_rival is None and not machine.kernelbench:
        no_rival = "KERNELBENCH_DIR does not name a checkout of KernelBench"
    no_nvcc = None if machine.nvcc else "there is no nvcc: name its folder in PATH, or the one above in CUDA_HOME"
    if machine.kind is DeviceKind.ROCM:
        no_nvcc = "torch is built for ROCm here"

    def builds(compiler: str, missing: str | None = None) -> Step:
        words = ["builds.py", "--compiler", compiler, "--repeats", str(repeats)]
        return Step(f"builds-{compiler}", f"builds by {compiler}: torch's own, quick", words, missing)

    equals = ["equals.py", *device, "--verdicts", str(12 * repeats), "--kernelbench-verdicts", str(4 * repeats)]
    scale = ["batch.py", *device, "--gpus", *gpus, "--problems", "9", "22", "--kernelbench-verdicts", "0"]
    late = ["late_builds.py", "--device", "cpu" if machine.kind is DeviceKind.CPU else "cuda"]
    no_late = no_rival or no_nvcc
    if machine.kind is DeviceKind.CPU:
        late, no_late = [*late, "--problems", "3", "--samples", "1"], None
    one_gpu = no_gpu or (None if machine.gpus > 1 else "there is one GPU here")
    return [
        Step("verdicts", "verdicts, build cached: KernelBench's evaluator, hkbench", verdicts, no_rival),
        Step("verdicts-cold", "the same, build included", [*verdicts, "--cold"], no_rival),
        builds("g++"),
        builds("hipcc", machine.no_hip),
        builds("hipcc-torch", machine.no_hip),
        builds("nvcc", no_nvcc),
        Step("batch", "a batch: idle GPU, verdicts an hour, KernelBench's", ["batch.py", *device], no_gpu),
        Step("scale", "a batch on more and more GPUs", scale, one_gpu),
        Step("late-builds", "candidates that build late: verdicts an hour, idle GPU", late, no_late),
        Step("harness", "10,000 samples: recording, resuming, reporting, watching", ["harness.py"]),
        Step("start", "CPU of short commands, of all of them imported", ["start.py", "--repeats", str(repeats)]),
        Step("equals", "equals against equals: hkbench's timing, KernelBench's", equals),
        Step(
            "emulator",
            "the emulated GPU: kernels executed, with and without its checker",
            ["emulator.py"],
            machine.no_hip,
        ),
        Step(
            "search",
            "the search: uniform sampling, greedy, a beam, itself",
            ["search.py", "measured", "edits", "traps", "monotone"],
        ),
        Step("references", "each problem's reference against itself", ["reference_times.py", *device]),
    ]


def command(step: Step, folder: Path | None) -> list[str]:
    """Return the script's, with a file in `folder` for its figures."""
    words = [sys.executable, str(ROOT / "benchmarks" / step.words[0]), *step.words[1:]]
    if folder is not None:
        option = "--output" if step.words[0] == "reference_times.py" else "--json"
        words += [option, str(folder / f"{step.name}.json")]
    return words


def run(step: Step, folder: Path | None = None) -> Outcome:
    """Run a script to its end, or say why not. Raises KeyboardInterrupt, when the script and all it started ended."""
    print(f"\n== {step.name}: {step.compared}", flush=True)
    if step.missing is not None:
        print(f"not run: {step.missing}", flush=True)
        return Outcome(step, None, 0.0)
    words = command(step, folder)
    print(f"$ {shlex.join(['python', os.path.relpath(words[1]), *words[2:]])}", flush=True)
    started = time.monotonic()
    # A session of its own, so that what is sent to this process alone ends all that a script has started, too.
    with subprocess.Popen(words, start_new_session=True, preexec_fn=interruptible) as process:
        try:
            process.wait()
        except KeyboardInterrupt:
            _end(process)
            raise
    return Outcome(step, process.returncode, time.monotonic() - started)


def _end(process: subprocess.Popen[Any]) -> None:
    try:
        os.killpg(process.pid, signal.SIGINT)
        process.wait(ENDING_SECONDS)
    except ProcessLookupError:
        pass
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        os.killpg(process.pid, signal.SIGKILL)


def summary(outcomes: Sequence[Outcome]) -> str:
    """Return a line for each."""
    width = max((len(outcome.step.name) for outcome in outcomes), default=0)
    return "\n".join(f"{outcome.step.name:{width}}  {outcome.words}" for outcome in outcomes)


def run_all(chosen: Sequence[Step], folder: Path | None = None) -> int:
    """Return one after the other, whatever becomes of them; the exit code."""
    outcomes: list[Outcome] = []
    interrupted = False
    try:
        for step in chosen:
            outcome = run(step, folder)
            outcomes.append(outcome)
    except KeyboardInterrupt:
        interrupted = True
    print(f"\n{summary(outcomes)}", flush=True)
    if interrupted:
        print(f"interrupted: {len(chosen) - len(outcomes)} of {len(chosen)} did not end", flush=True)
        return INTERRUPTED
    return int(any(outcome.code not in (None, 0) for outcome in outcomes))


def main(words: Sequence[str] | None = None) -> int:
    names = [step.name for step in steps(Machine(DeviceKind.CPU, 0, False, False, None), 1)]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=f"some of: {', '.join(names)}")
    parser.add_argument("--repeats", type=positive, default=5, metavar="N", help="of what medians are made of")
    parser.add_argument("--json", type=Path, metavar="DIR", help="write each one's figures to DIR/NAME.json")
    options = parser.parse_args(words)
    if options.json is not None:
        options.json = options.json.resolve()
        options.json.mkdir(parents=True, exist_ok=True)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(number, signal.default_int_handler)
    chosen = [step for step in steps(this_machine(), options.repeats) if step.name in (options.only or names)]
    return run_all(chosen, options.json)


if __name__ == "__main__":
    raise SystemExit(main())
