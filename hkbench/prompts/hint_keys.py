"""Names under which `reflection_hints` of config.json may list a failure kind: ours, and those of other harnesses.

Upper and lower case and punctuation make no difference: "PERFORMANCE TOO SLOW", "Performance too slow:" and
"performance_too_slow" are one name. docs/prompts.md has the table for users.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from hkbench.prompts import error_classes
from hkbench.records import FailureKind

CLASSES_OF = FailureKind.BUILD_ERROR  #: the failure kind whose hints may be given for one class of errors

_WRONG_ANSWERS = (
    FailureKind.WRONG_VALUES, FailureKind.WRONG_SHAPE, FailureKind.WRONG_DTYPE, FailureKind.WRONG_TYPE,
    FailureKind.NOT_FINITE,
)  # fmt: skip
_ALIASES: dict[tuple[FailureKind, ...], str] = {
    (FailureKind.BUILD_ERROR,): "compile error, compile errors, compilation error, compiler error, compile failed, "
    "compile failure, compilation failed, compilation failure, compile, compilation, build failed, build failure",
    (FailureKind.BUILD_TIMEOUT,): "compile timeout, compilation timeout",
    (FailureKind.SLOW,): "performance too slow, too slow, performance, slower than reference, slower than baseline, "
    "slower than pytorch",
    (FailureKind.CRASH,): "gpu crash, crashed, core dump, core dumped, segmentation fault, segfault, "
    "memory access fault, gpu memory access fault, illegal memory access",
    _WRONG_ANSWERS: "correctness, correctness error, correctness failure, correctness failed, incorrect, "
    "incorrect result, incorrect results, incorrect output, wrong answer, wrong result, wrong output, output mismatch, "
    "validation failed, not correct",
    (FailureKind.WRONG_VALUES,): "value mismatch, values mismatch, numerical mismatch, numerical error",
    (FailureKind.WRONG_SHAPE,): "shape mismatch, output shape mismatch",
    (FailureKind.WRONG_DTYPE,): "dtype mismatch, type mismatch",
    (FailureKind.NOT_FINITE,): "nan, inf, nan or inf, nan inf",
    (FailureKind.RUNTIME_ERROR,): "runtime, run error, runtime failure, execution error",
    (FailureKind.LOAD_ERROR,): "import error, importerror, module load error",
    (FailureKind.SYNTAX_ERROR,): "python syntax error, syntaxerror",
    (FailureKind.NO_CODE,): "no code block, no code found, empty response, parse error",
    (FailureKind.NO_MODEL_NEW,): "modelnew missing, missing modelnew, modelnew not found, no class modelnew",
    (FailureKind.TIMEOUT,): "timed out, run timeout, hang",
    (FailureKind.OUT_OF_MEMORY,): "oom, out of memory error, cuda out of memory, hip out of memory",
}  # fmt: skip


def plain(name: str) -> str:
    """Return `name` in lower case, each run of blanks, underscores and punctuation as one blank."""
    return re.sub(r"[\W_]+", " ", name).strip().casefold()


#: plain name -> the failure kinds that it stands for
NAMES: dict[str, tuple[FailureKind, ...]] = {plain(kind): (kind,) for kind in FailureKind} | {
    alias: kinds for kinds, aliases in _ALIASES.items() for alias in aliases.split(", ")
}


def keys_of(name: str) -> tuple[str, ...]:
    """Return the keys that `name` stands for: failure kinds, or "build_error.CLASS".

    Raises:
        ValueError: there is no such failure kind or class of errors; the message says what there is.
    """
    kind, dot, error_class = name.partition(".")
    of_class = error_class.strip(" .:") or kind == CLASSES_OF  # "Compile error." ends a sentence and names no class
    if dot and of_class and NAMES.get(plain(kind)) == (CLASSES_OF,):
        key = error_class.strip().lower()
        if key not in error_classes.KEYS:
            known = f"use one of {', '.join(error_classes.KEYS)}"
            raise ValueError(f"no such class of errors; {known}{_near(key, error_classes.KEYS)}")
        return (f"{CLASSES_OF}.{key}",)
    kinds = NAMES.get(plain(name))
    if kinds is None:
        known = f"use one of {', '.join(FailureKind)} or {CLASSES_OF}.CLASS, or an alias that docs/prompts.md lists"
        raise ValueError(f"no such failure kind; {known}{_near(plain(name), NAMES)}")
    return tuple(str(one) for one in kinds)


def canonical(hints: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """Return the same hints under the keys that their names stand for; two names of one kind add up in file order."""
    merged: dict[str, tuple[str, ...]] = {}
    for name, texts in hints.items():
        for key in keys_of(name):
            merged[key] = tuple(dict.fromkeys((*merged.get(key, ()), *texts)))
    return merged


def _near(name: str, known: Mapping[str, object] | tuple[str, ...]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""
