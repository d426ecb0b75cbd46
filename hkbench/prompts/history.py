"""What a next prompt says of all attempts so far: their outcomes, code that was sent before, and the best kernel."""

from __future__ import annotations

from collections.abc import Sequence

from hkbench.prompts.context import Best, Reflection
from hkbench.prompts.text import clean
from hkbench.records import Candidate, Record, SampleKey, Status, Verdict
from hkbench.store import figures

_SOUND = frozenset({Status.FAST, Status.SLOW, Status.COMPILED, Status.EMULATED})


class Tried(Record):
    """A sample that was judged."""

    key: SampleKey
    candidate: Candidate | None
    verdict: Verdict

    @property
    def sound(self) -> bool:
        """Correct, whatever its speed, or compiled where nothing is run."""
        return self.verdict.status in _SOUND

    @property
    def sha256(self) -> str | None:
        return None if self.candidate is None else self.candidate.sha256


def with_history(
    reflection: Reflection, attempts: Sequence[Tried], best: Tried | None, sent_before: SampleKey | None
) -> Reflection:
    """Return the reflection with what the attempts so far came to.

    `attempts` holds the best sample of each, in order. `best` is the best kernel of all; its code is shown where the
    reflection is on another code. `sent_before` is the sample of an earlier attempt that held the code of this one.
    """
    shown = next((one for one in attempts if one.key.attempt == reflection.attempt), None)
    update: dict[str, object] = {"sent_before": None if sent_before is None else sent_before.attempt}
    if len(attempts) > 1:
        update["history"] = tuple(_line(one, attempts[:number]) for number, one in enumerate(attempts))
    elsewhere = best is not None and (best.key.attempt, best.key.sample) != (reflection.attempt, reflection.sample)
    if best is not None and best.sound and elsewhere and best.candidate is not None:
        code = clean(best.candidate.source)
        if code != reflection.code and (shown is None or best.sha256 != shown.sha256):
            update["best"] = Best(attempt=best.key.attempt, outcome=_outcome(best), code=code)
    return reflection.model_copy(update=update)


def _line(one: Tried, before: Sequence[Tried]) -> str:
    said = f"attempt {one.key.attempt}: {_outcome(one)}"
    same = next((other for other in before if other.sha256 is not None and other.sha256 == one.sha256), None)
    if same is not None:
        return f"{said}, the code of attempt {same.key.attempt} again"
    worked = next((other for other in reversed(before) if other.sound), None)
    if worked is not None and not one.sound:
        return f"{said}; it broke what worked in attempt {worked.key.attempt}"
    return said


def _outcome(one: Tried) -> str:
    verdict = one.verdict
    if verdict.status is Status.COMPILED:
        return "compiled"
    if verdict.status is Status.EMULATED:
        return "correct on an emulated GPU, its speed unknown"
    if verdict.speedup is not None:
        return f"correct, speed-up {figures.speedup(verdict.speedup.value)}"
    if verdict.failure is None:
        return verdict.status.value
    if verdict.status is Status.REFUSED:
        return f"right answers that do not count ({verdict.failure.kind})"
    return f"{verdict.failure.kind} at the stage {verdict.failure.stage}"
