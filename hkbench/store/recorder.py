"""Write a run folder, and find in it what a run before this one finished already."""

from __future__ import annotations

import errno
import json
import os
import shutil
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hkbench.errors import InputMissing, RunMismatch, UsageError
from hkbench.records import (
    AdviceKey,
    AdviceRead,
    AnyEvent,
    AttemptClosed,
    CallKey,
    Candidate,
    Extraction,
    ExtractionRule,
    Problem,
    Prompt,
    Reply,
    RunConfig,
    RunFacts,
    RunSources,
    SampleKey,
    Usage,
    Verdict,
)
from hkbench.shipped import batch_command
from hkbench.store.files import write_atomic
from hkbench.store.find import runs_below
from hkbench.store.layout import AdvicePaths, RunPaths, SamplePaths
from hkbench.store.lock import take
from hkbench.store.progress import progress_of
from hkbench.store.reader import RunFile, read_run_file, without_request
from hkbench.store.settings import differences


class Recorder:
    """The one writer of a run folder. Opening takes the folder's lock; `close` gives it back."""

    def __init__(self, paths: RunPaths, on_event: Callable[[AnyEvent], None]) -> None:
        self.paths = paths
        self._on_event = on_event
        refuse_strangers(paths)
        paths.root.mkdir(parents=True, exist_ok=True)
        self._lock = _lock(paths.lock)
        self._journal: int | None = None

    def begin(self, config: RunConfig, facts: RunFacts, sources: RunSources | None = None) -> bool:
        """Start the run, or resumes the one in the folder; return whether it resumes.

        A run without any reply, of a model or a judge, makes way for one with other settings. Problems, samples and
        attempts may be added to a run; the service's address and prices take the place of the recorded ones. All other
        facts stay those of the beginning.

        Raises:
            RunMismatch: the folder's run has other settings; the message lists the differences.
        """
        known = read_run_file(self.paths) if self.paths.run.exists() else None
        if known is not None and makes_way(self.paths, known.config, config):
            self._clear(known.config)
            known = None
        if known is None:
            self._write_run(RunFile(config=config, facts=facts, sources=sources))
        else:
            check_same(known.config, config, self.paths.root)
            self._sweep(config)
            now = _continued(known, config, facts, sources)
            if now != known:
                self._write_run(now)
        self._journal = _open_journal(self.paths.journal)
        return known is not None

    def _write_run(self, run: RunFile) -> None:
        write_atomic(self.paths.run, run.model_dump_json(indent=2) + "\n")

    def _clear(self, config: RunConfig) -> None:
        """Remove what a run wrote that never had a reply; run.json stays until the next one takes its place."""
        for name in config.problems:
            shutil.rmtree(self.paths.problem(name).root, ignore_errors=True)
        for path in self.paths.written:
            path.unlink(missing_ok=True)

    def _sweep(self, config: RunConfig) -> None:
        """Remove what a killed run was writing; nobody else writes into the problems' folders."""
        for name in config.problems:
            for path in self.paths.problem(name).root.rglob(".*.tmp"):
                path.unlink(missing_ok=True)

    def close(self) -> None:
        if self._journal is not None:
            os.fsync(self._journal)
            os.close(self._journal)
            self._journal = None
        os.close(self._lock)

    def event(self, event: AnyEvent) -> None:
        """Append one line, in one write, and tell the observers."""
        assert self._journal is not None
        line = event.model_dump_json().encode() + b"\n"
        if os.write(self._journal, line) != len(line):
            raise OSError(errno.ENOSPC, "the disk is full", str(self.paths.journal))
        self._on_event(event)

    def sample(self, key: SampleKey) -> SamplePaths:
        return self.paths.problem(key.problem).sample(key.attempt, key.sample)

    def save_reference(self, problem: Problem) -> None:
        """Keep the problem's file, so that the folder can be judged again without the problems it was made from."""
        path = self.paths.problem(problem.name).reference
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, problem.source)

    def prompt(self, problem: str, attempt: int) -> str | None:
        """Return the prompt that this attempt was begun with, if it was."""
        path = self.paths.problem(problem).prompt(attempt)
        return _text(path) if path.exists() else None

    def system(self, problem: str, attempt: int) -> str | None:
        """Return the system message that went before the prompt of this attempt, if one did."""
        path = self.paths.problem(problem).system(attempt)
        return _text(path) if path.exists() else None

    def save_prompt(self, problem: str, attempt: int, prompt: Prompt) -> None:
        paths = self.paths.problem(problem)
        paths.root.mkdir(parents=True, exist_ok=True)
        if prompt.system is not None:  # before the prompt, by which a resume knows that both are there
            write_atomic(paths.system(attempt), prompt.system)
        write_atomic(paths.prompt(attempt), prompt.text)

    def save_search(self, problem: str, state: str) -> None:
        """Keep what a problem's search stands at, as JSON."""
        write_atomic(self.paths.problem(problem).search, state)

    def known_kernel(self, problem: str) -> str | None:
        """Return the code of the kernel that was recalled for a problem, if one was."""
        path = self.paths.problem(problem).known_kernel
        return _text(path) if path.exists() else None

    def save_known_kernel(self, problem: str, code: str) -> None:
        write_atomic(self.paths.problem(problem).known_kernel, code)

    def question(self, key: AdviceKey) -> str | None:
        """Return what was asked in this call, if it was."""
        path = self._call(key).prompt
        return _text(path) if path.exists() else None

    def save_question(self, key: AdviceKey, prompt: Prompt) -> None:
        path = self._call(key).prompt
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, prompt.text)

    def save_advice(self, key: AdviceKey, read: AdviceRead) -> None:
        write_atomic(self._call(key).advice, read.model_dump_json(indent=2) + "\n")

    def _call(self, key: AdviceKey) -> AdvicePaths:
        return self.paths.problem(key.problem).advice(key.attempt, key.call, key.role)

    def _exchange(self, key: CallKey) -> SamplePaths | AdvicePaths:
        return self.sample(key) if isinstance(key, SampleKey) else self._call(key)

    def reply(self, key: CallKey, model: str) -> Reply | None:
        """Return the reply that was paid for already, if there is one."""
        paths = self._exchange(key)
        if not paths.response.exists():
            return None
        text = _text(paths.response)
        try:
            exchange = json.loads(_text(paths.exchange))
            return Reply.model_validate(without_request(exchange) | {"text": text})
        except (OSError, ValueError, TypeError):
            # The run was cut between the two files, or the second is damaged: the text is what was paid for, and
            # its usage is not known.
            return Reply(text=text, model=model, usage=Usage())

    def save_reply(self, key: CallKey, reply: Reply, request: dict[str, Any] | None = None) -> None:
        """Save the reply, its text first: it cannot be had again for nothing. `request` says what was sent."""
        paths = self._exchange(key)
        paths.root.mkdir(parents=True, exist_ok=True)
        write_atomic(paths.response, reply.text)
        exchange = reply.model_dump(mode="json", exclude={"text"})
        if request is not None:
            exchange["request"] = request
        write_atomic(paths.exchange, json.dumps(exchange, indent=2) + "\n")

    def extraction(self, key: SampleKey) -> Extraction | None:
        """Return what was found in the reply before, with the candidate as it lies in the folder."""
        paths = self.sample(key)
        try:
            found = json.loads(_text(paths.extraction))
            source = None if found["rule"] == ExtractionRule.NONE else _text(paths.code)
            return Extraction.model_validate(found | {"source": source})
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def save_extraction(self, key: SampleKey, extraction: Extraction, candidate: Candidate | None) -> None:
        paths = self.sample(key)
        paths.root.mkdir(parents=True, exist_ok=True)  # of a proposed candidate there is no reply
        write_atomic(paths.extraction, extraction.model_dump_json(indent=2, exclude={"source"}) + "\n")
        if candidate is not None:
            write_atomic(paths.code, candidate.source)

    def verdict(self, key: SampleKey, candidate_sha256: str | None) -> Verdict | None:
        """Return the verdict on this very candidate, if it was reached already."""
        try:
            verdict = Verdict.model_validate_json(_text(self.sample(key).result))
        except (OSError, ValidationError):
            return None
        return verdict if verdict.conditions.candidate_sha256 == candidate_sha256 else None

    def save_verdict(self, key: SampleKey, verdict: Verdict) -> None:
        write_atomic(self.sample(key).result, verdict.model_dump_json(indent=2) + "\n")

    def save_assembly(self, key: SampleKey, text: str) -> None:
        write_atomic(self.sample(key).assembly, text)

    def close_attempt(self, best: SampleKey, verdict: Verdict) -> None:
        """Put the best sample of an attempt where people look first, `code_K.py`, and tell of its end."""
        problem, source = self.paths.problem(best.problem), self.sample(best)
        _copy(source.code, problem.code(best.attempt))
        _copy(source.result, problem.result(best.attempt))
        _copy(source.response, problem.response(best.attempt))
        self.event(AttemptClosed.of(best, verdict))

    def copy_best(self, key: SampleKey) -> None:
        """Put the best sample of a problem where people look first, `best_code.py`, with its prompt."""
        problem, source = self.paths.problem(key.problem), self.sample(key)
        _copy(source.code, problem.best_code)
        _copy(source.result, problem.best_result)
        _copy(problem.prompt(key.attempt), problem.best_prompt)
        _copy(problem.system(key.attempt), problem.best_system)


def _copy(origin: Path, target: Path) -> None:
    if origin.exists():
        write_atomic(target, _text(origin))


def refuse_strangers(paths: RunPaths) -> None:
    """Refuse a folder that holds other things, and a file; nothing is written there.

    Raises:
        UsageError: the folder holds other runs, or anything else.
        InputMissing: it is not a folder.
    """
    if paths.run.exists() or not paths.root.exists():
        return
    if not paths.root.is_dir():
        raise InputMissing(f"{paths.root} is not a folder: name another folder with --results")
    # A run that was killed in its first moment leaves its lock, a temporary file and nothing else.
    strangers = sorted(
        path.name
        for path in paths.root.iterdir()
        if path.name != paths.lock.name and not (path.name.startswith(".") and path.name.endswith(".tmp"))
    )
    runs = runs_below(paths.root) if strangers else []
    if runs:
        raise UsageError(
            f"{paths.root} holds {len(runs)} run{'s' if len(runs) > 1 else ''} in folders of their own ({runs[0]}): "
            f"name such a folder to resume its run, or a new one for another run, as {paths.root / 'NAME'}"
        )
    if strangers:
        raise UsageError(
            f"{paths.root} is not empty and holds no run (it has {strangers[0]}): "
            "name an empty or new folder with --results"
        )


def makes_way(paths: RunPaths, before: RunConfig, now: RunConfig) -> bool:
    """Return whether the folder's run has other settings than `now` and no reply, so nothing worth keeping.

    The usual origin is a misspelt model or a service that was not there.
    """
    return bool(differences(before, now).refused) and not progress_of(paths, before).answered


def check_same(before: RunConfig, now: RunConfig, root: Path, unknown: Collection[str] = ()) -> None:
    """Raise RunMismatch with a line for each setting that makes another experiment of the run in `root`.

    Settings named in `unknown` count as the same.
    """
    found = differences(before, now, unknown)
    if found.refused:
        raise RunMismatch(
            f"{root} holds a run with other settings:\n"
            + "".join(f"  {line}\n" for line in (*found.refused, *found.added))
            + f"To resume it with its own settings: {batch_command()} --resume {root}\n"
            "To begin another run: leave out --results, or name another folder with it"
        )


def _continued(known: RunFile, config: RunConfig, facts: RunFacts, sources: RunSources | None) -> RunFile:
    """Return run.json for a session that goes on with a run; equal to `known` where nothing is added."""
    named = {"price": facts.price, "judge_price": facts.judge_price}
    update: dict[str, Any] = {name: price for name, price in named.items() if price is not None}
    if known.facts.weak is not None and facts.weak is not None:
        added = {name: weak for name, weak in facts.weak.items() if name not in known.config.problems}
        update["weak"] = known.facts.weak | added
    grown = (config.samples, config.attempts) != (known.config.samples, known.config.attempts)
    return RunFile(
        config=config,
        facts=known.facts.model_copy(update=update),
        sources=sources or known.sources,
        extended=time.time() if grown else known.extended,
    )


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", errors="replace")


def _open_journal(path: Path) -> int:
    """Open the journal to append; a line that a crash cut is ended first, so that it spoils no other."""
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    size = os.fstat(fd).st_size
    if size and os.pread(fd, 1, size - 1) != b"\n":
        os.write(fd, b"\n")
    return fd


def _lock(path: Path) -> int:
    descriptor = take(path)
    if descriptor is None:
        raise UsageError(
            f"{path.parent} is in use by another hkbench; wait for it, or name another folder with --results"
        )
    os.utime(descriptor)  # when the run was begun or resumed last, for find.py
    return descriptor
