"""Hold recorded verdicts of a run against other rules, as far as the records suffice, into a copy of its folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from hkbench.analysis.tolerances import tolerances_of
from hkbench.batch.rerun import Tell
from hkbench.batch.revision import pending, recorded_verdict, replace_verdict
from hkbench.records import EvaluationSettings, SampleKey
from hkbench.regrade.verdicts import Regraded, Rules, regrade
from hkbench.store.reader import RunView
from hkbench.store.recorder import Recorder


def rules_of(settings: EvaluationSettings) -> Rules:
    """Return the rules of today's evaluator under these settings."""
    return Rules(track=settings.track, rtol=tolerances_of(settings.rules) | settings.rtol)


def decide(run: RunView, keys: Sequence[SampleKey], rules: Rules) -> Iterator[tuple[SampleKey, Regraded]]:
    """Yield what becomes of each sample of a run. Nothing is written."""
    for key in keys:
        paths = run.paths.problem(key.problem).sample(key.attempt, key.sample)
        yield key, regrade(recorded_verdict(run.paths, key), paths.code.read_bytes(), rules)


def write_regraded(
    run: RunView, recorder: Recorder, decided: Mapping[SampleKey, Regraded], how: str, tell: Tell
) -> None:
    """Write the verdicts that were decided and are pending in the recorder's folder, a copy of `run`'s.

    Inside of a revision. `how` stands in each verdict; `tell` gets it before and now.
    """
    changed = [key for key, one in decided.items() if one.verdict is not None]
    for key in pending(run, recorder.paths, changed):
        verdict, before = decided[key].verdict, recorded_verdict(run.paths, key)
        assert verdict is not None, "chosen for it"
        tell(key, before, replace_verdict(recorder, key, verdict, before, f"regraded: {how}"))
