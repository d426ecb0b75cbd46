"""What is asked of a model, what comes back, and the candidate found in it."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from hkbench.records.base import FolderName, Record


class SampleKey(Record):
    """Name one generation of a run; the same key always gets the same recorded reply."""

    problem: FolderName
    attempt: int  #: counted from 1
    sample: int  #: counted from 1

    @property
    def folder(self) -> str:
        """The folder of its reply, below that of its attempt."""
        return f"sample_{self.sample}"


class Role(StrEnum):
    """What a model is asked as."""

    CODER = "coder"  #: writes kernels
    JUDGE = "judge"  #: reads a kernel's verdict and says what to change, in JSON
    COMPILE_REASONER = "compile_reasoner"  #: strategy agents: says how a kernel that does not compile is mended
    CORRECTNESS_REASONER = "correctness_reasoner"  #: and one whose answers are wrong
    PERFORMANCE_REASONER = "performance_reasoner"  #: and what keeps a correct one from its target


class AdviceKey(Record):
    """Name one call of a model that reads a kernel; the same key always gets the same recorded reply."""

    problem: FolderName
    attempt: int  #: whose prompt the advice goes into
    call: int  #: 1: the question; 2: the request to put the answer right
    role: Role = Role.JUDGE

    @property
    def folder(self) -> str:
        """The folder of its question and its reply, below that of its attempt."""
        return f"{self.role}_{self.call}"


CallKey = SampleKey | AdviceKey  #: names a call of a model


class Prompt(Record):
    """The text sent to the model, with where it came from."""

    text: str  #: the user message
    system: str | None = None  #: the system message; `None`: none is sent
    template: str  #: path of the prompt file below the prompts folder
    sha256: str  #: of the system message, if there is one, and the text after it


class Usage(Record):
    """Tokens of one call. `None` where the endpoint did not say; `reasoning` is part of `output`."""

    input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cached_input: int | None = None


class Reply(Record):
    """One answer of a model, as text."""

    text: str
    model: str
    finish_reason: str | None = None
    usage: Usage = Usage()
    seconds: float | None = None  #: wall time of the successful call
    tries: int = 1  #: calls made until one succeeded
    replayed: bool = False
    request_id: str | None = None


class ExtractionRule(StrEnum):
    """Which rule found the kernel in a reply."""

    ONLY_BLOCK = "only_block"  #: the reply has one code block that is a Python candidate
    LAST_MODEL_NEW = "last_model_new"  #: the last block that defines ModelNew, of several
    BARE_SOURCE = "bare_source"  #: no code block; the whole reply parses as Python and defines ModelNew
    UNCLOSED_BLOCK = "unclosed_block"  #: the fence was never closed (a reply cut at its token limit)
    APPLIED_DIFF = "applied_diff"  #: a unified diff that applies to the parent's code
    MAX_BLOCK = "largest_block"  #: no block defines ModelNew; the longest Python block is taken
    BOUND = "bound_kernel"  #: a kernel without ModelNew, which hkbench launches (hkbench/binding); `note` says how
    PROPOSED = "proposed"  #: there is no reply: the strategy made the code, and `note` says by what
    NONE = "none"  #: nothing that could be code


class Extraction(Record):
    """The code found in a reply; `source` is `None` when there is none, and `note` says why."""

    rule: ExtractionRule
    source: str | None
    note: str | None = None


class Candidate(Record):
    """One Python file with `ModelNew`."""

    source: str
    sha256: str
    key: SampleKey | None = None  #: absent for a file judged by eval.py


class Rates(Record):
    """Money for a million tokens."""

    input: float = Field(ge=0, allow_inf_nan=False, strict=True)
    cached_input: float | None = Field(default=None, ge=0, allow_inf_nan=False, strict=True)  #: `None`: as `input`
    output: float = Field(ge=0, allow_inf_nan=False, strict=True)  #: reasoning included


class Price(Record):
    """The price of a run's model, kept with the run so that its report stays what it was."""

    currency: str  #: "USD"
    entry: str  #: of the price file: the model's name, or the beginning of it and a star
    rates: Rates
    source: str  #: the file
