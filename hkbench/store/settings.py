"""The settings of two runs held against each other: what differs, and what a run may be given more of."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hkbench.records import RunConfig
from hkbench.store.ranges import numbers_text

#: Not settings of the experiment: what is told elsewhere, and where the service is.
_NO_SETTINGS = frozenset({"schema_version", "problems", "problem_hashes", "base_url", "level"})
_MORE = ("samples", "attempts")  #: settings that may grow
_HASHES = {"prompts_sha256": "the prompt files", "categories_sha256": "the file of categories"}
_NUMBER = re.compile(r"(\d+)_")
_SHOWN = 12  #: names in a line before it says how many more there are


@dataclass(frozen=True)
class Differences:
    """What settings have that a recorded run's do not. Each entry is a line of its own."""

    refused: tuple[str, ...]  #: what makes it another experiment
    added: tuple[str, ...]  #: what the run may be given: problems, samples, attempts

    @property
    def none(self) -> bool:
        return not (self.refused or self.added)


def differences(before: RunConfig, now: RunConfig, unknown: Collection[str] = ()) -> Differences:
    """Return how the settings `now` differ from a run's recorded ones; those in `unknown` count as the same."""
    refused: list[str] = []
    added: list[str] = []
    _problems(before, now, refused, added)
    old, new = before.settings(), now.settings()
    for name in dict.fromkeys([*old, *new]):
        if name in _NO_SETTINGS or name in unknown or old.get(name) == new.get(name):
            continue
        if name in _HASHES:
            refused.append(f"{_HASHES[name]} differ from those of the run")
        elif name == "experience" and None not in (old.get(name), new[name]):
            continue  # where the database lies
        elif name in _MORE:
            grown = new[name] > old[name]
            (added if grown else refused).append(f"{name} {old[name]} -> {new[name]}{'' if grown else _FEWER}")
        else:
            refused.extend(_changes(name, old.get(name), new.get(name)))
    return Differences(tuple(refused), tuple(added))


_FEWER = ": a run can be given more, not fewer"


def names_text(names: Sequence[str]) -> str:
    """Return problems by their numbers where all have one ("5 to 8, 11"), else by their names."""
    numbers = [int(found[1]) for name in names if (found := _NUMBER.match(name))]
    if len(numbers) == len(names):
        return numbers_text((number, number) for number in numbers)
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _problems(before: RunConfig, now: RunConfig, refused: list[str], added: list[str]) -> None:
    old = dict(zip(before.problems, before.problem_hashes, strict=True))
    new = dict(zip(now.problems, now.problem_hashes, strict=True))
    changed = [name for name in new if name in old and old[name] != new[name]]
    left_out = [name for name in old if name not in new]
    more = [name for name in new if name not in old]
    if changed:
        refused.append(f"problems: the files of {names_text(changed)} have changed")
    if left_out:
        refused.append(f"problems: leaves out {names_text(left_out)}")
    if more:
        (refused if left_out else added).append(f"problems: adds {names_text(more)}")


def _changes(name: str, old: Any, new: Any) -> Iterator[str]:
    """Yield a line for each value that differs, by its place: `judge.rtol.float32 not set -> 1e-05`."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in dict.fromkeys([*old, *new]):
            if old.get(key) != new.get(key):
                yield from _changes(f"{name}.{key}", old.get(key), new.get(key))
    else:
        yield f"{name} {_value(old)} -> {_value(new)}"


def _value(value: Any) -> str:
    if value is None:
        return "not set"
    return str(value).lower() if isinstance(value, bool) else str(value)
