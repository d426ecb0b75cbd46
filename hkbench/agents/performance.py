"""The performance agent: what was measured of a right kernel against its target, and what keeps it from there."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from hkbench.prompts import AgentHint, HintTopic
from hkbench.records import Advice, QuestionKind, Record, Said, Verdict
from hkbench.store.figures import speedup as shown

QUESTION = QuestionKind.MEET_TARGET
ORIGIN = "performance agent"


class Target(Record):
    """What a kernel has to reach."""

    version: Literal[1] = 1
    speedup: float
    roof: float | None = None  #: fraction of the device's least time; it counts in place of the speed-up

    @property
    def described(self) -> str:
        """The target in words."""
        return f"a speed-up of {shown(self.speedup)}" if self.roof is None else f"{self.roof:.0%} of the roofline"


class Measured(Record):
    """What a verdict says of a right kernel."""

    version: Literal[1] = 1
    target: str
    met: bool
    speedup: float | None  #: `None`: nothing is timed here
    roof: float | None  #: least time of the device over its own; `None`: not known
    profiler: str | None  #: `None`: there is no profile
    missing: str | None  #: what is not known, in words

    @property
    def described(self) -> str:
        """The figures in words."""
        reached = [f"speed-up {shown(self.speedup)}" if self.speedup is not None else "not timed"]
        reached += [f"{self.roof:.0%} of the roofline"] if self.roof is not None else []
        return ", ".join([*reached, *filter(None, [self.missing])])


class PerformanceAdvice(Advice):
    """What the reasoner answers."""

    bottleneck: Said = Field(description="what keeps the kernel from the target, with the figure that shows it")
    change: Said = Field(description="the one change that pays most, with its steps in this code")


def measure(verdict: Verdict, target: Target) -> Measured:
    """Return what was measured. Where the roofline is not known, the speed-up decides, and `missing` says so."""
    gain = verdict.speedup.value if verdict.speedup is not None else None
    roof = verdict.sol.fraction if verdict.sol is not None else None
    missing = []
    if target.roof is not None and roof is None:
        missing.append(f"the roofline of this device is not known, so that {shown(target.speedup)} decides")
    if verdict.unsettled:
        missing.append("timed beside other work, so that the figures cannot be relied on")
    if verdict.profile is None and gain is not None:
        missing.append("no profile, timing alone")
    reached, wanted = (roof, target.roof) if target.roof is not None and roof is not None else (gain, target.speedup)
    return Measured(
        target=target.described,
        met=reached is not None and wanted is not None and reached >= wanted,
        speedup=gain,
        roof=roof,
        profiler=verdict.profile.source if verdict.profile is not None else None,
        missing="; ".join(missing) or None,
    )


def hint(measured: Measured, advice: Advice | None, text: str) -> AgentHint:
    """Return the hint for the next kernel: the figures, then the advice, else the answer as it stands."""
    lines = [f"It reaches {measured.described}; the target is {measured.target}."]
    if isinstance(advice, PerformanceAdvice):
        lines += [f"Bottleneck: {advice.bottleneck}", f"Change: {advice.change}"]
    elif text.strip():
        lines.append(text.strip())
    return AgentHint(topic=HintTopic.PERFORMANCE, text="\n".join(lines), origin=ORIGIN)
