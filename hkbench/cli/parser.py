"""The parser of every command: a wrong argument is answered with one line, and ends with 64."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from hkbench.errors import UsageError


class Parser(argparse.ArgumentParser):
    """argparse without abbreviated options, with exit code 64 (its own 2 means "not correct" here), and in one line.

    The namespace has `given`: the names of the options and arguments that stand on the command line, a frozenset. All
    others have their default.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"allow_abbrev": False, **kwargs})

    def error(self, message: str) -> NoReturn:
        self.exit(UsageError.exit_code, f"{self.prog}: {message.rstrip('.')}; see {self.prog} --help\n")

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Parse as argparse does, but raise an error for unknown arguments, which it leaves to the caller."""
        words = list(sys.argv[1:] if args is None else args)
        self._refuse_unknown_options(words)
        found, rest = super().parse_known_args(words, namespace)
        if rest:
            self.error(f"{' '.join(rest)}: not expected here")
        if self._subparsers is None:
            found.given = self._given(words)
        return found, rest

    def _refuse_unknown_options(self, words: Sequence[str]) -> None:
        """Refuse unknown options before argparse complains of a missing one, which may have been misspelt."""
        for word in words:
            name = word.partition("=")[0]
            if word == "--" or (self._subparsers is not None and not word.startswith("-")):
                return  # what follows are no options, or those of a command
            if name.startswith("--") and " " not in word and name not in self._option_string_actions:
                near = _nearest(name, [option for option in self._option_string_actions if option.startswith("--")])
                self.error(f"there is no option {name}" + (f": did you mean {near}?" if near else ""))

    def _given(self, words: Sequence[str]) -> frozenset[str]:
        """Parse once more without any default: what is there then was on the command line."""
        defaults = {action: action.default for action in self._actions}
        for action in self._actions:
            action.default = argparse.SUPPRESS
        try:
            return frozenset(vars(super().parse_known_args(words, argparse.Namespace())[0]))
        finally:
            for action, default in defaults.items():
                action.default = default


def _nearest(name: str, options: Sequence[str]) -> str | None:
    """Return the option that a misspelt one was meant to be, where one is near enough."""
    longer = [option for option in options if option.startswith(name)]
    with_word = [option for option in options if name.lstrip("-") in option.split("-")]
    for found in (longer, with_word):
        if len(found) == 1:
            return found[0]
    return next(iter(difflib.get_close_matches(name, options, n=1)), None)
