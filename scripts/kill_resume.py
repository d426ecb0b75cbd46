#!/usr/bin/env python3
"""Kill the batch with `kill -9` at random moments and resume it: is anything lost, or asked for twice?

First the batch runs once undisturbed. Then it is begun in fresh folders, killed some times in each (--per-run) at
moments drawn from the length of the undisturbed run, begun again after each kill, and left to finish after the last.
A line of the table is one kill:

    at          seconds from the start of the killed process
    asked       model calls under way, whose replies were not on disk yet: they have to be asked for again
    judging     evaluations under way: they are done again
    replies     on disk at that moment
    verdicts    on disk at that moment
    repeated    replies on disk that were asked for again later (has to be 0)
    changed     verdicts on disk that were another in the end (has to be 0)
    left        processes of the killed run that lived on for more than 15 s (has to be 0)

and after each run, whether its verdicts (status and failure kind of every sample) are those of the undisturbed one.
A kernel whose speed is close to the baseline's may be `fast` in one run and `slow` in another on a busy machine; such
a difference is listed as what it is. Exit code: 0 nothing lost, nothing repeated, same verdicts; 1 otherwise.

    .venv/bin/python scripts/kill_resume.py --kills 20 --results /tmp/kills
    .venv/bin/python scripts/kill_resume.py --kills 3 --problems 1 2 --results /tmp/kills -- --timing-runs 10
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import psutil  # noqa: E402

from hkbench.records import GenerationStarted, SampleKey, StageEntered  # noqa: E402
from hkbench.store.events import CorruptEntry, read_events  # noqa: E402
from hkbench.store.layout import RunPaths  # noqa: E402
from hkbench.store.reader import SampleView, read_run  # noqa: E402

PATIENCE = 15.0


@dataclass
class Kill:
    """What stood in the folder when the batch was killed, and what became of it."""

    run: int
    at: float
    asked: Counter[SampleKey]
    replies: set[SampleKey]
    verdicts: dict[SampleKey, bytes]
    judging: set[SampleKey]
    left: int
    repeated: int = 0
    changed: int = 0

    def line(self) -> str:
        lost = sum(key not in self.replies for key in self.asked)
        return (
            f"{self.run:>3}  {self.at:>7.1f}  {lost:>5}  {len(self.judging):>7}  {len(self.replies):>7}  "
            f"{len(self.verdicts):>8}  {self.repeated:>8}  {self.changed:>7}  {self.left:>4}"
        )


HEADER = "run       at  asked  judging  replies  verdicts  repeated  changed  left"


def main() -> int:
    options = parse()
    words = [sys.executable, str(ROOT / "run_batch.py"), *map(str, options.problems), "--device", options.device]
    words += ["--replay", str(options.replay), "--samples", str(options.samples), *options.more]
    options.results.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    undisturbed = options.results / "undisturbed"
    finish(words, undisturbed)
    seconds = time.monotonic() - begun
    expected = outcome(undisturbed)
    print(f"undisturbed: {len(expected)} samples in {seconds:.0f} s; seed {options.seed}", flush=True)
    moments = random.Random(options.seed)
    kills: list[Kill] = []
    good = True
    number = 0
    while len(kills) < options.kills:
        number += 1
        results = options.results / f"run_{number}"
        here = min(options.per_run, options.kills - len(kills))
        done = [kill(words, results, number, moments.uniform(0, seconds / here)) for _ in range(here)]
        finish(words, results)
        for one in done:
            settle(one, results)
        kills += done
        good = tell(number, done, expected, outcome(results)) and good
    bad = sum(bool(one.repeated or one.changed or one.left) for one in kills)
    print(
        f"{len(kills)} kills, {bad} of them with something lost or repeated; verdicts {'equal' if good else 'DIFFER'}"
    )
    return 0 if good and not bad else 1


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, metavar="N")
    parser.add_argument("--per-run", type=int, default=4, metavar="N", help="kills of one run (default: 4)")
    parser.add_argument("--problems", type=int, nargs=2, default=[1, 8], metavar=("FIRST", "LAST"))
    parser.add_argument("--replay", type=Path, default=ROOT / "examples" / "replies" / "reflect.toml")
    parser.add_argument("--results", type=Path, required=True, metavar="DIR", help="a new folder for all the runs")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--samples", type=int, default=2, metavar="N")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("more", nargs="*", help="more arguments of run_batch.py, after --")
    options = parser.parse_args()
    if options.seed is None:
        options.seed = random.randrange(1 << 32)
    if options.results.exists() and any(options.results.iterdir()):
        parser.error(f"{options.results} is not empty")
    return options


def begin(words: list[str], results: Path) -> subprocess.Popen[bytes]:
    with results.with_suffix(".log").open("ab") as log:
        return subprocess.Popen([*words, "--results", str(results)], stdout=log, stderr=log)


def finish(words: list[str], results: Path) -> None:
    """Run, or resume, to the end."""
    code = begin(words, results).wait()
    if code != 0:
        sys.exit(f"the batch ended with {code}; see {results.with_suffix('.log')}")


def kill(words: list[str], results: Path, run: int, at: float) -> Kill:
    """Begin or resume, kill `at` seconds later, and take down what is there."""
    process = begin(words, results)
    deadline = time.monotonic() + at
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    family = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    process.kill()
    process.wait()
    _, alive = psutil.wait_procs(family, timeout=PATIENCE)
    asked, judged = Counter[SampleKey](), set[SampleKey]()
    for event in read_events(RunPaths(results).journal):
        if isinstance(event, CorruptEntry):
            continue
        if isinstance(event, GenerationStarted):
            asked[event.key] += 1
        elif isinstance(event, StageEntered):
            judged.add(event.key)
    replies = {key_of(path) for path in results.glob("*/attempt_*/sample_*/response.txt")}
    verdicts = {key_of(path): path.read_bytes() for path in results.glob("*/attempt_*/sample_*/result.json")}
    return Kill(run, at, asked, replies, verdicts, judged - set(verdicts), len(alive))


def key_of(path: Path) -> SampleKey:
    problem, attempt, sample = path.parts[-4:-1]
    number = int(attempt.removeprefix("attempt_"))
    return SampleKey(problem=problem, attempt=number, sample=int(sample.removeprefix("sample_")))


def settle(one: Kill, results: Path) -> None:
    """Look back from the end of the run: was anything that stood there done again?"""
    last = Counter(
        event.key for event in read_events(RunPaths(results).journal) if isinstance(event, GenerationStarted)
    )
    one.repeated = sum(last[key] - one.asked[key] for key in one.replies)
    for key, before in one.verdicts.items():
        now = RunPaths(results).problem(key.problem).sample(key.attempt, key.sample).result
        one.changed += now.read_bytes() != before


def outcome(results: Path) -> dict[SampleKey, str]:
    """Return status and failure kind of every sample."""
    run = read_run(RunPaths(results))
    return {sample.key: describe(sample) for problem in run.problems for sample in problem.samples}


def describe(sample: SampleView) -> str:
    if sample.status is None:
        return "not judged"
    return sample.failure.kind if sample.failure is not None else sample.status


def tell(number: int, kills: list[Kill], expected: dict[SampleKey, str], found: dict[SampleKey, str]) -> bool:
    """Print a run's part of the table; whether its verdicts are the expected ones."""
    if number == 1:
        print(HEADER)
    for one in kills:
        print(one.line())
    different = [key for key in expected.keys() | found.keys() if expected.get(key) != found.get(key)]
    print(f"     run {number}: " + ("same verdicts" if not different else f"{len(different)} verdicts differ"))
    for key in sorted(different, key=str):
        name = f"{key.problem} attempt {key.attempt} sample {key.sample}"
        print(f"     {name}: {expected.get(key, 'not asked')} -> {found.get(key, 'not asked')}")
    sys.stdout.flush()
    return not different


if __name__ == "__main__":
    sys.exit(main())
