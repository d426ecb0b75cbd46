"""Which sizes of a problem are in force."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from hkbench.errors import ProblemError
from hkbench.records import Problem, SizeSet


def sizes_in_force(sizes: SizeSet, *problems: Problem) -> SizeSet:
    """Return the sizes that problems really have: full ones where none names CPU sizes, as in KernelBench's files."""
    return sizes if any(problem.cpu_sizes is not None for problem in problems) else SizeSet.FULL


def apply_sizes(
    namespace: MutableMapping[str, object], sizes: SizeSet, cpu_sizes: Mapping[str, int | float] | None
) -> None:
    """Override the constants of an executed problem file, in place.

    `namespace` is the globals of the module, in which `get_inputs` and `get_init_inputs` look their
    constants up when they are called. Nothing changes for `SizeSet.FULL`, nor where the problem has no CPU
    sizes (`cpu_sizes` is `None`: KernelBench's own files), which then runs at its full sizes.

    Raises `ProblemError` when a name is not defined in `namespace`; nothing has been changed then.
    """
    if sizes is SizeSet.FULL or cpu_sizes is None:
        return
    unknown = sorted(name for name in cpu_sizes if name not in namespace)
    if unknown:
        raise ProblemError(
            f"CPU_SIZES names {', '.join(unknown)}, which the problem file does not define; "
            "correct the name or define the constant"
        )
    namespace.update(cpu_sizes)
