"""What is made of the calls in which the guard sampled whose code ran."""

from __future__ import annotations

import pytest

from hkbench.evaluation.link import Samples
from hkbench.evaluation.timing import ENOUGH_SAMPLES, MIN_SAMPLED_CALLS, SAMPLED_CALLS, Observations
from hkbench.evaluation.trust import seen_isolation
from hkbench.profile.sampled_code import Place
from hkbench.records import Isolation, IsolationLevel

OWN, LIBRARY = "/run/own.so", "/usr/lib/libblas.so"


def looked(count: int, path: str = OWN, error: str | None = None) -> Samples:
    """Makes the samples of a call in which each of `count` looks saw one thread in `path`."""
    return Samples(count, ((Place(path),),) * count, error)


def test_one_long_call_has_not_samples_enough() -> None:
    seen = Observations(samples=[looked(10 * ENOUGH_SAMPLES)] * (MIN_SAMPLED_CALLS - 1))
    assert not seen.enough
    seen.samples.append(looked(0))
    assert seen.enough


def test_threads_that_wait_are_not_samples_enough() -> None:
    """Beside other work the threads of an operator were nine times in ten in OpenMP's library."""
    waiting = [looked(ENOUGH_SAMPLES, "/venv/torch/lib/libgomp-a34b3233.so.1")] * MIN_SAMPLED_CALLS
    assert not Observations(samples=waiting).enough
    assert Observations(samples=[*waiting, looked(ENOUGH_SAMPLES)]).enough


def test_short_calls_are_sampled_until_there_are_many() -> None:
    assert not Observations(samples=[looked(0)] * (SAMPLED_CALLS - 1)).enough
    assert Observations(samples=[looked(0)] * SAMPLED_CALLS).enough


def test_a_call_that_is_made_long_does_not_outweigh_the_others() -> None:
    calls = [looked(50, LIBRARY)] * 5 + [looked(5000, OWN)]
    seen = Observations(samples=calls)
    assert seen.places == pytest.approx({Place(LIBRARY): 250.0, Place(OWN): 100.0})
    files = {Place(LIBRARY): LIBRARY, Place(OWN): OWN}
    assert seen.ticks(files) == pytest.approx({frozenset({LIBRARY}): 250.0, frozenset({OWN}): 100.0})


def test_a_call_of_which_some_looks_were_kept_counts_whole() -> None:
    both = (Place(OWN, 64), Place(OWN, 64), Place(LIBRARY))
    seen = Observations(samples=[Samples(900, (both,) * 100)] * 3)
    assert seen.places == pytest.approx({Place(OWN, 64): 1800.0, Place(LIBRARY): 900.0})
    assert seen.ticks({Place(OWN, 64): "copy", Place(LIBRARY): "copy"}) == pytest.approx({frozenset({"copy"}): 900.0})


def test_equal_calls_count_whole() -> None:
    assert Observations(samples=[looked(50)] * 4).places == {Place(OWN): 200.0}
    assert Observations().places == {}


def test_any_call_that_could_not_be_sampled_is_told() -> None:
    assert Observations(samples=[looked(5), looked(0, error="ptrace: no"), looked(5)]).error == "ptrace: no"
    assert Observations(samples=[looked(5)]).error is None


@pytest.mark.parametrize(
    ("level", "lowered"),
    [
        (IsolationLevel.FULL, IsolationLevel.PARTIAL),
        (IsolationLevel.PARTIAL, IsolationLevel.PARTIAL),
        (IsolationLevel.LIMITS, IsolationLevel.LIMITS),
    ],
)
def test_a_process_that_hides_lowers_the_isolation(level: IsolationLevel, lowered: IsolationLevel) -> None:
    surveyed = Isolation(level=level, layers=("guard",), holds=(), missing=("one",))
    assert seen_isolation(surveyed, None) == surveyed
    found = seen_isolation(surveyed, "ptrace: no")
    assert found.level is lowered
    assert found.missing[0] == "one"
    assert "ptrace: no" in found.missing[1]
