"""The cases of the corpus: attacks that have to fail and honest candidates that have to pass, each a file of its own.

A case is one file below `tests/attacks` or `tests/honest`. Its docstring is a title, `ID name: what it does` (any line
for an honest one), perhaps some prose, and these lines (`KEY: VALUE`, indented lines continue the value):

    problem: rowsum            a file of tests/corpus_problems, or with a slash a path below the project's folder
    device: cpu                cpu, cuda or both; emulated: HIP, for an emulated AMD GPU only
    backend: cpp               a backend of hkbench
    outcome: suspect|wrong_values   kinds of failure, any of them; for an honest case fast, slow or both.
                               `not_established`: right answers of which the verdict does not say that they are its own
    reason: REGEX              found in the failure's message (attacks only, required there)
    options: --track any       further options of eval.py
    twin: triton_row_sum       an honest case that does the same without the trick (attacks only): a verdict that is no
                               faster than its twin's, by the intervals, is as good as a failure

On an emulated GPU (`--device emulated:gfx942`) run those for `cuda` and `both` too, but for those that need a CUDA
compiler (backend cuda, by torch's extension builder); without one, backend cuda is backend hip. Nothing is timed there,
and nothing runs beside the host:

* An honest case has to come out `emulated`, or `unsupported` where its header says so (`emulated: unsupported`).
* An attack on the clock, or on the order of streams, gains nothing by its trick: `emulated` is as good as a failure
  where the outputs are right and the candidate's own kernels wrote them.
* Any other attack has to fail as it does elsewhere; or as `not_own`, which no time has to be measured for; as
  `forbidden`, by its text alone; as `unsupported`, with the name of what this device does not have; or as its header
  says, `emulated: KINDS`; `emulated` is one of them where what it goes round is not there on this device.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar

from hkbench.records import BackendName, FailureKind, Ownership, Status
from hkbench.registry import backend_names

ROOT = Path(__file__).resolve().parents[2]
ATTACKS, HONEST = ROOT / "tests" / "attacks", ROOT / "tests" / "honest"
PROBLEMS = ROOT / "tests" / "corpus_problems"

GOOD = frozenset({Status.FAST.value, Status.SLOW.value, Status.EMULATED.value})
EMULATED = "emulated"  #: how the names of emulated devices begin
#: However a candidate fails elsewhere, on an emulated GPU these are as good: they need no time and no other device.
EMULATED_KINDS = (FailureKind.NOT_OWN.value, FailureKind.UNSUPPORTED.value, FailureKind.FORBIDDEN.value)

CLASSES = {
    "T": "timing",
    "S": "semantics",
    "C": "caching",
    "H": "tampering",
    "N": "native",
    "B": "build",
    "P": "not the task",
    "E": "evasion",
    "F": "faults",
    "M": "emulated device",
}
_KEYS = ("problem", "device", "backend", "outcome", "reason", "options", "twin", "emulated")
_LINE = re.compile(rf"({'|'.join(_KEYS)}):[ \t]*(.*)")
_ATTACK_TITLE = re.compile(rf"[{''.join(CLASSES)}]\d+ [^:]+: .+")

Word = TypeVar("Word", bound=str)


class CorpusError(Exception):
    """A case file that cannot be used; the message names the file and what to correct."""


@dataclass(frozen=True)
class Case:
    path: Path
    title: str
    problem: Path
    device: Literal["cpu", "cuda", "both", "emulated"]
    backend: BackendName
    outcome: frozenset[str]
    reason: str | None
    options: tuple[str, ...]
    twin: Path | None = None
    needs_cuda: bool = False  #: a compiler for CUDA
    emulated: frozenset[str] = frozenset()  #: kinds that this case may end with on an emulated GPU besides
    instead: frozenset[str] = frozenset()  #: kinds that are as good as `outcome`, whatever their reason

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def honest(self) -> bool:
        return self.outcome <= GOOD

    @property
    def group(self) -> str:
        """The class of the attack, by the first letter of its identifier."""
        return "honest" if self.honest else CLASSES[self.title[0]]

    @property
    def by_the_clock(self) -> bool:
        """Whether its verdict may rest on times: other work on the machine could bring it about, or hide it."""
        return FailureKind.SUSPECT.value in self.outcome or self.twin is not None

    def runs_on(self, device: str) -> bool:
        if device.startswith(EMULATED):
            return self.device == EMULATED or (self.device in ("cuda", "both") and not self.needs_cuda)
        return self.device == device or (self.device == "both" and device in ("cpu", "cuda"))

    def on(self, device: str) -> Case:
        """Return the case as it is judged on a device: an emulated GPU has a rule of its own (see above)."""
        if not device.startswith(EMULATED) or self.device == EMULATED:
            return self
        if self.backend == "cuda":
            return replace(self, backend=_one_of(self.path, "backend", "hip", backend_names())).on(device)
        if self.honest:
            return replace(self, outcome=frozenset({Status.EMULATED.value}), instead=self.emulated)
        more = {*EMULATED_KINDS, *self.emulated}
        gains_nothing = self.group == CLASSES["T"] or Status.EMULATED.value in self.emulated
        harmless = {Status.EMULATED.value} if gains_nothing else set()
        return replace(self, outcome=self.outcome | harmless, instead=frozenset(more - harmless))


def load_cases(folders: Iterable[Path] = (ATTACKS, HONEST), only: str = "") -> list[Case]:
    """Return the cases of these folders whose `folder/name` the regular expression `only` finds, by name.

    Raises `CorpusError` for the first one that is not well-formed.
    """
    wanted = re.compile(only, re.IGNORECASE)
    paths = [path for folder in folders for path in sorted(folder.glob("*.py"))]
    return [parse(path) for path in paths if wanted.search(f"{path.parent.name}/{path.stem}")]


def parse(path: Path) -> Case:
    """Read the header of one case; the file is not run."""
    document = ast.get_docstring(ast.parse(path.read_text(), str(path)))
    if not document:
        raise CorpusError(f"{path}: has no docstring; a case begins with its header (tests/support/corpus_cases.py)")
    title, fields = document.splitlines()[0], _fields(path, document)
    honest = path.parent.name == HONEST.name
    if not honest and not _ATTACK_TITLE.fullmatch(title):
        form = f"[{''.join(CLASSES)}]NUMBER name: what it does"
        raise CorpusError(f"{path}: the first line is {title!r}; write `{form}`")
    required = {"problem", "device", "backend", "outcome"} | (set() if honest else {"reason"})
    if missing := sorted(required - fields.keys()):
        raise CorpusError(f"{path}: the header lacks {', '.join(missing)}")
    backend = _one_of(path, "backend", fields["backend"], backend_names())
    return Case(
        path=path,
        title=title,
        problem=_problem(path, fields["problem"]),
        device=_one_of(path, "device", fields["device"], ("cpu", "cuda", "both", "emulated")),
        backend=backend,
        outcome=_outcome(path, fields["outcome"], honest),
        reason=None if honest else _pattern(path, fields["reason"]),
        options=tuple(shlex.split(fields.get("options", ""))),
        twin=_twin(path, fields["twin"]) if "twin" in fields else None,
        emulated=_outcome(path, fields["emulated"], False, {Status.EMULATED.value})
        if "emulated" in fields
        else frozenset(),
        needs_cuda=backend == "cuda" and "torch.utils.cpp_extension" in path.read_text(),
    )


def _fields(path: Path, document: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    key = None
    for line in document.splitlines()[1:]:
        if match := _LINE.match(line):
            key = match.group(1)
            if key in fields:
                raise CorpusError(f"{path}: the header says {key} twice")
            fields[key] = match.group(2).strip()
        elif key and line.startswith(" "):
            fields[key] += " " + line.strip()
        else:
            key = None
    return fields


def _problem(path: Path, text: str) -> Path:
    file = ROOT / text if "/" in text else PROBLEMS / f"{text}.py"
    if not file.is_file():
        raise CorpusError(f"{path}: there is no problem {file.relative_to(ROOT)}")
    return file


def _twin(path: Path, name: str) -> Path:
    file = HONEST / f"{name}.py"
    if not file.is_file():
        raise CorpusError(f"{path}: there is no honest case {name}")
    return file


def _one_of(path: Path, key: str, text: str, allowed: Sequence[Word]) -> Word:
    for word in allowed:
        if text == word:
            return word
    raise CorpusError(f"{path}: {key} is {text!r}; it has to be one of {', '.join(allowed)}")


def _outcome(path: Path, text: str, honest: bool, more: Set[str] = frozenset()) -> frozenset[str]:
    kinds = {kind.value for kind in FailureKind} - {FailureKind.SLOW.value} | {Ownership.NOT_ESTABLISHED.value}
    allowed = (GOOD if honest else kinds) | more
    outcome = frozenset(part.strip() for part in text.split("|"))
    if unknown := sorted(outcome - allowed):
        raise CorpusError(f"{path}: outcome {', '.join(unknown)} is none of {', '.join(sorted(allowed))}")
    return outcome


def _pattern(path: Path, text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise CorpusError(f"{path}: the reason is not a regular expression: {error}") from error
    if not text:
        raise CorpusError(f"{path}: the reason is empty and would match anything")
    return text
