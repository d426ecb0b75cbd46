"""Recorded replies served instead of a model's."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from hkbench.errors import ReplayMissing
from hkbench.llm.client import ALWAYS, Permit
from hkbench.llm.replies import call_name, read_reply, replies_in_file, replies_in_folder
from hkbench.records import Advice, AdviceKey, BackendName, CallKey, Reply

_MAX_LISTED = 8  #: names in a message before it counts the others


class ReplayClient:
    """Serve the replies of `source`: a run folder, or a file of replies (`hkbench.llm.replies`)."""

    def __init__(self, source: Path, backend: BackendName) -> None:
        """Find what is recorded. Raises ReplayMissing when `source` is neither a folder nor a file of replies."""
        if not source.exists():
            raise ReplayMissing(f"{source} does not exist: give --replay a run folder or a file of recorded replies")
        self._source = source
        self._backend = backend
        self._replies: Mapping[str, Reply | Path] = (
            replies_in_folder(source) if source.is_dir() else replies_in_file(source, backend)
        )

    async def complete(
        self,
        key: CallKey,
        prompt: str,  # noqa: ARG002 - the key decides
        form: type[Advice] | None = None,  # noqa: ARG002
        permit: Permit = ALWAYS,
        system: str | None = None,  # noqa: ARG002
    ) -> Reply:
        """Return the reply recorded for `key`. Raises ReplayMissing when there is none, or it cannot be read."""
        permit.begin()
        return self.reply(key)

    def reply(self, key: CallKey) -> Reply:
        """Return the reply recorded for `key`. Raises ReplayMissing when there is none, or it cannot be read."""
        found = self._replies.get(call_name(key))
        if found is None:
            raise ReplayMissing(self._absent(key))
        reply = read_reply(found) if isinstance(found, Path) else found
        return reply.model_copy(update={"replayed": True})

    async def close(self) -> None:
        """Close nothing: nothing is held open."""

    def recorded_samples(self, problems: Iterable[str]) -> int | None:
        """Count the samples of the first attempt, at most, over these problems; None when nothing is recorded."""
        firsts = [name.partition("/attempt_1/sample_")[0] for name in self._replies if "/attempt_1/sample_" in name]
        return max((firsts.count(problem) for problem in problems), default=0) or None

    def missing(self, keys: Iterable[CallKey]) -> list[CallKey]:
        """Return those of `keys` for which nothing is recorded, in their order."""
        return [key for key in keys if call_name(key) not in self._replies]

    def unrecorded(self, problems: Iterable[str]) -> list[str]:
        """Return those of `problems` without a sample's reply, in their order.

        The first prompt need not be that of attempt 1: a search begins with a kernel that nobody is asked for.
        """
        there = {name.partition("/")[0] for name in self._replies if "/sample_" in name}
        return [name for name in problems if name not in there]

    def _absent(self, key: CallKey) -> str:
        return (
            f"{self._source} has no reply for {key.problem}, attempt {key.attempt}, {key.folder.replace('_', ' ')} "
            f"({self._backend}); {self._instead(key)}"
        )

    def _instead(self, key: CallKey) -> str:
        """Say what is recorded: of the problem, else of which problems."""
        role = key.role if isinstance(key, AdviceKey) else "sample"
        calls = [
            name.partition("/")[2] for name in self._replies if re.match(rf"{re.escape(key.problem)}/.*/{role}_", name)
        ]
        if calls:
            return f"recorded for this problem: {_listed(calls)}"
        problems = list(dict.fromkeys(name.partition("/")[0] for name in self._replies))
        return f"recorded problems: {_listed(problems)}" if problems else "it holds no replies at all"


def _listed(names: list[str]) -> str:
    more = len(names) - _MAX_LISTED
    return ", ".join(names[:_MAX_LISTED]) + (f" and {more} more" if more > 0 else "")
