"""Settings of runs, and facts of their machines: in which they differ, and what that takes from a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hkbench.records import EvaluationSettings, RunConfig, RunFacts
from hkbench.report.comparison import SettingRow
from hkbench.report.format import price
from hkbench.report.model import Report

_SHOWN_APART = {"schema_version", "problems", "problem_hashes", "judge"}  # "judge": the evaluation's, by name
_UNLIKE = (
    "The runs were not measured alike ({}): a speed-up is against the same device's own baseline, and says nothing of "
    "another's."
)
_STRICT = "The runs were not evaluated alike ({}): what passes in one may fail in the other."
_TRIED = (
    "The runs did not have equally many attempts or samples ({}): more attempts raise a run's best even at equal skill."
)
_RECALLED = (
    "The runs did not recall the same ({}): what earlier runs knew helps or misleads one of them, and says nothing of "
    "the model."
)
_MEASURED = {"device", "sizes", "device name", "device arch"}
_EXPERIENCE = {"experience", "hold out", "experience content"}
_TRIES = {"samples", "attempts", "ends early"}
_NO_VERDICT = {"profile_slow", "profile_timeout", "keep_profile", "keep_assembly", "prepare_builds"}


def _evaluation(name: str) -> str:
    """Name a setting of the evaluation apart from a strategy's option of the same name."""
    return f"evaluation {name.removeprefix('evaluation_').replace('_', ' ')}"


_STRICTNESS = {_evaluation(name) for name in EvaluationSettings.model_fields if name not in _NO_VERDICT}


class Difference(NamedTuple):
    """A setting, or a fact of the machine, that is not the same in two runs; `None`: not known."""

    setting: str
    a: str | None
    b: str | None


def setting_rows(reports: Sequence[Report]) -> tuple[SettingRow, ...]:
    """Return all settings, then all facts, in the order in which the first run has them."""
    each = [{**_settings(report.config), **_facts(report.facts)} for report in reports]
    names = dict.fromkeys(name for one in each for name in one)
    rows = ((name, tuple(one.get(name) for one in each)) for name in names)
    return tuple(SettingRow(setting=name, values=values, differs=len(set(values)) > 1) for name, values in rows)


def differences(rows: Sequence[SettingRow], place: int) -> list[Difference]:
    """Return the settings and facts in which the run at this place differs from the first."""
    return [
        Difference(row.setting, row.values[0], row.values[place]) for row in rows if row.values[place] != row.values[0]
    ]


def obstacles(found: Sequence[Difference]) -> list[Difference]:
    """Return the differences that make speed-ups incomparable; what is not known of a run is none."""
    return [one for one in found if one.setting in _MEASURED and one.a is not None and one.b is not None]


def mixed(found: Sequence[Difference]) -> list[Difference]:
    """Return the difference that makes one run one with an experience and the other one without."""
    return [one for one in found if one.setting == "experience" and None in (one.a, one.b)]


def recalled(found: Sequence[Difference], run: str, first: str) -> str:
    """Return why a run with an experience says nothing of one without. Names as in `unlike`."""
    return _sentence(_RECALLED, found, run, first)


def unlike(found: Sequence[Difference], run: str, first: str) -> str:
    """Return why speed-ups of the runs say nothing of each other. `run`, `first`: what the runs are called."""
    return _sentence(_UNLIKE, found, run, first)


def caveats(found: Sequence[Difference], run: str, first: str) -> Iterator[str]:
    """Yield what the differences take from the comparison, a sentence each; names as in `unlike`."""
    for sentence, these in (
        (_UNLIKE, obstacles(found)),
        (_STRICT, [one for one in found if one.setting in _STRICTNESS]),
        (_RECALLED, [one for one in found if one.setting in _EXPERIENCE]),
        (_TRIED, [one for one in found if one.setting in _TRIES]),
    ):
        if these:
            yield _sentence(sentence, these, run, first)


def _sentence(form: str, found: Sequence[Difference], run: str, first: str) -> str:
    return form.format("; ".join(f"{name}: {_given(a)} in {first}, {_given(b)} in {run}" for name, a, b in found))


def _given(value: str | None) -> str:
    return "none" if value is None else value


def _settings(config: RunConfig) -> dict[str, str | None]:
    data = config.settings() | {"ends_early": config.strategy.ends_early}
    flat = {name: value for name, value in data.items() if name not in _SHOWN_APART}
    flat |= {_evaluation(name): value for name, value in data["judge"].items()}
    return {name.replace("_", " "): None if value is None else str(value) for name, value in flat.items()}


def _facts(facts: RunFacts) -> dict[str, str | None]:
    device = facts.device
    return {
        "device name": device.name if device is not None else facts.hardware.get("device"),
        "device arch": device.arch if device is not None else None,
        **{f"machine {key}": value for key, value in facts.hardware.items() if key != "device"},
        "hkbench": facts.hkbench,
        "experience content": facts.experience.digest if facts.experience is not None else None,
        "price": price(facts.price) if facts.price is not None else None,
        "judge price": price(facts.judge_price) if facts.judge_price is not None else None,
        **dict(facts.versions),
    }
