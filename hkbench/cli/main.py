"""`hkbench COMMAND`; the scripts at the top of the project are the same commands.

A command is imported when it is asked for, so that `--help`, `--version` and the readers of a run start at once.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module
from types import ModuleType
from typing import NamedTuple

from hkbench import __version__
from hkbench.cli.logs import log_as_asked
from hkbench.cli.parser import Parser
from hkbench.errors import HkbenchError
from hkbench.llm.key import KEY_VARIABLES
from hkbench.sandbox import linux
from hkbench.store.sanitize import strip_escapes


class Command(NamedTuple):
    """A command that is not imported yet."""

    module: str  #: in hkbench.cli; it has DESCRIPTION, add_arguments(parser) and run(options)
    help: str  #: the first line of its DESCRIPTION

    def load(self) -> ModuleType:
        """Import the command's module."""
        return import_module(f"hkbench.cli.{self.module}")


COMMANDS = {
    "generate": Command("generate", "ask a model once for a kernel and write the code of its reply to a file"),
    "eval": Command("evaluate", "evaluate one candidate: build it, compare it with the reference, time both"),
    "run": Command("batch", "run a batch of problems; each failure becomes a hint in the next prompt"),
    "compile": Command("compile", "compile one kernel file alone, for a GPU that need not be there"),
    "optimize": Command("optimize", "make kernels faster by a search over edits, with or without a model"),
    "report": Command("report", "write the report of a run, or of several side by side"),
    "monitor": Command("monitor", "watch a run, live or finished"),
    "show": Command("show", "print a run as a table, one problem, or everything about one sample"),
    "compare": Command("compare", "is run B better than run A, or is the difference chance?"),
    "experience": Command("experience", "what earlier runs are worth to later ones: fill, check, show, ask"),
    "export": Command("export", "write a run in the layout of KernelBench's run folders"),
    "import": Command("imports", "turn the kernels of a KernelBench run into recorded replies"),
    "rerun": Command("rerun", "evaluate samples of a run again from their recorded code, without a model"),
    "regrade": Command("regrade", "hold the recorded verdicts of a run against other rules"),
    "audit": Command("audit", "which answers pass a problem's check that were made without doing the work?"),
    "classify": Command("classify", "which category of categories.toml each problem belongs to, and why"),
    "doctor": Command("doctor", "what this machine can do and what is missing for a run"),
}
INTERNAL = 70
INTERRUPTED = 130
PIPE_CLOSED = 141  #: what a shell reports of a command that SIGPIPE ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the console command."""
    given = sys.argv[1:] if arguments is None else arguments
    chosen = next((word for word in given if not word.startswith("-")), None)  # no option before it takes a value
    parser = Parser(prog="hkbench", description="Measures how well language models write GPU kernels.")
    parser.add_argument("--version", action="version", version=f"hkbench {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, command in COMMANDS.items():
        its_parser = commands.add_parser(name, help=command.help)
        if name == chosen:
            _prepare(its_parser, command)
    options = parser.parse_args(given)
    return _guarded(lambda: int(COMMANDS[options.command].load().run(options)))


def door(name: str, arguments: Sequence[str] | None = None) -> int:
    """Run one command as a script of its own."""
    command = COMMANDS[name]
    parser = Parser()
    _prepare(parser, command)
    options = parser.parse_args(arguments)
    return _guarded(lambda: int(command.load().run(options)))


def _prepare(parser: Parser, command: Command) -> None:
    module = command.load()
    parser.description = module.DESCRIPTION
    module.add_arguments(parser)


def _guarded(command: Callable[[], int]) -> int:
    if any(name in os.environ for name in KEY_VARIABLES):
        linux.set_dumpable(False)  # no other process of this user reads the key out of this one
    try:
        log_as_asked()
        code = command()
        sys.stdout.flush()  # a closed pipe shows here, not at the interpreter's end
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still in the buffer
        return PIPE_CLOSED
    except HkbenchError as error:
        print(f"hkbench: {strip_escapes(str(error))}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("hkbench: interrupted; the same command resumes what it can", file=sys.stderr)
        return INTERRUPTED
    except OSError as error:
        print(f"hkbench: {error}; free space or permissions may be missing", file=sys.stderr)
        return INTERNAL
    except Exception:  # noqa: BLE001 - the end of the process, whose own exit code for this would be 1, a verdict
        traceback.print_exc()
        print("hkbench: this is a fault of hkbench itself; what was finished is kept", file=sys.stderr)
        return INTERNAL
    return code
