"""PROBLEM[/ATTEMPT[/SAMPLE]]: what people type to name a part of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hkbench.errors import InputMissing, UsageError
from hkbench.records import SampleKey
from hkbench.store.reader import ProblemView, RunView

_SHOWN = 60  #: names in a message before it says how many more there are


@dataclass(frozen=True)
class Address:
    """A problem of a run, perhaps one attempt of it, perhaps one sample."""

    problem: ProblemView
    attempt: int | None = None
    sample: int | None = None

    @property
    def key(self) -> SampleKey | None:
        if self.attempt is None or self.sample is None:
            return None
        return SampleKey(problem=self.problem.name, attempt=self.attempt, sample=self.sample)


def find_address(run: RunView, text: str) -> Address:
    """Return what `text` names in `run`.

    Raises:
        UsageError: it is not written as an address, or several problems answer to it.
        InputMissing: the run has no such problem, attempt or sample; the message lists those it has.
    """
    parts = text.split("/")
    if len(parts) > 3 or not all(parts) or not all(part.isdecimal() for part in parts[1:]):
        raise UsageError(f"{text!r} is not PROBLEM, PROBLEM/ATTEMPT or PROBLEM/ATTEMPT/SAMPLE, as 3/2/1")
    name = find_problem(run.config.problems, parts[0])
    problem = next(one for one in run.problems if one.name == name)
    attempt, sample = ([int(part) for part in parts[1:]] + [None, None])[:2]
    if attempt is None:
        return Address(problem)
    if not 1 <= attempt <= len(problem.attempts) or not problem.attempts[attempt - 1]:
        begun = [str(n) for n, samples in enumerate(problem.attempts, 1) if samples]
        raise InputMissing(f"{name} has no attempt {attempt}; it has {_listed(begun)}")
    if sample is not None:
        there = [one.key.sample for one in problem.attempts[attempt - 1]]
        if sample not in there:
            raise InputMissing(
                f"{name} has no sample {sample} in attempt {attempt}; it has {_listed([str(n) for n in there])}"
            )
    return Address(problem, attempt, sample)


def find_problem(names: Sequence[str], wanted: str) -> str:
    """Return the name that is `wanted`, else the one that has it as its number, else the only one that contains it.

    Upper and lower case are the same in a part of a name. Errors as of `find_address`.
    """
    if wanted in names:
        return wanted
    if wanted.isdecimal():
        found = [name for name in names if name.partition("_")[0] == str(int(wanted))]
    else:
        found = [name for name in names if wanted.lower() in name.lower()]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{wanted!r} may be any of {_listed(found)}")
    raise InputMissing(f"the run has no problem {wanted!r}; it has {_listed(names)}")


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _SHOWN
    return (", ".join(names[:_SHOWN]) or "none") + (f" and {more} more" if more > 0 else "")
