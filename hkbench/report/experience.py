"""What a run asked of earlier ones, as its report says it."""

from __future__ import annotations

from hkbench.headline import plural
from hkbench.records import HintKind
from hkbench.report.model import ExperienceReport
from hkbench.store.reader import RunView

_MIB = 1 << 20


def experience_of(run: RunView) -> ExperienceReport | None:
    """Return what the run asked, and got; `None`: it asked none."""
    config = run.config
    if config.experience is None:
        return None
    problems = run.state.problems.values()
    answers = [answer for problem in problems for answer in problem.recalled.values()]
    prompts = [prompt for problem in problems for prompt in problem.prompts.values()]
    return ExperienceReport(
        database=config.experience,
        hold_out=config.hold_out,
        content=run.facts.experience,
        asked=len(answers),
        kernels=sum(answer.kernel is not None for answer in answers),
        remedies=sum(bool(answer.remedies) for answer in answers),
        moves=sum(bool(answer.moves) for answer in answers),
        pitfalls=sum(bool(answer.pitfalls) for answer in answers),
        prompts=sum(any(hint.kind is HintKind.REMEDY for hint in prompt.hints) for prompt in prompts),
    )


def experience_sentence(found: ExperienceReport | None) -> tuple[str, ...]:
    """Say that the run was not made from nothing; nothing of a run without an experience."""
    if found is None:
        return ()
    held = f", problems like {found.hold_out} held out" if found.hold_out is not None else ""
    content = found.content
    known = f" of {plural(content.runs, 'run')} ({content.bytes / _MIB:.1f} MiB, {content.digest})" if content else ""
    got = (
        f"{plural(found.kernels, 'kernel')}, remedies for {plural(found.remedies, 'error')} "
        f"(in {plural(found.prompts, 'prompt')}), pitfalls for {plural(found.pitfalls, 'problem')}, "
        f"moves for {plural(found.moves, 'problem')}"
    )
    return (f"With an experience{known}{held}: it recalled {got}.",)
