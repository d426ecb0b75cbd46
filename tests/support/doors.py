"""The user's way in: the commands, in process or as processes, on problems and replies that a test writes itself.

The candidates are plain PyTorch, so nothing is compiled. Speed is certain by construction: the reference does its work
`WORK` times over, a fast candidate once, a slow one four times as often as the reference.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import psutil
from support import in_process

from hkbench.cli import main
from hkbench.records import AnyEvent
from hkbench.store.events import CorruptEntry, read_events
from hkbench.store.layout import RunPaths

ROOT = Path(__file__).resolve().parents[2]
WORK = 120
#: Other tests run beside: no verdict waits for the machine to be quiet.
QUICK = (
    *("--track", "any", "--timing-runs", "3", "--warmup", "1", "--trials", "2", "--run-timeout", "8"),
    *("--busy-wait", "0", "--shapes", "0"),
)
#: The command behind each script.
SCRIPTS = {
    "run_batch": "run",
    "eval": "eval",
    "generate": "generate",
    "generate_report": "report",
    "monitor": "monitor",
}
LIMIT = 240.0  #: seconds for one command; far more than any needs

PROBLEM = """import torch
import torch.nn as nn

SIZE = {size}


class Model(nn.Module):
    def forward(self, x):
        for _ in range({work}):
            y = x * 2 + {addend}
        return y


def get_inputs():
    return [torch.randn(SIZE, SIZE)]


def get_init_inputs():
    return []
"""

CANDIDATE = """import torch
import torch.nn as nn


class ModelNew(nn.Module):
    def forward(self, x):
        {body}
"""


def problem(folder: Path, name: str, addend: int, size: int = 96) -> Path:
    """Return a problem file `level1/NAME.py` below `folder`; `addend` is what sets its function apart."""
    path = folder / "level1" / f"{name}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(PROBLEM.format(size=size, work=WORK, addend=addend))
    return path


def candidate(body: str) -> str:
    """Return a candidate whose forward is `body` (one line)."""
    return CANDIDATE.format(body=body)


def fast(addend: int) -> str:
    return candidate(f"return x * 2 + {addend}")


def slow(addend: int) -> str:
    return candidate(f"return [x * 2 + {addend} for _ in range({4 * WORK})][-1]")


def wrong(addend: int) -> str:
    return candidate(f"return x * 2 + {addend} + (x > 3)")


def raising(words: str) -> str:
    return candidate(f"raise RuntimeError({words!r})")


def fenced(source: str) -> str:
    """Return a reply as a model writes it: some words and one code block."""
    return f"Here is the kernel.\n\n```python\n{source}```\n\nIt does the work once.\n"


def reply(folder: Path, problem_name: str, attempt: int, sample: int, text: str) -> Path:
    """Record one reply below `folder` for --replay."""
    path = folder / problem_name / f"attempt_{attempt}" / f"sample_{sample}" / "response.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without settings of hkbench and of model services."""
    settings = (
        "LLM_GATEWAY_KEY",
        "OPENAI_API_KEY",
        "GOOGLE_API_KEY",
        "LOG_LEVEL",
        "OPENAI_BASE_URL",
        "LLM_GATEWAY_URL",
        "LLM_MODEL",
        "KERNELBENCH_DIR",
        "NUM_SAMPLES",
        "HKBENCH_PRICES",
    )
    kept = {name: value for name, value in os.environ.items() if name not in settings}
    return kept | {"NO_PROXY": "127.0.0.1", "COLUMNS": "120"} | dict(more or {})


def command(script: str, *arguments: object) -> list[str]:
    return [sys.executable, str(ROOT / f"{script}.py"), *map(str, arguments)]


def call(
    script: str, *arguments: object, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Return one script to its end, with its output: within this process where that is possible, see `in_process`."""
    if not in_process.possible():
        return run(script, *arguments, cwd=cwd, env=env)
    door, words = in_process.by_script(SCRIPTS[script]), [*map(str, arguments)]
    return in_process.finished(door, str(ROOT / f"{script}.py"), words, cwd or ROOT, environment(env), LIMIT)


def run(
    script: str, *arguments: object, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Return one script to its end as a process of its own, with its output."""
    return _finished(command(script, *arguments), cwd, env)


def hkbench(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Return the installed command `hkbench` to its end, with its output: in this process where that is possible."""
    words = [*map(str, arguments)]
    if in_process.possible():
        return in_process.finished(main.main, "hkbench", words, ROOT, environment(), LIMIT)
    return _finished(_installed(*words), None, None)


def _installed(*words: str) -> list[str]:
    return [sys.executable, "-c", "import sys; from hkbench.cli.main import main; sys.exit(main())", *words]


def _finished(call: Sequence[str], cwd: Path | None, env: Mapping[str, str] | None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        call,
        cwd=cwd or ROOT,
        env=environment(env),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def start(
    script: str, *arguments: object, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """Return one script, begun as in a terminal's foreground; its output is in `stdout` and `stderr`."""
    return _begun(command(script, *arguments), cwd, env)


def start_hkbench(*arguments: object, env: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Return the installed command `hkbench`, begun as in a terminal's foreground."""
    return _begun(_installed(*map(str, arguments)), None, env)


def _begun(call: Sequence[str], cwd: Path | None, env: Mapping[str, str] | None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        call,
        cwd=cwd or ROOT,
        env=environment(env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        # A shell's background job ignores Ctrl-C and hands that down, to the tests and on to what they start.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def events(results: Path) -> list[AnyEvent]:
    """Return the journal of a run; a line that a crash cut is passed over."""
    return [event for event in read_events(RunPaths(results).journal) if not isinstance(event, CorruptEntry)]


def family(process: subprocess.Popen[str]) -> list[psutil.Process]:
    """Return all that a running command has started, down to the last generation."""
    return psutil.Process(process.pid).children(recursive=True)


def outliving(processes: Iterable[psutil.Process], patience: float = 15.0) -> list[str]:
    """Command lines of those that are still alive after `patience` seconds; kills them."""
    _, alive = psutil.wait_procs(list(processes), timeout=patience)
    left = []
    for process in alive:
        try:
            if process.status() != psutil.STATUS_ZOMBIE:
                left.append(" ".join(process.cmdline()))
            process.kill()
        except psutil.NoSuchProcess:
            continue
    return left


def wait_for_file(folder: Path, name: str, process: subprocess.Popen[str]) -> None:
    """Until a file of that name is anywhere below the folder; a candidate can leave it in its own one only."""
    deadline = time.monotonic() + LIMIT
    while not list(folder.rglob(name)):
        if process.poll() is not None:
            raise AssertionError(f"the command ended with {process.returncode}: {process.communicate()}")
        if time.monotonic() > deadline:
            raise AssertionError(f"no {name} ever came below {folder}")
        time.sleep(0.05)


def wait_for(path: Path, text: str, process: subprocess.Popen[str]) -> None:
    """Until `text` stands in the file; fails when the process ends first, or nothing comes."""
    deadline = time.monotonic() + LIMIT
    while time.monotonic() < deadline:
        if path.exists() and text in path.read_text(errors="replace"):
            return
        if process.poll() is not None:
            raise AssertionError(f"the command ended with {process.returncode}: {process.communicate()}")
        time.sleep(0.02)
    raise AssertionError(f"{text!r} never came into {path}")
