"""Files of a run folder for a person to look at: loaded when they are looked at, made safe, never a traceback."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from hkbench.records import SampleKey, Verdict
from hkbench.store.layout import ProblemPaths, RunPaths, SamplePaths
from hkbench.store.reader import without_request
from hkbench.store.sanitize import strip_escapes

MAX_SHOWN_BYTES = 1 << 20  #: bytes of a file that are shown


class Unreadable(Exception):
    """There is nothing to show; the message says why, in words for the screen."""


@dataclass(frozen=True)
class SampleFiles:
    """The files of one sample. Every access reads the disk; `Unreadable` where that gives nothing."""

    paths: RunPaths
    key: SampleKey

    @property
    def problem(self) -> ProblemPaths:
        return self.paths.problem(self.key.problem)

    @property
    def folder(self) -> SamplePaths:
        return self.problem.sample(self.key.attempt, self.key.sample)

    def text(self, path: Path) -> str:
        """Return a file's text, without terminal escapes; a long one is cut and says so."""
        data = self._read(path, MAX_SHOWN_BYTES + 1)
        text = strip_escapes(data[:MAX_SHOWN_BYTES].decode("utf-8", errors="replace")).expandtabs(4)
        return text if len(data) <= MAX_SHOWN_BYTES else f"{text}\n[cut after {MAX_SHOWN_BYTES >> 20} MiB]"

    def verdict(self) -> Verdict:
        path = self.folder.result
        try:
            return Verdict.model_validate_json(self._read(path))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            raise Unreadable(f"{self._name(path)} is not a verdict: {strip_escapes(first['msg'])}") from None

    def fields(self, path: Path) -> dict[str, object]:
        """Return a JSON object of it (exchange.json, extraction.json), what was sent left out."""
        try:
            return without_request(json.loads(self._read(path)))
        except (ValueError, TypeError, RecursionError) as error:
            raise Unreadable(f"{self._name(path)} is not readable: {strip_escapes(str(error))}") from None

    def _read(self, path: Path, most: int = -1) -> bytes:
        try:
            with path.open("rb") as file:
                return file.read(most)
        except (FileNotFoundError, NotADirectoryError):
            raise Unreadable(f"There is no {self._name(path)} yet.") from None
        except (OSError, ValueError) as error:  # ValueError: a damaged journal can name a file that no system has
            raise Unreadable(f"{self._name(path)} cannot be read: {strip_escapes(str(error))}") from None

    def _name(self, path: Path) -> str:
        try:
            return strip_escapes(str(path.relative_to(self.paths.root)))
        except ValueError:
            return strip_escapes(str(path))
