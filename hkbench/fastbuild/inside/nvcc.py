"""The quick way of nvcc's command for one source: an object whose kernels are the same, in less time.

`compiler_wrapper.py` asks for it. nvcc preprocesses and parses a source twice, for the host and for each architecture,
one after the other. Here the steps that `nvcc --dryrun` prints run side by side, each as soon as what it reads is
there, and read lighter headers (`nvcc_headers.py`). A dry run that looks otherwise than expected leaves all to nvcc,
and so does a step that fails, unless it read the usual headers: then that is final. Standard library only.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from hkbench.fastbuild.inside.attempt import CompileAttempt
from hkbench.fastbuild.inside.nvcc_headers import write_lighter_headers

DRYRUN_SECONDS = 60.0
_LOOK_SECONDS = 0.005
#: Other compilations than that of one source to one object, or those that keep the files between.
_OTHER = re.compile(
    r"--?(rdc|relocatable-device-code|d[cw]|device-(c|w|link)|dlink|dlto|ewp|extensible-whole-program|lto|gen-opt-lto|"
    r"E|M|MM|ptx|cubin|fatbin|cuda|lib|link|run|optix-ir|keep\S*|save-temps|time|dryrun|n|clean\S*|x|optf|options-file|"
    r"odir|output-directory|t|threads|jobserver)(=.*)?|@.*|-(rdc|t|x).+"
)
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)")
_VARIABLE = re.compile(r"\$([A-Za-z_]\w*)(?=/)")
_TOOLS = ("cudafe++", "cicc", "ptxas", "fatbinary")
_PREPROCESS, _COMPILE = "preprocess", "compile"


class NotUnderstood(Exception):
    """A command or a dry run that is left to nvcc."""


@dataclass(frozen=True)
class Command:
    """A compile command, taken apart."""

    words: tuple[str, ...]  #: without those that ask for a list of dependencies
    source: str
    output: str
    dependencies: str  #: the file for them; empty for none
    folders: tuple[str, ...]
    own_folders: bool  #: whether some of them are given with -I, as torch gives a caller's


@dataclass(frozen=True)
class Step:
    """One command of a dry run."""

    kind: str
    words: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """The steps of one compilation, those that each waits for, and what nvcc sets in their environment."""

    steps: tuple[Step, ...]
    needs: tuple[frozenset[int], ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    module_id: str = ""  #: file for the name that both halves give to what is local to the source


def parse(arguments: Sequence[str]) -> Command:
    """Parse a command that compiles one .cu file. Raises NotUnderstood for any other."""
    source = output = dependencies = ""
    folders: list[str] = []
    own_folders = False
    kept: list[str] = []
    words = iter(arguments)
    for word in words:
        if word in ("-MD", "-MMD"):
            continue
        if word == "-MF":
            dependencies = next(words, "")
            continue
        if _OTHER.fullmatch(word):
            raise NotUnderstood(word)
        kept.append(word)
        own_folders |= word.startswith(("-I", "--include-path"))
        if word in ("-c", "-o", "-isystem", "-I"):
            value = next(words, "")
            kept.append(value)
            source = value if word == "-c" else source
            output = value if word == "-o" else output
            folders += [value] if word in ("-isystem", "-I") else []
        elif word.startswith("-I"):
            folders.append(word[2:])
        elif not word.startswith("-") and word.endswith((".cu", ".o", ".cpp", ".c")):
            raise NotUnderstood(word)
    if not source.endswith(".cu") or not output:
        raise NotUnderstood("no source and no output")
    return Command(tuple(kept), source, output, dependencies, tuple(folders), own_folders)


def read_dryrun(text: str) -> tuple[list[list[str]], dict[str, str]]:
    """Return the commands that a dry run shows, and its assignments. Raises NotUnderstood."""
    commands: list[list[str]] = []
    environment: dict[str, str] = {}
    for line in text.splitlines():
        if not line.startswith("#$ "):
            continue  # a warning
        assignment = _ASSIGNMENT.fullmatch(line[3:])
        if assignment is not None:
            environment[assignment[1]] = assignment[2]
            continue
        try:
            words = shlex.split(line[3:])
        except ValueError as error:
            raise NotUnderstood(line) from error
        words[:1] = [_VARIABLE.sub(lambda found: environment.get(found[1], found[0]), word) for word in words[:1]]
        if any(letter in word for word in words for letter in "$`;|<>&"):
            raise NotUnderstood(line)
        if words and words[0] != "rm":
            commands.append(words)
    return commands, environment


def plan(text: str) -> Plan:
    """Return how the steps of a dry run may run side by side. Raises NotUnderstood."""
    commands, environment = read_dryrun(text)
    steps = [_step(words) for words in commands]
    kinds = [step.kind for step in steps]
    if not all(kind in kinds for kind in (_PREPROCESS, *_TOOLS)) or kinds.count("cudafe++") != 1:
        raise NotUnderstood(f"steps: {kinds}")
    if kinds.count(_COMPILE) != 1 or kinds[-1] != _COMPILE or kinds.count("fatbinary") != 1:
        raise NotUnderstood(f"steps: {kinds}")
    host = steps[kinds.index("cudafe++")]
    makers = [step for step in steps if "--gen_module_id_file" in step.words]
    if len(makers) != 1 or not all("--module_id_file_name" in s.words for s in steps if s.kind in ("cudafe++", "cicc")):
        raise NotUnderstood("no file for the name of the module")
    steps = [
        Step(step.kind, tuple(word for word in step.words if word != "--gen_module_id_file"), step.outputs)
        for step in steps
    ]
    return Plan(tuple(steps), _needs(steps), environment, _value(host.words, "--module_id_file_name"))


def _step(words: Sequence[str]) -> Step:
    """Raise NotUnderstood: a program that no step is known of."""
    name = Path(words[0]).name
    if name in _TOOLS:
        kind = name
        flags = {
            "cudafe++": ("--gen_c_file_name",),
            "cicc": ("-o", "--stub_file_name"),
            "ptxas": ("-o",),
            "fatbinary": ("--embedded-fatbin",),
        }[name]
        outputs = [_value(words, flag) for flag in flags]
    elif re.search(r"gcc|g\+\+|cc|c\+\+|clang", name) and "-o" in words and ("-E" in words) != ("-c" in words):
        kind = _PREPROCESS if "-E" in words else _COMPILE
        outputs = [_value(words, "-o")]
    else:
        raise NotUnderstood(shlex.join(words))
    return Step(kind, tuple(words), tuple(outputs))


def _value(words: Sequence[str], flag: str) -> str:
    """Return what stands behind a flag. Raises NotUnderstood."""
    for at, word in enumerate(words):
        if word == flag and at + 1 < len(words):
            return words[at + 1]
        if word.startswith(f"{flag}=") and len(word) > len(flag) + 1:
            return word[len(flag) + 1 :]
    raise NotUnderstood(f"no {flag}")


def _needs(steps: Sequence[Step]) -> tuple[frozenset[int], ...]:
    """Return what each step waits for: earlier steps whose outputs it names; the last waits for all.

    Raises NotUnderstood: one that nothing comes before is no preprocessor.
    """
    needs: list[frozenset[int]] = []
    for at, step in enumerate(steps):
        if step.kind == _COMPILE:
            needs.append(frozenset(range(at)))
            continue
        named = " ".join(step.words[-1:] if step.kind == "cudafe++" else step.words)
        found = frozenset(i for i, other in enumerate(steps[:at]) if any(output in named for output in other.outputs))
        if (step.kind == _PREPROCESS) == bool(found):
            raise NotUnderstood(f"what {step.kind} reads")
        needs.append(found)
    return tuple(needs)


def execute(made: Plan) -> CompileAttempt:
    """Run the steps, and say what nvcc would: what they print in its own order, up to the first that fails."""
    environment = dict(os.environ) | dict(made.environment)
    waiting = list(range(len(made.steps)))
    running: dict[int, subprocess.Popen[bytes]] = {}
    done: set[int] = set()
    failed, status = len(made.steps), 0
    atmost = max(2, len(os.sched_getaffinity(0)))
    with contextlib.ExitStack() as stack:
        stack.callback(lambda: _end(running.values()))
        said = [stack.enter_context(tempfile.TemporaryFile()) for _ in made.steps]
        while any(at < failed for at in (*waiting, *running)):
            ready = [at for at in waiting if at < failed and made.needs[at] <= done]
            for at in ready[: atmost - len(running)]:
                waiting.remove(at)
                running[at] = subprocess.Popen(
                    made.steps[at].words,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=said[at],
                    stderr=subprocess.STDOUT,
                    process_group=0,
                )
            time.sleep(_LOOK_SECONDS)
            for at in [at for at, process in running.items() if process.poll() is not None]:
                code = running.pop(at).returncode
                done.add(at)
                if code != 0 and at < failed:
                    failed, status = at, code
                    _end([process for later, process in running.items() if later > at])
        return CompileAttempt(status, "".join(map(_text, said[: failed + 1])))


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", errors="replace")


def _end(processes: Iterable[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # with the compiler proper that gcc has started
    for process in processes:
        process.wait()


def compile_quickly(compiler: str, command: Command) -> CompileAttempt:
    """Compile in a private folder, both halves side by side. Raises NotUnderstood: nothing was compiled."""
    source = Path(command.source).read_text(encoding="utf-8", errors="replace")
    with tempfile.TemporaryDirectory(prefix="nvcc-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        lighter = write_lighter_headers(source, command.folders, folder / "include", command.own_folders)
        environment = dict(os.environ) | {"TMPDIR": name}
        words = [compiler, "--dryrun", *lighter, *command.words]
        shown = subprocess.run(
            words, env=environment, capture_output=True, text=True, timeout=DRYRUN_SECONDS, stdin=subprocess.DEVNULL
        )
        if shown.returncode != 0:
            raise NotUnderstood(shown.stderr)
        made = plan(shown.stderr + shown.stdout)
        module = module_id(command)
        Path(made.module_id).write_text(module, encoding="utf-8")
        tried = execute(made)
        if tried.status != 0:  # the steps are nvcc's own; without stand-ins they read what they would in it
            return replace(tried, final=tried.status > 0 and not lighter)
        if not _took(made, module):
            return CompileAttempt(1, "")
        if command.dependencies:
            Path(command.dependencies).write_text(f"{command.output}: {command.source}\n", encoding="utf-8")
        return tried


def module_id(command: Command) -> str:
    """Return a name for what is local to the source: as nvcc forms it, but known before a half has run."""
    stem = re.sub(r"\W", "_", Path(command.source).name)
    number = hashlib.sha256("\0".join((str(Path(command.source).absolute()), *command.words)).encode()).hexdigest()[:8]
    return f"_{number}_{len(stem)}_{stem}_{number}"


def _took(made: Plan, module: str) -> bool:
    """Return whether the host half names local things as the device half was told to."""
    host = next(step for step in made.steps if step.kind == "cudafe++")
    return f"_GLOBAL__N_{module}" in Path(host.outputs[0]).read_text(encoding="utf-8", errors="replace")


def attempt(command: Sequence[str]) -> CompileAttempt | None:
    """Compile in the quick way. None: there is nothing to be gained, and nothing was compiled.

    Raises OSError, subprocess.SubprocessError: as None.
    """
    program = shutil.which(command[0])
    if program is not None and Path(program).name == "nvcc":
        with contextlib.suppress(NotUnderstood):
            return compile_quickly(program, parse(command[1:]))
    return None
