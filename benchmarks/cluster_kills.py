#!/usr/bin/env python3
"""Real kills on a Ray cluster of this machine, while a batch of recorded replies is judged there.

    python benchmarks/cluster_kills.py --kills 50 --json kills.json

At random moments the process of a card is killed, or a node with all of its processes (it is started again), or the
controller, whose command is then given again. When a batch is complete, the next one begins, until so many kills were
made. All is held against what the candidates are written to be: a verdict that a kill caused is counted as false.

Exit code: 0 each sample got exactly one verdict, the right one, and each reply was asked for once; 1 not.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support import doors  # noqa: E402
from support.ray_nodes import RayNodes, ray_nodes  # noqa: E402

from hkbench.records import (  # noqa: E402
    AnyEvent,
    CardFailed,
    EvaluationFailed,
    GenerationStarted,
    ReplyReceived,
    RunClosed,
    StageEntered,
    Status,
    VerdictReached,
)
from hkbench.store.layout import RunPaths  # noqa: E402

KINDS = {"process": 6, "node": 3, "controller": 1}  #: how often each is drawn, of ten
PROBLEMS = 60
SAMPLES = 3
RIGHT = {2: Status.INCORRECT, 3: Status.INCORRECT}  #: by sample; the others are correct, whatever their times


@dataclass
class Figures:
    nodes: int
    kills: Counter[str] = field(default_factory=Counter)
    batches: int = 0
    seconds: float = 0.0
    verdicts: int = 0
    lost: int = 0  #: samples of complete batches without a verdict
    doubled: int = 0  #: with several
    false: int = 0  #: verdicts that the candidate is not written to get
    paid_twice: int = 0  #: replies that were asked for again though there was one
    card_failures: int = 0  #: that the journals tell of
    left_out: int = 0
    machine_errors: int = 0  #: evaluations that ended as an error of machines, which a resume tried again
    resumes: int = 0  #: after a kill of the controller, or such errors
    told_within: list[float] = field(default_factory=list)  #: seconds from a kill of a process or node to the journal


class Batch:
    """One batch and the process that controls it."""

    def __init__(self, folder: Path, address: str, token: dict[str, str]) -> None:
        self.results = folder / "results"
        self._token = token
        names = [f"{number}_Number{number}" for number in range(1, PROBLEMS + 1)]
        for addend, name in enumerate(names, start=1):
            doors.problem(folder / "problems", name, addend)
            for sample, code in enumerate((doors.fast(addend), doors.wrong(addend), doors.raising(name)), start=1):
                doors.reply(folder / "replies", name, 1, sample, doors.fenced(code))
        self._words = (
            *("1", PROBLEMS, "--problems", folder / "problems", "--replay", folder / "replies", "--device", "cpu"),
            *("--attempts", 1, "--samples", SAMPLES, "--concurrency", 12, *doors.QUICK),
            *("--results", self.results, "--cluster", address, "--display", "plain"),
        )
        self.log = (folder / "said.txt").open("a")
        self.begin()

    def begin(self) -> None:
        """Give the command, again where it was given before."""
        command = doors.command("run_batch", *self._words)
        environment = doors.environment(self._token)
        self.begun = time.time()
        self.process = subprocess.Popen(command, env=environment, stdout=self.log, stderr=self.log, cwd=ROOT)

    @property
    def measures(self) -> bool:
        """Whether candidates are on cards, so that a kill hits something."""
        session = [event for event in self.events() if event.time >= self.begun]
        lent = sum(isinstance(event, StageEntered) and event.device is not None for event in session)
        return lent >= 2 and not any(isinstance(event, RunClosed) for event in session)

    def events(self) -> list[AnyEvent]:
        return doors.events(self.results) if RunPaths(self.results).journal.exists() else []


def cards(nodes: psutil.Process) -> list[psutil.Process]:
    """Return the processes of cards on these nodes."""
    found = []
    for process in nodes.children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if process.name().startswith("ray::Card") or "ray::Card" in " ".join(process.cmdline()[:1]):
                found.append(process)
    return found


def strike(batch: Batch, cluster: RayNodes, names: list[str], kind: str, draw: random.Random) -> None:
    match kind:
        case "process":
            there = cards(psutil.Process(cluster.pid))
            if there:
                draw.choice(there).kill()
        case "node":
            name = draw.choice(names)
            cluster.remove(name)
            cluster.add(name)
        case _:
            batch.process.send_signal(signal.SIGKILL)
            batch.process.wait()


def run(options: argparse.Namespace) -> Figures:
    draw = random.Random(options.seed)
    figures = Figures(options.nodes)
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    names = [f"node-{number}" for number in range(options.nodes)]
    began = time.time()
    killed: list[tuple[float, str]] = []
    with tempfile.TemporaryDirectory(prefix="hkbench-") as root, ray_nodes(token, *names) as cluster:
        while figures.kills.total() < options.kills and time.time() - began < options.time_limit:
            folder = Path(root, f"batch-{figures.batches}")
            folder.mkdir()
            batch = Batch(folder, cluster.address, token)
            due = 0.0
            while batch.process.poll() != 0:
                if batch.process.poll() is not None:
                    figures.resumes += 1
                    batch.begin()
                if figures.kills.total() < options.kills and batch.measures:
                    due = due or time.time() + draw.uniform(0.2, 1.8) * options.every
                    if time.time() >= due:
                        kind = draw.choices(list(KINDS), list(KINDS.values()))[0]
                        killed.append((time.time(), kind))
                        strike(batch, cluster, names, kind, draw)
                        figures.kills[kind] += 1
                        due = 0.0
                        print(f"{time.time() - began:6.0f} s, kill {figures.kills.total()}: {kind}", flush=True)
                time.sleep(0.2)
            count(figures, batch.events())
            figures.batches += 1
            figures.told_within += told_within(killed, batch.events())
            print(f"{time.time() - began:6.0f} s, batch {figures.batches} is complete", flush=True)
    figures.seconds = time.time() - began
    return figures


def count(figures: Figures, events: list[AnyEvent]) -> None:
    """Add what a complete batch came to."""
    verdicts = [event for event in events if isinstance(event, VerdictReached)]
    each = Counter(event.key for event in verdicts)
    figures.verdicts += len(verdicts)
    figures.lost += PROBLEMS * SAMPLES - len(each)
    figures.doubled += sum(times > 1 for times in each.values())
    for verdict in verdicts:
        right = RIGHT.get(verdict.key.sample)
        figures.false += verdict.kind is not None if right is None else verdict.status is not right
    answered: set[object] = set()
    for event in events:
        if isinstance(event, ReplyReceived):
            answered.add(event.key)
        elif isinstance(event, GenerationStarted):
            figures.paid_twice += event.key in answered
        elif isinstance(event, EvaluationFailed):
            figures.machine_errors += 1
        elif isinstance(event, CardFailed):
            figures.card_failures += 1
            figures.left_out += event.left_out


def told_within(killed: list[tuple[float, str]], events: list[AnyEvent]) -> list[float]:
    """Return for each kill of a card after how long its journal told of a failure; several at once count as one."""
    failures = [event.time for event in events if isinstance(event, CardFailed)]
    begun = min((event.time for event in events), default=0.0)
    ended = max((event.time for event in events), default=0.0)
    marks = [(moment, kind) for moment, kind in killed if begun <= moment <= ended] + [(ended, "end")]
    found = []
    for (moment, kind), (after, _) in itertools.pairwise(marks):
        first = min((time for time in failures if moment <= time <= after), default=None)
        if kind != "controller" and first is not None:
            found.append(round(first - moment, 1))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50, metavar="N", help="default: 50")
    parser.add_argument("--every", type=float, default=8.0, metavar="S", help="seconds between kills (default: 8)")
    parser.add_argument("--nodes", type=int, default=3, metavar="N", help="of one core each (default: 3)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="default: 0")
    parser.add_argument("--time-limit", type=float, default=3600.0, metavar="S", help="begin no batch after S seconds")
    parser.add_argument("--json", type=Path, metavar="F", help="write the figures there")
    options = parser.parse_args()
    figures = run(options)
    text = json.dumps(vars(figures), indent=1)
    print(text)
    if options.json:
        options.json.write_text(text)
    return 1 if figures.lost or figures.doubled or figures.false or figures.paid_twice else 0


if __name__ == "__main__":
    sys.exit(main())
