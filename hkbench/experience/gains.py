"""What moves brought in earlier runs, by the class of bottleneck of the kernel that they were tried on."""

from __future__ import annotations

from hkbench.experience import queries
from hkbench.experience.database import Database
from hkbench.records import BackendName, KnownMove


def move_gains(
    database: Database, backend: BackendName | None = None, model: str | None = None
) -> tuple[KnownMove, ...]:
    """Return for each class of bottleneck and each move: tried, gained, the mean log speed-up over the parent.

    A move that broke the kernel was tried and did not gain; the mean is of those that were timed. The most tried come
    first. `backend`, `model`: of these runs only.
    """
    return tuple(
        KnownMove(bottleneck=bottleneck, move=move, tried=tried, gained=gained, mean_log_gain=mean)
        for bottleneck, move, tried, gained, mean in database.rows(queries.MOVES, backend, model)
    )
