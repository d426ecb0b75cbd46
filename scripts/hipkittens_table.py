#!/usr/bin/env python3
"""Build each shipped prompt example and known answer for AMD and print the table of docs/hipkittens.md.

Whole candidates take the way of `eval.py --build-only`; a kernel without a binding is compiled as device source alone.
HipKittens is that of scripts/install_hipkittens.py, or a checkout that HIPKITTENS_CDNA3_ROOT or HIPKITTENS_CDNA4_ROOT
names for its dialect.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "unit" / "prompts")]

from prompts_examples import built, kernels_of, shipped_examples  # noqa: E402
from support.kittens import checkout, kittens_root  # noqa: E402

from hkbench.errors import HkbenchError  # noqa: E402
from hkbench.problems import SHIPPED, load_problem  # noqa: E402
from hkbench.records import BackendName, KernelResources, Problem, Stage, Status  # noqa: E402
from hkbench.toolchain.diagnostics import first_error  # noqa: E402
from hkbench.toolchain.hip import ARCHITECTURES, find_hip  # noqa: E402
from hkbench.toolchain.hipkittens import WITH_CARD, Checkout, Dialect, dialect_for, read_checkout  # noqa: E402

ANSWERS = ROOT / "examples" / "hipkittens"
BEGIN, END = "<!-- scripts/hipkittens_table.py -->", "<!-- end of the table -->"
HEADER = "| code | kernel | arch | compiles | VGPRs | AGPRs | waves per SIMD | spills | scratch | seconds |"


@dataclass(frozen=True)
class Job:
    """One text to build for one architecture."""

    name: str
    backend: BackendName
    arch: str
    source: str
    whole: bool  #: a candidate's file; else a kernel without a binding


@dataclass(frozen=True)
class Row:
    """What came of it."""

    job: Job
    error: str | None
    kernels: tuple[KernelResources, ...]
    seconds: float

    @property
    def good(self) -> bool:
        return self.error is None and all(
            (kernel.vgpr_spills, kernel.sgpr_spills, kernel.scratch_bytes_per_lane) == (0, 0, 0)
            for kernel in self.kernels
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, epilog="Exit code: 0 all compile and nothing spills, 1 not.")
    parser.add_argument("--only", default="", metavar="TEXT", help="codes whose name contains it")
    parser.add_argument("--into", type=Path, metavar="FILE", help=f"replace what stands between {BEGIN} and its end")
    arguments = parser.parse_args()
    try:
        trees = {dialect: read_checkout(kittens_root(dialect)) for dialect in WITH_CARD}
    except HkbenchError as error:
        parser.error(str(error))
    if arguments.into and not has_place(arguments.into):
        parser.error(f"{arguments.into} has no place for the table: put {BEGIN} and {END} there, a line each")
    jobs = [job for job in (*examples(), *answers()) if arguments.only in job.name]
    rows = []
    with tempfile.TemporaryDirectory() as work, ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for row in pool.map(build, jobs, (Path(work) / str(number) for number in range(len(jobs)))):
            rows.append(row)
            print("\n".join(cells(rows[-1])), file=sys.stderr, flush=True)
    lines = [line for row in rows for line in cells(row)]
    text = "\n".join([conditions(trees), "", HEADER, "|" + " --- |" * 10, *lines])
    if arguments.into:
        replace(arguments.into, text)
    else:
        print(text)
    return 0 if all(row.good for row in rows) else 1


def examples() -> Iterator[Job]:
    """Yield the blocks of the prompts for HIP, each for both architectures, and for HipKittens, each for its own."""
    for example in shipped_examples():
        if example.backend not in ("hip", "hipkittens"):
            continue
        name = f"prompts: {example.name.lstrip('_')}"
        for arch in (example.dialect.arch,) if example.dialect else ARCHITECTURES:
            yield Job(name, example.backend, arch, example.text, whole=example.language == "python")


def answers() -> Iterator[Job]:
    for path in sorted(ANSWERS.glob("cdna*/*.py"), key=lambda path: (int(path.stem.split("_")[0]), path.parent.name)):
        yield Job(path.stem, "hipkittens", Dialect(path.parent.name).arch, path.read_text(), whole=True)


def build(job: Job, folder: Path) -> Row:
    if job.backend == "hip":
        return build_whole(job, folder)
    with checkout(dialect_for(job.arch)):
        if job.whole:
            return build_whole(job, folder)
        folder.mkdir()
        kernels, done = kernels_of(job.source, dialect_for(job.arch), folder)
        error = None if done.returncode == 0 else first_error(done.output) or "not built"
        return Row(job, error, kernels, done.seconds)


def build_whole(job: Job, folder: Path) -> Row:
    verdict = built(job.source, job.backend, job.arch, folder, problem_of(job))
    error = None if verdict.status is Status.COMPILED else verdict.failure.message if verdict.failure else "not built"
    seconds = sum(stage.seconds for stage in verdict.stages if stage.stage is Stage.BUILD)
    return Row(job, error, verdict.resources, seconds)


def problem_of(job: Job) -> Problem:
    """Return the problem that an answer is for; an example has none, and build-only does not look into it."""
    own = SHIPPED / "level1" / f"{job.name}.py"
    return load_problem(own if own.is_file() else next(iter(sorted((SHIPPED / "level1").glob("*.py")))))


def cells(row: Row) -> list[str]:
    start = f"| {row.job.name} |"
    if row.error is not None:
        return [f"{start} | {row.job.arch} | no: {row.error.splitlines()[0]} | | | | | | {row.seconds:.1f} |"]
    whole = "yes" if row.job.whole else "yes (kernel only)"
    return [
        f"{start} `{kernel.name.partition('(')[0]}` | {row.job.arch} | {whole} | {kernel.vgprs} | {kernel.agprs} | "
        f"{kernel.occupancy_waves_per_simd} | {(kernel.vgpr_spills or 0) + (kernel.sgpr_spills or 0)} | "
        f"{kernel.scratch_bytes_per_lane} | {row.seconds:.1f} |"
        for kernel in row.kernels
    ]


def conditions(trees: Mapping[Dialect, Checkout]) -> str:
    """Say with what it was built: compiler, headers, the trees."""
    hip = find_hip()
    said = [f"{tree.versions(dialect)['hipkittens']} ({tree.content[:12]})" for dialect, tree in trees.items()]
    return f"{hip.compiler}, HIP {hip.version}; HipKittens (start of the sha256 of include/): {', '.join(said)}."


def has_place(file: Path) -> bool:
    text = file.read_text(encoding="utf-8") if file.is_file() else ""
    return BEGIN in text and END in text.partition(BEGIN)[2]


def replace(file: Path, text: str) -> None:
    before, _, rest = file.read_text(encoding="utf-8").partition(BEGIN)
    file.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
