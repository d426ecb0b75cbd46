"""What a problem is recognised by: its operators, shapes and dtypes, not its name."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from hashlib import sha256

from hkbench.records import ProblemFacts, ScalarFact, TensorFact

LENGTH = 16  #: characters of a digest


@dataclass(frozen=True)
class Traits:
    """What problems are compared by."""

    digest: str  #: of all facts: two problems that share it get the same tensors and call the same operators
    classes: dict[str, int]  #: of operators -> calls
    dtype: str | None  #: of the first output
    elements: int  #: that one pass reads and writes: of inputs, parameters and outputs


def traits(facts: ProblemFacts) -> Traits:
    """Return what a problem is compared by."""
    parts = (facts.inputs, facts.init_inputs, facts.outputs, facts.parameters)
    graph = facts.graph
    said = [[_plain(fact) for fact in part] for part in parts]
    text = json.dumps([said, sorted(graph.operators.items()) if graph is not None else None])
    outputs = [fact for fact in facts.outputs if isinstance(fact, TensorFact)]
    tensors = [fact for part in parts for fact in part if isinstance(fact, TensorFact)]
    return Traits(
        digest=sha256(text.encode()).hexdigest()[:LENGTH],
        classes={str(name): calls for name, calls in sorted(graph.classes.items())} if graph is not None else {},
        dtype=outputs[0].dtype if outputs else None,
        elements=sum(math.prod(fact.shape) for fact in tensors),
    )


def likeness(one: Traits, other: Traits) -> float:
    """Return how alike two problems are, 0..1: shared operator classes, then the same dtype, then their sizes.

    The classes count as the share of calls that both have (Ruzicka's index), 0 where a pass could not be traced.
    """
    names = {*one.classes, *other.classes}
    both = sum(min(one.classes.get(name, 0), other.classes.get(name, 0)) for name in names)
    either = sum(max(one.classes.get(name, 0), other.classes.get(name, 0)) for name in names)
    if not either or not both:
        return 0.0
    apart = abs(math.log(max(one.elements, 1) / max(other.elements, 1)))
    return both / either * (1.0 if one.dtype == other.dtype else 0.7) * (0.6 + 0.4 / (1.0 + apart / math.log(16.0)))


def _plain(fact: TensorFact | ScalarFact) -> list[object]:
    """Return a fact without the name of its argument, which says nothing of the work."""
    return [list(fact.shape), fact.dtype] if isinstance(fact, TensorFact) else [fact.value]
