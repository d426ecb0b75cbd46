"""What an experience holds, for people: who wrote what, the commonest errors and what mends them, moves."""

from __future__ import annotations

from hkbench.experience import queries
from hkbench.experience.database import Database
from hkbench.experience.gains import move_gains
from hkbench.records import BackendName, ExperienceFacts, MoveGain, Record
from hkbench.stats import share_interval

MAX_HINTS = 3  #: of an error


class Mender(Record):
    """A hint, or a change, that followed an error."""

    kind: str  #: a `HintKind`, or "change"
    text: str
    helped: int
    tried: int


class CommonError(Record):
    """An error, over all runs."""

    fingerprint: str
    kind: str
    stage: str
    symbol: str | None
    text: str
    seen: int  #: samples
    mended: int  #: of these, those that a correct sample descends from
    mean_steps: float | None  #: attempts from the one to the other
    mean_changed: float | None  #: lines that were added or taken out
    hints: tuple[Mender, ...]  #: the surest ones


class ModelUse(Record):
    """What a model came to by one strategy in one language."""

    model: str
    backend: BackendName
    strategy: str
    runs: int
    samples: int
    correct: int
    not_built: int  #: failed before anything was run
    mean_build_seconds: float | None
    tokens: int | None
    cost: float | None  #: `None`: not known, or in several currencies
    currency: str | None


class Summary(Record):
    """What `hkbench experience show` prints."""

    experience: ExperienceFacts
    models: tuple[ModelUse, ...]
    errors: tuple[CommonError, ...]
    moves: tuple[MoveGain, ...]


def summarise(database: Database, backend: BackendName | None, model: str | None, limit: int) -> Summary:
    """Return what the runs of a backend and a model came to; `None`: of all. `limit`: errors, the commonest first."""
    return Summary(
        experience=database.facts(),
        models=tuple(_model(*row) for row in database.rows(queries.MODELS, backend, model)),
        errors=_errors(database, backend, model, limit),
        moves=move_gains(database, backend, model),
    )


def _errors(database: Database, backend: BackendName | None, model: str | None, limit: int) -> tuple[CommonError, ...]:
    return tuple(
        CommonError(
            fingerprint=digest,
            kind=kind,
            stage=stage,
            symbol=symbol,
            text=text,
            seen=seen,
            mended=mended,
            mean_steps=steps,
            mean_changed=changed,
            hints=_hints(database, digest, backend, model),
        )
        for digest, seen, mended, steps, changed, kind, stage, symbol, text in database.rows(
            queries.ERRORS, backend, model, limit
        )
    )


def _hints(database: Database, digest: str, backend: BackendName | None, model: str | None) -> tuple[Mender, ...]:
    found = [
        Mender(kind=kind, text=text, helped=helped, tried=tried)
        for kind, text, helped, tried in database.rows(queries.HINTS_OF_ERROR, digest, backend, model)
    ]
    return tuple(sorted(found, key=lambda one: (-share_interval(one.helped, one.tried).low, one.text))[:MAX_HINTS])


def _model(
    model: str, backend: str, strategy: str, runs: int, samples: int, correct: int, not_built: int,
    build_seconds: float | None, tokens: int | None, cost: float | None, currency: str | None, currencies: int,
) -> ModelUse:  # fmt: skip
    return ModelUse(
        model=model,
        backend=backend,
        strategy=strategy,
        runs=runs,
        samples=samples,
        correct=correct,
        not_built=not_built,
        mean_build_seconds=build_seconds,
        tokens=tokens,
        cost=cost if currencies == 1 else None,
        currency=currency if currencies == 1 else None,
    )
