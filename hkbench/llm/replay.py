"""Recorded replies served instead of a model's."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from hkbench.errors import ReplayMissing
from hkbench.llm.client import ALWAYS, Permit
from hkbench.records import Advice, AdviceKey, Backend, CallKey, Reply

_SHOWN = 8  #: names listed in a message before it says how many more there are


class ReplayClient:
    """Serves the replies below `root`, which is either a collection or the results folder of an old run::

    root/BACKEND/PROBLEM/attempt_K/sample_N/response.txt     looked for first
    root/PROBLEM/attempt_K/sample_N/response.txt
                                           exchange.json     optional: usage, model, finish_reason
    .../PROBLEM/attempt_K/judge_N/response.txt               likewise, of a judge
    """

    def __init__(self, root: Path, backend: Backend) -> None:
        """Raises ReplayMissing when `root` is not a folder."""
        if not root.is_dir():
            raise ReplayMissing(f"no folder {root}: give --replay a folder of recorded replies")
        self._root = root
        self._backend = backend

    async def complete(
        self,
        key: CallKey,
        prompt: str,  # noqa: ARG002 - the key decides
        form: type[Advice] | None = None,  # noqa: ARG002
        permit: Permit = ALWAYS,
        system: str | None = None,  # noqa: ARG002
    ) -> Reply:
        """The reply recorded for `key`. Raises ReplayMissing when there is none, or it cannot be read."""
        permit.begin()
        for path in self._places(key):
            if path.is_file():
                return _read(path)
        raise ReplayMissing(self._absent(key))

    async def close(self) -> None:
        """Nothing is held open."""

    def recorded_samples(self, problems: Iterable[str]) -> int | None:
        """How many samples the first attempts of these problems have at the most; None when nothing is recorded."""
        counts = [
            len(list(folder.glob(f"{problem}/attempt_1/sample_*/response.txt")))
            for problem in problems
            for folder in (self._root / self._backend.value, self._root)
        ]
        return max(counts, default=0) or None

    def missing(self, keys: Iterable[CallKey]) -> list[CallKey]:
        """Those of `keys` for which nothing is recorded, in their order."""
        return [key for key in keys if not any(path.is_file() for path in self._places(key))]

    def _places(self, key: CallKey) -> tuple[Path, Path]:
        below = Path(key.problem, f"attempt_{key.attempt}", key.folder, "response.txt")
        return self._root / self._backend.value / below, self._root / below

    def unrecorded(self, problems: Iterable[str]) -> list[str]:
        """Those of `problems` of which not even a sample of the first attempt is recorded, in their order."""
        return [name for name in problems if self.recorded_samples([name]) is None]

    def _absent(self, key: CallKey) -> str:
        return (
            f"{self._root} has no reply for {key.problem}, attempt {key.attempt}, {key.folder.replace('_', ' ')} "
            f"({self._backend.value}); {self._instead(key)}"
        )

    def _instead(self, key: CallKey) -> str:
        """What is recorded: of the problem, else which problems."""
        problem, role = key.problem, "judge" if isinstance(key, AdviceKey) else "sample"
        folders = [f for f in (self._root / self._backend.value, self._root) if f.is_dir()]
        samples = [
            f"{path.parent.parent.name}/{path.parent.name}"
            for folder in folders
            for path in sorted((folder / problem).glob(f"attempt_*/{role}_*/response.txt"))
        ]
        if samples:
            return f"recorded for this problem: {_listed(samples)}"
        problems = sorted({p.parts[-4] for f in folders for p in f.glob("*/attempt_*/sample_*/response.txt")})
        return f"recorded problems: {_listed(problems)}" if problems else "the folder holds no replies at all"


def _read(path: Path) -> Reply:
    exchange = path.with_name("exchange.json")
    try:
        text = path.read_bytes().decode("utf-8")
        recorded = json.loads(exchange.read_bytes()) if exchange.is_file() else {}
        if not isinstance(recorded, dict):
            raise TypeError("it is not an object")
        fields = {name: value for name, value in recorded.items() if name not in {"request", "text"}}
        return Reply.model_validate({"model": "recorded", **fields, "text": text, "replayed": True})
    except UnicodeDecodeError as error:
        raise ReplayMissing(f"the reply {path} is not UTF-8 text ({error}): record it again") from error
    except (json.JSONDecodeError, TypeError, ValidationError) as error:
        raise ReplayMissing(
            f"{exchange} is not the record of a reply ({error}): mend it, or delete it to use the text alone"
        ) from error


def _listed(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
