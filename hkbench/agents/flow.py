"""Who is asked when: the steps of strategy `agents`, and the branches that lead from one to the next.

The strategy takes each of its steps by a branch of this table, and `diagram` draws the same table for docs/agents.md.
"""

from __future__ import annotations

from enum import Enum, StrEnum


class Step(StrEnum):
    """What is done, by which agent; the last four are the ends of a problem."""

    PLAN = "plan"
    MEMORY = "memory"
    SYNTHESIS = "synthesis"
    COMPILE = "compile"
    RESEARCH = "research"
    COMPILE_REASONER = "compile reasoner"
    CHECK = "check"
    CORRECTNESS_REASONER = "correctness reasoner"
    TUNING = "tuning"
    PROFILE = "profile"
    TARGET = "target"
    PERFORMANCE = "performance"
    DIVERSITY = "diversity"
    FALLBACK = "fallback"
    MEMORY_HIT = "memory hit"
    TARGET_MET = "target met"
    BEST_FOUND = "best found"
    FAILURE = "clean failure"


ENDS = frozenset({Step.MEMORY_HIT, Step.TARGET_MET, Step.BEST_FOUND, Step.FAILURE})
#: Steps in which a model is called.
ASKING = frozenset({Step.SYNTHESIS, Step.COMPILE_REASONER, Step.CORRECTNESS_REASONER, Step.PERFORMANCE})


class Branch(Enum):
    """A way from one step to the next: when it is taken, from where, to where."""

    PLANNED = ("planned", Step.PLAN, Step.MEMORY)

    NOTHING_KNOWN = ("nothing known", Step.MEMORY, Step.SYNTHESIS)
    KNOWN_WRONG = ("known, and not right here", Step.MEMORY, Step.SYNTHESIS)
    KNOWN_SLOW = ("known, right here, below the target", Step.MEMORY, Step.PROFILE)
    KNOWN_GOOD = ("known, and good here", Step.MEMORY, Step.MEMORY_HIT)

    NO_CODE = ("no code", Step.SYNTHESIS, Step.DIVERSITY)
    CODE = ("a kernel", Step.SYNTHESIS, Step.COMPILE)

    COMPILES = ("it compiles", Step.COMPILE, Step.CHECK)
    NEW_ERROR = ("a new error", Step.COMPILE, Step.COMPILE_REASONER)
    SAME_ERROR = ("the same error again", Step.COMPILE, Step.RESEARCH)
    LAST_ERROR = ("an error, no attempt left", Step.COMPILE, Step.FALLBACK)

    FOUND = ("something found", Step.RESEARCH, Step.COMPILE_REASONER)
    NOTHING_FOUND = ("nothing found", Step.RESEARCH, Step.COMPILE_REASONER)

    BUILD_ADVICE = ("advice", Step.COMPILE_REASONER, Step.DIVERSITY)
    NO_BUILD_ADVICE = ("no answer", Step.COMPILE_REASONER, Step.DIVERSITY)

    RIGHT = ("right", Step.CHECK, Step.PROFILE)
    WRONG = ("wrong", Step.CHECK, Step.CORRECTNESS_REASONER)
    LAST_WRONG = ("wrong, nothing left to try", Step.CHECK, Step.FALLBACK)

    CONSTANTS = ("launch parameters", Step.CORRECTNESS_REASONER, Step.TUNING)
    PATCH = ("a diff", Step.CORRECTNESS_REASONER, Step.TUNING)
    REWRITE = ("a hint", Step.CORRECTNESS_REASONER, Step.DIVERSITY)
    NO_CORRECTNESS_ADVICE = ("no answer", Step.CORRECTNESS_REASONER, Step.DIVERSITY)

    TUNED = ("right", Step.TUNING, Step.PROFILE)
    ANOTHER_ERROR = ("wrong in another way", Step.TUNING, Step.CORRECTNESS_REASONER)
    TUNED_IN_VAIN = ("wrong as before", Step.TUNING, Step.DIVERSITY)
    TUNED_ENOUGH = ("wrong, --max-tuning reached", Step.TUNING, Step.DIVERSITY)

    PROFILED = ("profiled", Step.PROFILE, Step.TARGET)
    TIMING_ALONE = ("no profile: timing alone", Step.PROFILE, Step.TARGET)
    NOT_TIMED = ("nothing is timed here", Step.PROFILE, Step.FALLBACK)

    MET = ("met", Step.TARGET, Step.TARGET_MET)
    MISSED = ("missed", Step.TARGET, Step.PERFORMANCE)
    LAST_MISSED = ("missed, no attempt left", Step.TARGET, Step.FALLBACK)

    SPEED_ADVICE = ("advice", Step.PERFORMANCE, Step.DIVERSITY)
    NO_SPEED_ADVICE = ("no answer: the figures alone", Step.PERFORMANCE, Step.DIVERSITY)

    GOES_ON = ("something new", Step.DIVERSITY, Step.SYNTHESIS)
    REPEATS = ("the same again", Step.DIVERSITY, Step.SYNTHESIS)
    NO_ATTEMPT = ("no attempt left", Step.DIVERSITY, Step.FALLBACK)

    BEST = ("a kernel is right", Step.FALLBACK, Step.BEST_FOUND)
    NONE = ("none is", Step.FALLBACK, Step.FAILURE)

    def __init__(self, when: str, source: Step, target: Step) -> None:
        self.when = when
        self.source = source
        self.target = target


def diagram() -> str:
    """Draw the table as a mermaid flowchart: ends are rounded, agents that call a model have double sides."""
    lines = ["flowchart TD"]
    for step in Step:
        name, label = step.name.lower(), step.value
        if step in ENDS:
            lines.append(f'    {name}(["{label}"])')
        elif step in ASKING:
            lines.append(f'    {name}[["{label}"]]')
        else:
            lines.append(f'    {name}["{label}"]')
    lines += [
        f'    {branch.source.name.lower()} -->|"{branch.when}"| {branch.target.name.lower()}' for branch in Branch
    ]
    return "\n".join(lines) + "\n"
