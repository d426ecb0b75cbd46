"""Turns what went wrong into a `Failure`: stage, kind, and the useful part of the message."""

from __future__ import annotations

import re
from itertools import islice

from hkbench.judge.link import RunnerEnd
from hkbench.records import Failure, FailureKind, Stage
from hkbench.runner.wire import Message
from hkbench.toolchain.diagnostics import errors, first_error_line, without_commands

DETAIL_LIMIT = 8000
MESSAGE_LIMIT = 2000

_DEVICE_FAULT = re.compile(
    r"(?:CUDA|HIP) error: (?:an illegal memory access|misaligned address|unspecified launch failure|device-side assert"
    r"|an illegal instruction|invalid (?:device )?program counter|out of range|.*hipErrorIllegalAddress)",
    re.IGNORECASE,
)
_OUT_OF_MEMORY = re.compile(r"out of memory|can't allocate memory|cannot allocate memory|bad_alloc", re.IGNORECASE)


class CandidateFailed(Exception):
    """Ends an evaluation with a verdict."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def failed(
    stage: Stage, kind: FailureKind, message: str, detail: str | None = None, trial: int | None = None
) -> CandidateFailed:
    detail = None if detail is None else _plain(detail)
    return CandidateFailed(
        Failure(stage=stage, kind=kind, message=_plain(message)[:MESSAGE_LIMIT], detail=detail, trial=trial)
    )


def _plain(text: str) -> str:
    """Without lone surrogates, which a candidate's text may hold and UTF-8 cannot."""
    return text.encode(errors="replace").decode()


def _first_errors(output: str) -> str:
    """The first three errors, each cut to its cause and the candidate's own line."""
    found = "\n\n".join(islice(errors(output), 3))
    return found[:DETAIL_LIMIT] or without_commands(output, DETAIL_LIMIT)


def from_exception(stage: Stage, answer: Message, trial: int | None = None) -> CandidateFailed:
    """An exception that the runner reported while it loaded (`LOAD`) or ran (`RUN`) the candidate."""
    name = str(answer.get("error", "Exception"))
    message = str(answer.get("message", ""))
    trace = str(answer.get("traceback", ""))
    if "Error building extension" in message or name.endswith("CompilationError"):
        first = first_error_line(message)
        if first is None:
            first = next((line for line in message.splitlines()[1:] if line.strip()), message[:500])
        return failed(Stage.BUILD, FailureKind.BUILD_ERROR, first, _first_errors(message))
    headline = f"{name.removeprefix('builtins.')}: {_first_line(message)}"
    if answer.get("syntax"):
        return failed(Stage.LOAD, FailureKind.SYNTAX_ERROR, headline, _tail(trace))
    if "OutOfMemory" in name or name.endswith("MemoryError") or _OUT_OF_MEMORY.search(message):
        return failed(stage, FailureKind.OUT_OF_MEMORY, headline, _tail(trace), trial)
    if _DEVICE_FAULT.search(message):
        return failed(stage, FailureKind.CRASH, headline, _tail(trace), trial)
    kind = FailureKind.LOAD_ERROR if stage is Stage.LOAD else FailureKind.RUNTIME_ERROR
    return failed(stage, kind, headline, _tail(trace), trial)


def from_end(stage: Stage, end: RunnerEnd, memory_bytes: int, trial: int | None = None) -> CandidateFailed:
    """A runner that went away without an answer."""
    output = end.output[-DETAIL_LIMIT:] or None
    if end.reason == "memory":
        message = f"the process tree used more than its {memory_bytes / 2**30:.1f} GiB of memory"
        return failed(stage, FailureKind.OUT_OF_MEMORY, message, output, trial)
    if end.reason in _LIMITS:
        return failed(stage, FailureKind.LIMIT, _LIMITS[end.reason], output, trial)
    if end.signal is not None:
        crash = Failure(
            stage=stage,
            kind=FailureKind.CRASH,
            message=f"the process died by {end.signal} ({_SIGNALS.get(end.signal, 'signal')})",
            detail=output,
            signal=end.signal,
            trial=trial,
        )
        return CandidateFailed(crash)
    code = "" if end.exit_code is None else f" with exit code {end.exit_code}"
    return failed(stage, FailureKind.CRASH, f"the process left{code} without an answer", output, trial)


#: By the guard's reason. Memory is not among them: a kind of failure of its own.
_LIMITS = {
    "processes": "the candidate started too many processes",
    "disk": "the candidate wrote more to its folder than it may",
    "cpu": "the candidate used more CPU time than it may",
    "output": "the candidate printed more than it may",
}
_SIGNALS = {
    "SIGSEGV": "memory access outside of what is mapped",
    "SIGBUS": "memory access that is misaligned or past the end of a mapping",
    "SIGABRT": "abort, often a failed assertion or heap corruption",
    "SIGFPE": "integer division by zero",
    "SIGILL": "illegal instruction",
}


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")[:500]


def _tail(trace: str, limit: int = DETAIL_LIMIT) -> str:
    """The traceback from the candidate's own frames on."""
    start = trace.find('code.py"')
    start = trace.rfind("\n", 0, start) + 1 if start >= 0 else 0
    return trace[start:][-limit:]
