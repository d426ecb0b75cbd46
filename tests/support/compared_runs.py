"""Run folders to compare: each problem given by its speed-ups."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from support.run_folder import RunFolder, correct, incorrect, run_config

from hkbench.records import Failure, FailureKind, Stage, Usage

EVIL = "<script>document.title = 'owned'</script>"
Speeds = Sequence[float | None]


def compared_run(root: Path, speeds: Speeds, *, hashes: Sequence[str] = (), **settings: object) -> RunFolder:
    """A finished run of a problem for each speed-up (`None`: not correct), of two samples, one of which fails."""
    names = tuple(f"{n}_P" for n in range(1, len(speeds) + 1))
    config = run_config(names, samples=2, attempts=1).model_copy(update=settings)
    if hashes:
        config = config.model_copy(update={"problem_hashes": tuple(hashes)})
    run = RunFolder(root, config)
    run.start()
    for name, speed in zip(names, speeds, strict=True):
        run.begin(name)
        failure = Failure(stage=Stage.RUN, kind=FailureKind.CRASH, message=f"died {EVIL}")
        crash = incorrect(name).model_copy(update={"failure": failure})
        run.sample(name, 1, 1, crash if speed is None else correct(name, speed), Usage(input=100, output=50))
        run.sample(name, 1, 2, incorrect(name), Usage(input=100, output=70))
        run.end(name, solved=speed is not None and speed >= 1.0)
    run.close()
    return run
