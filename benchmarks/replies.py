"""Replies for a batch without a model: work for the harness, made when it is wanted.

Where examples/replies/reflect.toml has hand-written kernels for a problem, these are its first samples: each is built
from source (CUDA: nvcc; on a CPU: g++). All other samples are made from the problem's own file, need no build, and are
judged in track `any`; three kinds take turns by the sample's number:

    equal       the reference as its own candidate
    contiguous  the same, its inputs made contiguous first: they are already, so this is an equal too
    scaled      the reference, what it returns half as large again: wrong in every floating value

With all hand-written CUDA kernels, forty problems and three samples: 16 of 120 are built (13 %), 40 are wrong by design
and end with their first trial, about as many of the others are correct as in a run that goes well. No two files are the
same, so that each is judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from hkbench.llm.replies import call_name, replies_in_file
from hkbench.records import BackendName, Problem, SampleKey

WRITTEN_REPLIES = Path(__file__).resolve().parents[1] / "examples" / "replies" / "reflect.toml"


class Kind(StrEnum):
    """What a sample is."""

    WRITTEN = "written"
    EQUAL = "equal"
    CONTIGUOUS = "contiguous"
    SCALED = "scaled"


#: Whose speed-up is 1.
EQUALS = frozenset({Kind.EQUAL, Kind.CONTIGUOUS})

_MADE = {
    Kind.EQUAL: """
class ModelNew(Model):
    pass
""",
    Kind.CONTIGUOUS: """
class ModelNew(Model):
    def forward(self, *inputs):
        return super().forward(*(x.contiguous() if isinstance(x, torch.Tensor) else x for x in inputs))
""",
    Kind.SCALED: """
def scaled(result):
    if isinstance(result, torch.Tensor):
        return 1.5 * result if result.is_floating_point() else result
    return tuple(scaled(part) for part in result)


class ModelNew(Model):
    def forward(self, *inputs):
        return scaled(super().forward(*inputs))
""",
}


def made(problem: Problem, kind: Kind, sample: int) -> str:
    """Return the candidate's file; the sample's number in it makes it another kernel than the rest of its kind."""
    return f"# {kind}\n{problem.source}\n{_MADE[kind]}\n\nSAMPLE = {sample}\n"


def write_replies(
    root: Path, problems: Sequence[Problem], samples: int, backend: BackendName, written: int | None = None
) -> dict[SampleKey, Kind]:
    """Fill `root` with replies for the first attempt of each problem; what is what.

    `written`: at most so many hand-written ones, from the first problem on (None: all that there are).
    """
    by_hand = replies_in_file(WRITTEN_REPLIES, backend)
    kinds: dict[SampleKey, Kind] = {}
    for problem in problems:
        for sample in range(1, samples + 1):
            key = SampleKey(problem=problem.name, attempt=1, sample=sample)
            name = call_name(key)
            reply = root / name / "response.txt"
            reply.parent.mkdir(parents=True, exist_ok=True)
            used = sum(kind is Kind.WRITTEN for kind in kinds.values())
            if name in by_hand and (written is None or used < written):
                kind = Kind.WRITTEN
                reply.write_text(by_hand[name].text)
            else:
                kind = list(_MADE)[(sample - 1) % len(_MADE)]
                reply.write_text(f"```python\n{made(problem, kind, sample)}```\n")
            kinds[key] = kind
    return kinds
