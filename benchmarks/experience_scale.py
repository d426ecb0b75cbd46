"""A large experience: its size, how long look-ups take, eight writers at once, writers that are killed."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.synchronize import Barrier
from pathlib import Path

from benchmarks import experience_agents as agents
from hkbench.experience.ask import Experience
from hkbench.experience.database import Database
from hkbench.experience.facts import Traits
from hkbench.experience.fingerprint import fingerprint
from hkbench.experience.gains import move_gains
from hkbench.experience.rows import ErrorRow, KernelRow, RemedyRow, Row, RunRows, SampleRow
from hkbench.records import DeviceFacts, DeviceKind, EvaluationSettings, HintKind

SAMPLES_OF_RUN = 500
PROBLEMS_OF_RUN = 50
WRITERS = 8
KILLS = 10
ASKED = 40  #: look-ups of a kind
CODE = "x" * 6000  #: a kernel
MOVES = [f"move_{number}" for number in range(12)]
WAITS = ("gmem", "compute", "overlap", None)


def run_of(number: int, known: Sequence[agents.Mistake], samples: int = SAMPLES_OF_RUN) -> RunRows:
    """Return the rows of a run: half of its samples fail, and each failure is followed by four hints."""
    rng = random.Random(number)
    name = f"{number:016}"
    parts: list[Row] = []
    errors: dict[str, ErrorRow] = {}
    for place in range(samples):
        problem, attempt = f"{place % PROBLEMS_OF_RUN}_P", place // PROBLEMS_OF_RUN + 1
        mistake = agents.drawn(known, rng) if rng.random() < 0.5 else None
        failure = mistake.failure(rng) if mistake is not None else None
        mark = fingerprint(failure) if failure is not None else None
        speedup = rng.lognormvariate(0.2, 0.5) if failure is None else None
        parts.append(
            SampleRow(
                run=name, problem=problem, attempt=attempt, sample=1, model="m", status="fast",
                kind=failure.kind if failure else None, stage=failure.stage if failure else None,
                fingerprint=mark.digest if mark else None, symbol=mark.symbol if mark else None, speedup=speedup,
                low=speedup, high=speedup, unsettled=0, build_seconds=1.0, seconds=2.0, trials=5, passed=5, tokens=4000,
                cost=0.01, sha256=f"{number}{place}", parent_attempt=1, parent_sample=1, move=rng.choice(MOVES),
                bottleneck=rng.choice(WAITS), log_gain=rng.gauss(0.0, 0.1) if speedup else None, gained=0,
            )
        )  # fmt: skip
        if failure is not None and mark is not None and mistake is not None:
            errors[mark.digest] = ErrorRow(name, mark.digest, failure.kind, failure.stage, mark.symbol, mark.text)
            hints = [(HintKind.RULE.value, f"a hint of the prompts, {n}: " + "y" * 200) for n in range(3)]
            hints.append(
                ("change", f"`{mistake.line.strip()}` became `{mistake.mended.strip()}` ({rng.randrange(50)})")
            )
            parts += [
                RemedyRow(name, problem, agents.BACKEND, mark.digest, mark.symbol, kind, text, attempt, 1, 1, 1)
                for kind, text in hints
            ]
    for place in range(PROBLEMS_OF_RUN):
        problem = f"{place}_P"
        parts.append(agents.facts_row(name, problem))
        parts.append(KernelRow(name, problem, 1, 1, "0" * 64, "fast", 1.5, 1.4, 1.6, 0, CODE))
    run = agents.rows_of(name, ()).run
    return RunRows(run, (*parts, *errors.values()))


def scale(folder: Path, samples: int) -> Iterator[str]:
    """Yield what was measured, a line each."""
    path, known = folder / "large.db", agents.mistakes(0)
    runs = samples // SAMPLES_OF_RUN
    made = [run_of(number, known) for number in range(runs)]
    begun = time.perf_counter()
    with Database(path, create=True) as database:
        for run in made:
            database.add(run)
        took = time.perf_counter() - begun
        rows = {table: database.rows(f"SELECT COUNT(*) FROM {table}")[0][0] for table in ("sample", "remedy")}
        size = database.facts().bytes
    yield f"{rows['sample']:,} samples, {rows['remedy']:,} remedies, {runs} runs: {size / 1e6:.0f} MB"
    yield f"{took:.1f} s for all, {1e3 * took / runs:.0f} ms a run"
    yield from look_ups(path, known)
    yield writers(folder / "writers.db", made)
    yield kills(folder / "killed.db", made)


def look_ups(path: Path, known: Sequence[agents.Mistake]) -> Iterator[str]:
    """Ask as runs do, without and with problems held out."""
    for held in (None, "^7_"):
        asked = Experience(path, held)
        for name, ask in _asks(asked, [mistake for mistake in known if not mistake.silent]).items():
            times = sorted(_seconds(ask) for _ in range(ASKED))
            said = "" if held is None else ", some held out"
            middle, cpu = (f"{1e3 * statistics.median(one):.2f}" for one in zip(*times, strict=True))
            yield f"{name}{said}: median {middle} ms, at most {1e3 * times[-1][0]:.2f} ms; {cpu} ms of CPU"
        asked.close()


def _asks(asked: Experience, spoken: Sequence[agents.Mistake]) -> dict[str, Callable[[], object]]:
    rng, problem = random.Random(0), agents.simulated_problem("9_P")
    device = DeviceFacts(kind=DeviceKind.ROCM, index=0, name="simulated", arch="gfx942")

    def remedies(mistake: agents.Mistake) -> object:
        return asked.remedies(problem, fingerprint(mistake.failure(rng)), agents.BACKEND)

    def kernel() -> object:
        traits = Traits(problem.sha256[:16], {}, "float32", 1)
        return asked.kernel(problem, traits, agents.BACKEND, device, EvaluationSettings())

    def pitfalls() -> object:
        asked._pitfalls.clear()  # else answered from what the same file said before
        return asked.pitfalls(problem, agents.BACKEND)

    return {
        "remedies, the commonest error": lambda: remedies(spoken[0]),
        "remedies, any error": lambda: remedies(rng.choice(spoken)),
        "kernel": kernel,
        "pitfalls, once a run": pitfalls,
        "moves, once a run": lambda: move_gains(asked.database, agents.BACKEND),
        "similar, by hand": lambda: asked.similar(problem, Traits("", {"matmul": 1}, "float32", 1)),
    }


def _seconds(ask: Callable[[], object]) -> tuple[float, float]:
    """Return the wall time and the CPU time of one question."""
    begun, cpu = time.perf_counter(), time.thread_time()
    ask()
    return time.perf_counter() - begun, time.thread_time() - cpu


def _write(path: Path, rows: Sequence[RunRows], begun: Barrier) -> None:
    begun.wait()
    with Database(path, create=True) as database:
        for run in rows:
            database.add(run)


def writers(path: Path, made: Sequence[RunRows]) -> str:
    """Let eight processes write at once into one new file."""
    context = multiprocessing.get_context("fork")
    begun = context.Barrier(WRITERS + 1)
    shares = [made[writer::WRITERS] for writer in range(WRITERS)]
    processes = [context.Process(target=_write, args=(path, share, begun)) for share in shares]
    for process in processes:
        process.start()
    begun.wait()
    start = time.perf_counter()
    for process in processes:
        process.join()
    took = time.perf_counter() - start
    failed = sum(process.exitcode != 0 for process in processes)
    with Database(path) as database:
        kept = len(database.run_ids())
        sound = database.rows("PRAGMA integrity_check") == [("ok",)]
    return f"{WRITERS} writers: {kept} of {len(made)} runs in {took:.1f} s, {failed} failed, sound: {sound}"


def _write_until_killed(path: Path, rows: Sequence[RunRows], told: int) -> None:
    with Database(path, create=True) as database:
        for run in rows:
            database.add(run)
            os.write(told, run.run.id.encode())  # committed


def kills(path: Path, made: Sequence[RunRows]) -> str:
    """Kill writers at random moments: what they said was written has to be there, whole."""
    rng, lost, torn, committed = random.Random(0), 0, 0, set[str]()
    for _ in range(KILLS):
        told, tell = os.pipe()
        rows = rng.sample(made, len(made))
        process = multiprocessing.get_context("fork").Process(target=_write_until_killed, args=(path, rows, tell))
        process.start()
        os.close(tell)
        time.sleep(rng.uniform(0.05, 0.6))
        assert process.pid is not None
        os.kill(process.pid, signal.SIGKILL)
        process.join()
        said = b""
        while part := os.read(told, 1 << 16):
            said += part
        os.close(told)
        committed |= {said[at : at + 16].decode() for at in range(0, len(said) - 15, 16)}
        if not path.exists():
            continue
        with Database(path, create=True) as database:
            kept = set(database.run_ids())
            lost += len(committed - kept)
            torn += database.rows("PRAGMA integrity_check") != [("ok",)]
    whole = {run.run.id: len(run.parts) + 1 for run in made}
    with Database(path) as database:
        parts = sum(len(database.content(name)) != whole[name] for name in database.run_ids())
    return f"{KILLS} kills: {len(committed)} runs committed, {lost} lost, {parts} in part, {torn} files damaged"
