"""Turn what went wrong into a `Failure`: stage, kind, and the useful part of the message."""

from __future__ import annotations

import re
from pathlib import Path

from hkbench.errors import DeviceUnavailable
from hkbench.evaluation.link import RunnerLink, RunnerTimeout
from hkbench.evaluation.runner_end import RunnerEnd
from hkbench.protocol.messages import Raised
from hkbench.records import EvaluationSettings, Failure, FailureKind, Stage
from hkbench.toolchain.causes import causes_text
from hkbench.toolchain.diagnostics import first_error_line, without_commands

DETAIL_LIMIT = 8000
MESSAGE_LIMIT = 2000
_LINE_SHOWN = 200  #: characters of a source line

_DEVICE_FAULT = re.compile(
    r"(?:CUDA|HIP) error: (?:an illegal memory access|misaligned address|unspecified launch failure|device-side assert"
    r"|an illegal instruction|invalid (?:device )?program counter|out of range|.*hipErrorIllegalAddress)",
    re.IGNORECASE,
)
_FRAME = re.compile(r'  File "(?P<path>[^"]*)", line \d+')
_PACKAGE = f"{Path(__file__).resolve().parents[1]}/"  #: the frames of the runner and the evaluator, which say nothing
OUT_OF_MEMORY = re.compile(r"out of memory|can't allocate memory|cannot allocate memory|bad_alloc", re.IGNORECASE)


class CandidateFailed(Exception):
    """End an evaluation with a verdict."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure

    def with_note(self, note: str) -> CandidateFailed:
        """Return the same with a note behind its message."""
        return CandidateFailed(self.failure.model_copy(update={"message": f"{self.failure.message} ({note})"}))


def failed(
    stage: Stage, kind: FailureKind, message: str, detail: str | None = None, trial: int | None = None
) -> CandidateFailed:
    detail = _plain(detail) if detail else None
    return CandidateFailed(
        Failure(stage=stage, kind=kind, message=_plain(message)[:MESSAGE_LIMIT], detail=detail, trial=trial)
    )


def _plain(text: str) -> str:
    """Replace lone surrogates, which a candidate's text may hold and UTF-8 cannot."""
    return text.encode(errors="replace").decode()


def from_timeout(error: RunnerTimeout, settings: EvaluationSettings, stage: Stage, late: bool) -> CandidateFailed:
    """Return the failure for an answer that did not come in time; `late`: the time of all of them together is over."""
    if error.building:
        message = f"the build did not end within {settings.build_timeout:g} s"
        return failed(Stage.BUILD, FailureKind.BUILD_TIMEOUT, message)
    if late:
        message = (
            f"trials and timed runs did not end within the {settings.evaluation_timeout:g} s of "
            "--evaluation-timeout, though no forward pass took longer than it may"
        )
        return failed(stage, FailureKind.TIMEOUT, message)
    limit = settings.load_timeout if stage is Stage.LOAD else settings.run_timeout
    what = "importing the candidate" if stage is Stage.LOAD else "one forward pass"
    return failed(stage, FailureKind.TIMEOUT, f"{what} did not end within {limit:g} s")


def from_exception(stage: Stage, raised: Raised, trial: int | None = None) -> CandidateFailed:
    """Return the failure for an exception that the runner reported while it loaded or ran the candidate."""
    name, message, trace = raised.error, raised.message, raised.traceback
    if name.endswith("CompilationError"):
        return failed(Stage.BUILD, FailureKind.BUILD_ERROR, _triton_error(message, trace), message)
    if "Error building extension" in message:
        first = first_error_line(message)
        if first is None:
            first = next((line for line in message.splitlines()[1:] if line.strip()), message[:500])
        detail = causes_text(message) or without_commands(message, DETAIL_LIMIT)
        return failed(Stage.BUILD, FailureKind.BUILD_ERROR, first, detail)
    first_line = next((line.strip() for line in message.splitlines() if line.strip()), "")[:500]
    headline = f"{name.removeprefix('builtins.')}: {first_line}"
    if raised.syntax:
        return failed(Stage.LOAD, FailureKind.SYNTAX_ERROR, headline, _tail(trace))
    if "OutOfMemory" in name or name.endswith("MemoryError") or OUT_OF_MEMORY.search(message):
        return failed(stage, FailureKind.OUT_OF_MEMORY, headline, _tail(trace), trial)
    if _DEVICE_FAULT.search(message):
        return failed(stage, FailureKind.CRASH, headline, _tail(trace), trial)
    kind = FailureKind.LOAD_ERROR if stage is Stage.LOAD else FailureKind.RUNTIME_ERROR
    return failed(stage, kind, headline, _tail(trace), trial)


def from_end(stage: Stage, end: RunnerEnd, memory_bytes: int) -> CandidateFailed:
    """Return the failure for a runner that went away without an answer."""
    output = end.output[-DETAIL_LIMIT:] or None
    if end.reason == "memory":
        message = f"the process tree used more than its {memory_bytes / 2**30:.1f} GiB of memory"
        return failed(stage, FailureKind.OUT_OF_MEMORY, message, output)
    if end.reason in _LIMITS:
        return failed(stage, FailureKind.LIMIT, _LIMITS[end.reason], output)
    if end.signal is not None:
        crash = Failure(
            stage=stage,
            kind=FailureKind.CRASH,
            message=f"the process died by {end.signal} ({_SIGNALS.get(end.signal, 'signal')})",
            detail=output,
            signal=end.signal,
        )
        return CandidateFailed(crash)
    code = "" if end.exit_code is None else f" with exit code {end.exit_code}"
    return failed(stage, FailureKind.CRASH, f"the process left{code} without an answer", output)


def ended(link: RunnerLink, code: str) -> RunnerEnd:
    """End a candidate's runner and return how that went.

    Raises:
        DeviceUnavailable: a process of it could not be killed, so the device is not free.
    """
    end = link.end()
    if end.survivors:
        raise DeviceUnavailable(
            f"{end.survivors} processes of {code} cannot be killed (a hung driver call?); "
            "the device needs a reset before anything else is measured on it"
        )
    return end


#: By the guard's reason. Memory is not among them: a kind of failure of its own.
_LIMITS = {
    "processes": "the candidate started too many processes",
    "disk": "the candidate wrote more to its folder than it may",
    "depth": "the candidate nested folders deeper than it may",
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


def shown_syntax_error(error: SyntaxError, source: bytes) -> str | None:
    """Return the line of a syntax error with a caret below it and two lines before it; None where it names no line.

    Also the line that an unclosed bracket or string began at, when Python's message names one.
    """
    lines = source.decode(errors="replace").splitlines()
    if error.lineno is None or not 0 < error.lineno <= len(lines):
        return None
    numbers = set(range(max(1, error.lineno - 2), error.lineno + 1))
    numbers |= {int(number) for number in re.findall(r"\b(?:on|at) line (\d+)", error.msg)}
    shown: list[str] = []
    for number in sorted(number for number in numbers if number <= len(lines)):
        line = lines[number - 1]
        shown.append(f"{number:5} | {line if len(line) <= _LINE_SHOWN else line[:_LINE_SHOWN] + ' [...]'}")
        if number == error.lineno and error.offset:
            width = 1
            if error.end_lineno == error.lineno and error.end_offset:
                width = max(1, error.end_offset - error.offset)
            shown.append(f"      | {' ' * (error.offset - 1)}{'^' * width}"[:_LINE_SHOWN])
    return "\n".join(shown)


def _triton_error(message: str, trace: str) -> str:
    """Return what Triton's compiler objects to: the text below its excerpt, else the exception behind it."""
    lines = [line for line in message.splitlines() if line.strip()]
    if lines and not re.fullmatch(r"\s*\^\s*|at \d+:\d+:", lines[-1]):
        return lines[-1].strip()
    cause = next((line for line in trace.splitlines() if re.match(r"[\w.]+(Error|Exception)\b", line)), None)
    return cause or (lines[0] if lines else "Triton does not compile the kernel")


def _tail(trace: str, limit: int = DETAIL_LIMIT) -> str:
    """Return the traceback from the candidate's first frame on, without the frames of this program and of the importer.

    Without a frame of the candidate's it has those of libraries; where no frame is left it is empty.
    """
    kept: list[str] = []
    dropping = False
    for line in trace.splitlines():
        if frame := _FRAME.match(line):
            path = frame["path"]
            dropping = path.startswith((_PACKAGE, "<frozen importlib")) or "/importlib/" in path
            line = line.replace(path, "code.py", 1) if path.endswith("/code.py") else line
        elif not line.startswith("    "):
            dropping = False  # the end of a frame: the exception, or the title of the next part of a chain
        if not dropping:
            kept.append(line)
    text = "\n".join(kept)
    if '  File "' not in text:
        return ""
    start = text.find('  File "code.py"')
    return (text[start:] if start >= 0 else text)[-limit:]
