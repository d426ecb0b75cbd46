"""From a reply, or a file, without `ModelNew` to a candidate that calls its kernel."""

from __future__ import annotations

from pathlib import Path

from hkbench.binding.kernel import BareKernel, NotCertain
from hkbench.binding.match import matched
from hkbench.binding.native import read_native
from hkbench.binding.triton import read_triton
from hkbench.binding.write import write_candidate
from hkbench.llm.blocks import Block, code_blocks, source_defines_model_new
from hkbench.profile.names import device_functions, triton_functions
from hkbench.records import BackendName, Extraction, ExtractionRule, FailureKind, Problem, ProblemFacts, Verdict

LANGUAGES = ("triton", "hip", "cuda", "cpp")  #: in which bare kernels are bound
NOT_BOUND = "its kernel was not bound"
_SUFFIXES = {"triton": (".py",), "cuda": (".cu",), "hip": (".hip", ".cpp", ".cu"), "cpp": (".cpp", ".cc", ".cxx")}
#: Rules by which something was found that does not define the class.
_BARE = (ExtractionRule.MAX_BLOCK, ExtractionRule.UNCLOSED_BLOCK, ExtractionRule.NONE)


def may_be_bound(reply: str, found: Extraction, backend: BackendName) -> bool:
    """Tell whether a reply has a kernel in the language that was asked for, and no `ModelNew`."""
    if backend not in LANGUAGES or found.rule not in _BARE or "class ModelNew" in reply:
        return False
    return bool(_kernel_blocks(code_blocks(reply), backend))


def bind_reply(
    reply: str, found: Extraction, problem: Problem, facts: ProblemFacts, backend: BackendName
) -> Extraction:
    """Return the bound kernel of a reply; where it is not certain how, `found`, with a note that says what is missing.

    A reply for which `may_be_bound` is false is returned as it was found.
    """
    if not may_be_bound(reply, found, backend):
        return found
    blocks = _kernel_blocks(code_blocks(reply), backend)
    try:
        if len(blocks) != 1:
            raise NotCertain(f"{len(blocks)} code blocks have kernels; ask for one")
        if not blocks[0].closed:
            raise NotCertain("its code block was never closed")
        return _bound(blocks[0].text, problem, facts, backend)
    except NotCertain as reason:
        note = f"{NOT_BOUND}: {reason}"
        return found.model_copy(update={"note": f"{found.note}; {note}" if found.note else note})


def bind_file(file: Path, problem: Problem, facts: ProblemFacts, backend: BackendName) -> Extraction:
    """Return the bound kernel of a file, or NONE with what is missing."""
    try:
        return _bound(file.read_text(encoding="utf-8", errors="replace"), problem, facts, backend)
    except NotCertain as reason:
        note = f"it has no ModelNew; {NOT_BOUND}: {reason}"
        return Extraction(rule=ExtractionRule.NONE, source=None, note=note)


def note_of(found: Extraction) -> str | None:
    """Return what a verdict has to say of a kernel without `ModelNew`; None where there was no such kernel."""
    if found.rule is ExtractionRule.BOUND:
        return found.note
    _, sign, reason = (found.note or "").partition(f"{NOT_BOUND}: ")
    return f"{NOT_BOUND}: {reason}" if sign else None


def with_note(verdict: Verdict, note: str | None) -> Verdict:
    """Return a verdict that says what became of a kernel without `ModelNew`.

    Among its warnings where it was bound, in the failure where that was not certain, so that the next prompt has it.
    """
    failure = verdict.failure
    if note is None or note in verdict.conditions.warnings:
        return verdict
    if failure is not None and failure.kind is FailureKind.NO_MODEL_NEW:
        if note in failure.message:
            return verdict
        said = failure.model_copy(update={"message": f"{failure.message}; {note}"})
        return verdict.model_copy(update={"failure": said})
    conditions = verdict.conditions.model_copy(update={"warnings": (*verdict.conditions.warnings, note)})
    return verdict.model_copy(update={"conditions": conditions})


def is_bare(file: Path, backend: BackendName) -> bool:
    """Tell whether a file is to be bound: a kernel in the language, without `ModelNew`."""
    if backend not in LANGUAGES or file.suffix not in _SUFFIXES[backend]:
        return False
    text = file.read_text(encoding="utf-8", errors="replace")
    return not source_defines_model_new(text) and (backend != "triton" or bool(triton_functions(text)))


def _bound(text: str, problem: Problem, facts: ProblemFacts, backend: BackendName) -> Extraction:
    kernel: BareKernel = read_triton(text) if backend == "triton" else read_native(text, backend)
    source = write_candidate(kernel, matched(kernel, facts), backend, problem)
    given = ", ".join(one.name for one in kernel.parameters)
    note = f"the kernel {kernel.name}({given}) has no ModelNew: hkbench launches it, {kernel.shape.value}"
    return Extraction(rule=ExtractionRule.BOUND, source=source, note=note)


def _kernel_blocks(blocks: list[Block], backend: BackendName) -> list[Block]:
    if backend == "triton":
        return [one for one in blocks if not one.is_cpp and "jit" in one.text and triton_functions(one.text)]
    if backend == "cpp":
        return [one for one in blocks if one.is_cpp]
    return [one for one in blocks if one.is_cpp and device_functions(one.text)]
