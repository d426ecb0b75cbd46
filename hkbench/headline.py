"""The title of a run and the sentence that states its result, in the same words in every report and display."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from hkbench.device_kinds import model_of
from hkbench.records import SETTLED, TIMED, BackendName, CardsChecked, Outcome, Ownership, RuleSet, RunConfig, RunFacts
from hkbench.registry import backend_title
from hkbench.store.figures import kernel_time

SEPARATOR = " · "
NO_MODEL = "none"  #: the model of a run that asks none
CARDS_DIFFER = 0.02  #: from which on it is worth a warning, of equals on one card and of times on several
REPLAYED = "replay"  #: the model of a run whose replies were recorded, where nobody named one

#: What a device's name holds beyond the name that people use: maker, kind of memory, trade marks, number of cores.
_NOISE = re.compile(
    r"\((?:R|TM)\)|\b(?:NVIDIA|AMD|Intel|Instinct|GeForce|HBM\d\w*|OAM|CPU|Processor|\d+-Core)\b|@.*$", re.IGNORECASE
)


def device_name(name: str) -> str:
    """Return the short name of a device: "H100 80GB" of "NVIDIA H100 80GB HBM3", "MI300X" of "AMD Instinct MI300X"."""
    return " ".join(_NOISE.sub(" ", name).split()) or name


def model_name(config: RunConfig) -> str:
    """Return the model that was asked, or that the replies were recorded."""
    if config.replay is None:
        return "no model" if config.model == NO_MODEL else config.model
    return "recorded replies" if config.model == REPLAYED else f"{config.model} (recorded replies)"


def title(config: RunConfig, facts: RunFacts | None = None) -> str:
    """Return one line: `NAME · CUDA on H100 80GB · KernelBench L1, 100 problems · 1x1 · track any`."""
    return SEPARATOR.join(title_parts(config, facts))


def title_parts(config: RunConfig, facts: RunFacts | None = None) -> tuple[str, ...]:
    """Return model; backend and device; problems; samples x attempts; track; the rules, if they are not hkbench's.

    `facts` as far as they are known.
    """
    return (
        model_name(config),
        f"{backend_title(config.backend)} {_where(config, facts)}",
        _problems(config, facts),
        f"{config.samples}x{config.attempts}",
        f"track {config.evaluation.track.value}",
        *(() if config.evaluation.rules is RuleSet.HKBENCH else ("KernelBench's rules",)),
    )


def is_timed(config: RunConfig) -> bool:
    """Tell whether the run measures times: neither one of --build-only nor one on an emulated GPU does."""
    return config.compiled_for is None and model_of(config.device).emulates is None


def classes_of(config: RunConfig) -> tuple[Outcome, ...]:
    """Return the classes that a problem of the run can be expected to have, correct ones first."""
    if is_timed(config):
        return (*SETTLED, Outcome.WRONG)
    return (Outcome.EMULATED if config.compiled_for is None else Outcome.COMPILED, Outcome.WRONG)


def _where(config: RunConfig, facts: RunFacts | None) -> str:
    if config.compiled_for is not None:
        return f"compiled for {config.compiled_for}, not run"
    if facts is not None and facts.device is not None:
        return f"on {device_name(facts.device.name)}"
    told = facts.hardware.get("device") if facts is not None else None
    return f"on {device_name(told) if told else model_of(config.device).label}"


def _problems(config: RunConfig, facts: RunFacts | None) -> str:
    level = f"L{config.level}" if config.level is not None else ""
    named = " ".join(filter(None, [facts.problem_set if facts is not None else None, level]))
    return ", ".join(filter(None, [named, plural(len(config.problems), "problem")]))


def plural(count: int, noun: str, nouns: str | None = None) -> str:
    """Return text such as `1 problem`, `2 problems`; `nouns` where the plural is irregular."""
    return f"{count:,} {noun if count == 1 else nouns or noun + 's'}"


def sentence(problems: Mapping[Outcome, int]) -> str:
    """State the result of a run in one sentence. `problems`: their number by class.

    Shares are of the judged problems, with Wilson's 95 % interval.
    """
    # numpy, which the table of a monitor's runs does without
    from hkbench.stats import share_interval

    if problems.get(Outcome.COMPILED):
        whole = sum(problems.values())
        return f"A kernel of {problems[Outcome.COMPILED]} of {plural(whole, 'problem')} compiles; nothing is measured."
    judged = sum(count for outcome, count in problems.items() if outcome is not Outcome.NOT_JUDGED)
    unjudged = problems.get(Outcome.NOT_JUDGED, 0)
    if not judged:
        return f"No problem of {unjudged} is judged yet." if unjudged else "The run has no problem."
    kind = "judged problem" if unjudged else "problem"
    emulated = problems.get(Outcome.EMULATED, 0)
    told = emulated or problems.get(Outcome.FASTER, 0)
    share = share_interval(told, judged)
    interval = f"{_percent(share.value)} %, {_percent(share.low)} to {_percent(share.high)} %"
    part = f"{told} of {plural(judged, kind)} ({interval})"
    if emulated:
        return f"Correct on an emulated GPU on {part}; no time is measured there."
    parts = [f"Faster than PyTorch on {part}"]
    parts += [f"{outcome.label} on {problems[outcome]}" for outcome in TIMED[1:] if problems.get(outcome)]
    correct = sum(problems.get(outcome, 0) for outcome in TIMED)
    parts.append(f"correct on {correct}")
    return "; ".join(parts) + "."


def bar(problems: Mapping[Outcome, int], width: int) -> list[tuple[Outcome, int]]:
    """Divide a bar of `width` columns among the classes that occur, best first, in proportion (largest remainders)."""
    whole = sum(problems.values())
    found = [(outcome, problems[outcome] * width) for outcome in Outcome if problems.get(outcome)]
    columns = {outcome: share // whole for outcome, share in found}
    by_remainder = sorted(found, key=lambda pair: pair[1] % whole, reverse=True)
    for outcome, _ in by_remainder[: width - sum(columns.values())]:
        columns[outcome] += 1
    return list(columns.items())


def _percent(share: float) -> str:
    return f"{100 * share:.0f}"


def own_kernels(faster: Sequence[tuple[Ownership | None, BackendName | None]], asked: BackendName) -> str | None:
    """State whose kernels the faster ones are, where that has to be said; `None` where all are what was asked for.

    `faster`: of the best sample of each faster problem, whose work it is (`None`: not profiled) and the language of its
    kernels.
    """
    if not faster:
        return None
    whose = [one for one, _ in faster]
    own, not_established, unknown = map(whose.count, (Ownership.OWN, Ownership.NOT_ESTABLISHED, None))
    parts = []
    if own < len(faster):
        noted = f" ({', '.join(unsure)})" if (unsure := not_told(not_established, unknown)) else ""
        parts.append(
            "Whose kernels did the work in these was not profiled."
            if unknown == len(faster)
            else f"Of these with own kernels: {own} of {len(faster)}{noted}."
        )
    others = Counter(language for _, language in faster if language is not None and language != asked)
    if others:
        counts = ", ".join(f"{count} in {backend_title(language)}" for language, count in others.items())
        parts.append(f"Not written in {backend_title(asked)} as asked: {counts}.")
    return " ".join(parts) or None


def not_told(not_established: int, not_profiled: int) -> list[str]:
    """Count in words the problems without a known owner of the work: not established, or not profiled."""
    counts = ((not_established, "not established"), (not_profiled, "not profiled"))
    return [f"{count} {words}" for count, words in counts if count]


def card_lines(found: CardsChecked) -> list[str]:
    """Say how far the cards of a cluster differ on equals; then a line for each thing that is not as it ought to be."""
    times = {card.name: card.seconds.value for card in found.cards if card.seconds is not None}
    lines = [f"{card.name} has not measured {found.problem}: {card.message}" for card in found.cards if card.message]
    for card in found.cards:
        if card.ratio is not None and not 1 - CARDS_DIFFER <= card.ratio.value <= 1 + CARDS_DIFFER:
            equals = f"{card.ratio.value:.3f} [{card.ratio.low:.3f}, {card.ratio.high:.3f}]"
            lines.append(f"warning: {card.name} times {found.problem} against itself as {equals}: is it quiet?")
    if not times:
        return lines
    fast, slow = min(times, key=times.__getitem__), max(times, key=times.__getitem__)
    if found.spread is None:
        return [f"{found.problem} takes {kernel_time(times[fast])} on the one card that measured it", *lines]
    if found.spread > CARDS_DIFFER:
        lines.insert(
            0,
            f"warning: {slow} is slower than {fast}: a speed-up is of one card and holds, the times of different cards "
            "are not comparable; see to clocks, power limits and other work there",
        )
    spread = f"the cards differ by {100 * found.spread:.1f} %"
    return [f"{spread}: {found.problem} takes {kernel_time(times[fast])} to {kernel_time(times[slow])}", *lines]
