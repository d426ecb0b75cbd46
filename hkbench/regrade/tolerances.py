"""Whether recorded errors hold under other tolerances.

An output passes where its error, in units of |expected| + rms(expected), is at most rtol, or what eager's own error
widens rtol to: min(2 * eager's error, WIDEST * rtol). The error is recorded as the largest of all comparisons, eager's
as the largest of some, the one with that error among them. So an error of at most rtol passes in every one; and where
eager is within the widest tolerance, one that exceeds both rtol and twice eager's largest error fails in the comparison
that it came from.

Older records have neither error, only the largest share of the tolerance in each trial. Of a narrower tolerance that
decides where a trial on the problem's own inputs fails by more than any widening.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from hkbench.analysis.tolerances import RTOL_BY_NAME, WIDEST
from hkbench.records import Tolerance, Trial, Verdict


class Held(Enum):
    PASSES = auto()
    FAILS = auto()
    UNKNOWN = auto()  #: the record does not say


@dataclass(frozen=True)
class HeldValues:
    """What other tolerances make of a verdict's comparisons."""

    outcome: Held  #: of those that passed
    text: str  #: why they do not pass, or what the record lacks
    wider: bool  #: some tolerance is wider than it was
    tolerances: tuple[Tolerance, ...]  #: those in force now
    trials: tuple[Trial, ...]  #: without the share of a tolerance that is another one now


def held(verdict: Verdict, rtol: Mapping[str, float]) -> HeldValues:
    """Return the comparisons of `verdict` under `rtol` by dtype."""
    recorded = verdict.conditions.tolerances
    # A trial's share is the largest of all outputs: of several nobody knows whose it was.
    trials = verdict.trials if len(recorded) == 1 else ()
    found = [_one(tolerance, rtol[tolerance.dtype], trials) for tolerance in recorded]
    outcome, text = Held.PASSES, ""
    for worst in (Held.UNKNOWN, Held.FAILS):  # one failing output is enough
        outcome, text = next(((kind, said) for kind, said, _ in found if kind is worst), (outcome, text))
    changed = any(_plain(tolerance) != rtol[tolerance.dtype] for tolerance in recorded)
    return HeldValues(
        outcome=outcome,
        text=text,
        wider=any(_plain(tolerance) < rtol[tolerance.dtype] for tolerance in recorded),
        tolerances=tuple(tolerance for _, _, tolerance in found),
        trials=tuple(trial.model_copy(update={"max_error_over_tolerance": None}) for trial in verdict.trials)
        if changed
        else verdict.trials,
    )


def _plain(tolerance: Tolerance) -> float:
    """Return rtol before eager's error widened it.

    Records without it are of runs that had the usual ones.
    """
    if tolerance.plain_rtol is not None:
        return tolerance.plain_rtol
    return RTOL_BY_NAME[tolerance.dtype] if tolerance.widened_by_eager else tolerance.rtol


def _one(then: Tolerance, rtol: float, trials: Iterable[Trial]) -> tuple[Held, str, Tolerance]:
    """Return one output: what becomes of its comparisons, why, and its tolerance now."""
    plain, name = _plain(then), then.dtype
    if rtol == plain:
        return Held.PASSES, "", then
    now = then.model_copy(update={"rtol": rtol, "plain_rtol": rtol, "widened_by_eager": False})
    if rtol > plain:
        # Twice eager's error may be more still; what was in force is not forgotten.
        widened = then.widened_by_eager and then.rtol > rtol
        return Held.PASSES, "", now.model_copy(update={"rtol": max(rtol, then.rtol), "widened_by_eager": widened})
    if then.error is not None:
        return (*_by_errors(then.error, then.eager_error, rtol, name), now)
    own = [t.max_error_over_tolerance or 0.0 for t in trials if (t.inputs, t.parameters) == ("own", "own")]
    if plain * max(own, default=0.0) > WIDEST * rtol:
        return Held.FAILS, f"an error was more than {WIDEST:g} times the {name} tolerance of today, {rtol:g}", now
    return Held.UNKNOWN, f"the record does not have the errors that a {name} tolerance of {rtol:g} asks for", now


def _by_errors(error: float, eager: float | None, rtol: float, name: str) -> tuple[Held, str]:
    said = f"the largest {name} error is {error:.3g} of |expected| + rms(expected), and the tolerance is {rtol:g}"
    if error <= rtol:
        return Held.PASSES, ""
    if eager is None or 2.0 * eager > WIDEST * rtol:
        return Held.UNKNOWN, f"{said}; what eager's own error makes of that is not in the record"
    if error > max(rtol, 2.0 * eager):
        return Held.FAILS, said
    return Held.UNKNOWN, f"{said}; eager's own error of up to {eager:.3g} may widen it"
