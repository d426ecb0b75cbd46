"""Which sizes of a problem are in force."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from hkbench.errors import ProblemError
from hkbench.records import Problem, SizeSet

Constants = Mapping[str, int | float]  #: other values for constants of a problem's file


def sizes_in_force(sizes: SizeSet, *problems: Problem) -> SizeSet:
    """Return the sizes that problems really have, where these are asked for.

    Problems without sizes for an emulated GPU have those for a CPU; those without these, as KernelBench's, the full
    ones. Where problems differ, it is the first of these sets that one of them has.
    """
    return next((one for one, _ in _choices(sizes, *problems)), SizeSet.FULL)


def constants_in_force(sizes: SizeSet, problem: Problem) -> Constants:
    """Return the constants that `sizes` change, with their values: none for the full ones, or where none are named."""
    return next((found for _, found in _choices(sizes, problem)), {})


def _choices(sizes: SizeSet, *problems: Problem) -> list[tuple[SizeSet, Constants]]:
    """Return the sets that are asked for and named by a problem, the best one first."""
    emulated = [(SizeSet.EMULATED, problem.emulated_sizes) for problem in problems if sizes is SizeSet.EMULATED]
    cpu = [(SizeSet.CPU, problem.cpu_sizes) for problem in problems if sizes is not SizeSet.FULL]
    return [(one, found) for one, found in (*emulated, *cpu) if found is not None]


def apply_sizes(namespace: MutableMapping[str, object], constants: Constants) -> None:
    """Override the constants of an executed problem file, in place.

    `namespace` is the globals of the module, in which `get_inputs` and `get_init_inputs` look their
    constants up when they are called; `constants` are those of `constants_in_force`.

    Raises `ProblemError` when a name is not defined in `namespace`; nothing has been changed then.
    """
    unknown = sorted(name for name in constants if name not in namespace)
    if unknown:
        raise ProblemError(
            f"the sizes name {', '.join(unknown)}, which the problem file does not define; "
            "correct the name or define the constant"
        )
    namespace.update(constants)
