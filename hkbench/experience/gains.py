"""What moves brought in earlier runs, by what the kernels that they were tried on wait for."""

from __future__ import annotations

import math

from hkbench.experience import queries
from hkbench.experience.database import Database
from hkbench.records import BackendName, MoveGain


def move_gains(
    database: Database, backend: BackendName | None = None, model: str | None = None
) -> tuple[MoveGain, ...]:
    """Return what each move came to, apart for what the kernels wait for; the most tried come first.

    `backend`, `model`: of these runs only. The means are over all tries that were timed, in all runs.
    """
    return tuple(
        MoveGain(
            move=move,
            bottleneck=bottleneck,
            tried=tried,
            failed=failed,
            gained=gained,
            log_gain=max(0.0, log_gain or 0.0),
            mean_gain=None if mean is None else math.exp(mean),
        )
        for move, bottleneck, tried, failed, gained, log_gain, mean in database.rows(queries.MOVES, backend, model)
    )
