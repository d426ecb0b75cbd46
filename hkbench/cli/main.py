"""`hkbench COMMAND`; the scripts at the top of the project are the same commands."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Sequence
from types import ModuleType

from hkbench import __version__
from hkbench.cli import (
    audit,
    batch,
    classify,
    compare,
    doctor,
    evaluate,
    export,
    generate,
    imports,
    monitor,
    regrade,
    report,
    rerun,
    show,
)
from hkbench.cli.arguments import Parser
from hkbench.errors import HkbenchError
from hkbench.llm.key import KEY_VARIABLES
from hkbench.sandbox import linux
from hkbench.store.plain import strip_escapes

COMMANDS: dict[str, ModuleType] = {
    "generate": generate,
    "eval": evaluate,
    "run": batch,
    "report": report,
    "monitor": monitor,
    "show": show,
    "compare": compare,
    "export": export,
    "import": imports,
    "rerun": rerun,
    "regrade": regrade,
    "audit": audit,
    "classify": classify,
    "doctor": doctor,
}
INTERNAL = 70
INTERRUPTED = 130
PIPE_CLOSED = 141  #: what a shell reports of a command that SIGPIPE ended


def main(arguments: Sequence[str] | None = None) -> int:
    """The console command."""
    parser = Parser(prog="hkbench", description="Measures how well language models write GPU kernels.")
    parser.add_argument("--version", action="version", version=f"hkbench {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, module in COMMANDS.items():
        help_line = module.DESCRIPTION.partition("\n")[0]
        module.add_arguments(commands.add_parser(name, help=help_line, description=module.DESCRIPTION))
    options = parser.parse_args(arguments)
    return _guarded(lambda: int(COMMANDS[options.command].run(options)))


def door(name: str, arguments: Sequence[str] | None = None) -> int:
    """One command as a script of its own."""
    module = COMMANDS[name]
    parser = Parser(description=module.DESCRIPTION)
    module.add_arguments(parser)
    options = parser.parse_args(arguments)
    return _guarded(lambda: int(module.run(options)))


def _guarded(command: Callable[[], int]) -> int:
    if any(name in os.environ for name in KEY_VARIABLES):
        linux.set_dumpable(False)  # no other process of this user reads the key out of this one
    try:
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
