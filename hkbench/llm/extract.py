"""Find the candidate in a reply, and say by which rule."""

from __future__ import annotations

import re

from hkbench.llm.blocks import Block, code_blocks, source_defines_model_new
from hkbench.llm.diff import DiffError, apply_diff, looks_like_diff
from hkbench.records import Extraction, ExtractionRule

_THINKING = re.compile(r"^[ \t]*<(think|thinking)>.*?(?:</\1>|\Z)", re.DOTALL | re.MULTILINE)
_THINKING_END = re.compile(r"</(?:think|thinking)>")
_THINKING_TAG = re.compile(r"</?(?:think|thinking)>")
_FENCE_LINE = re.compile(r"^[ \t]*(?:`{3,}+|~{3,}+)[^`\n]*$\n?", re.MULTILINE)


def extract(reply_text: str, parent_source: str | None) -> Extraction:
    """Return the code in a reply. `parent_source` is what a diff applies to: the code that the prompt showed.

    Never raises: what holds no code gives the rule NONE and a note. Thinking (`<think>`) is looked into only
    when there is no code outside it. Lines end in LF in the result; nothing else in the code is changed.
    """
    if "\0" in reply_text:
        return _none("the reply holds NUL bytes")
    if _has_surrogates(reply_text):
        return _none("the reply is not valid Unicode text")
    text = reply_text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        return _none("the reply is empty")
    said = _without_thinking(text)
    found = _search(said, parent_source)
    if found is None and said != text:
        found = _search(_THINKING_TAG.sub("\n", text), parent_source)
        if found is not None and found.source is not None:
            note = "the code stood inside the model's thinking"
            found = Extraction(
                rule=found.rule, source=found.source, note=f"{note}; {found.note}" if found.note else note
            )
    return found or _none("the reply holds no Python code, in a block or as a whole")


def _search(text: str, parent: str | None) -> Extraction | None:
    """Return the code in `text`; None when nothing in it is code, NONE with a note when the code is of no use."""
    blocks = code_blocks(text)
    if not blocks:
        return _bare(text, parent)
    valid = [b for b in blocks if b.defines_model_new]
    patched = _patched([b.text for b in blocks if b.is_diff], parent)
    if valid:
        found = _of_model_new(valid[-1], only=len(blocks) == 1)
        return found if patched is None else _beside_diff(found, patched)
    if patched is not None and patched.source is not None:
        return patched
    named = [b for b in blocks if b.names_model_new]
    if named:
        return _of_model_new(named[-1], only=len(blocks) == 1)
    if patched is not None:
        return patched
    return _longest(blocks)


def _of_model_new(block: Block, *, only: bool) -> Extraction:
    if not block.closed:
        return Extraction(rule=ExtractionRule.UNCLOSED_BLOCK, source=block.text, note="the code block was never closed")
    rule = ExtractionRule.ONLY_BLOCK if only else ExtractionRule.LAST_MODEL_NEW
    return Extraction(rule=rule, source=block.text)


def _beside_diff(whole: Extraction, patched: Extraction) -> Extraction:
    """Say of a whole file what became of the diff in the same reply."""
    said = "not the diff beside it" if patched.source is not None else f"for {patched.note}"
    note = f"the whole file is taken, {said}"
    return whole.model_copy(update={"note": note if whole.note is None else f"{whole.note}; {note}"})


def _patched(diffs: list[str], parent: str | None) -> Extraction | None:
    """Return the parent with all diffs applied; None when there is no diff."""
    if not diffs:
        return None
    try:
        source = apply_diff("\n".join(diffs), parent or "")
    except DiffError as error:
        if parent is None:
            return _none("the reply is a diff, and there is no earlier code for it to apply to")
        return _none(f"the reply is a diff that does not apply: {error}")
    return Extraction(rule=ExtractionRule.APPLIED_DIFF, source=source)


def _longest(blocks: list[Block]) -> Extraction | None:
    """Return the longest Python block where none defines ModelNew, for the evaluator to say what it lacks."""
    for block in sorted(blocks, key=lambda b: len(b.text), reverse=True):
        if block.is_python():
            rule = ExtractionRule.MAX_BLOCK if block.closed else ExtractionRule.UNCLOSED_BLOCK
            return Extraction(rule=rule, source=block.text, note="no code block defines ModelNew")
    if any(b.is_cpp for b in blocks):
        return _none("the reply holds C++ but no Python file with ModelNew")
    return None


def _bare(text: str, parent: str | None) -> Extraction | None:
    """Return a reply without a code block: Python as it stands, or a diff. A lone fence line is passed over."""
    bare = _FENCE_LINE.sub("", text).strip("\n") + "\n"
    if source_defines_model_new(bare):
        return Extraction(rule=ExtractionRule.BARE_SOURCE, source=bare)
    if looks_like_diff(text):
        return _patched([text], parent)
    return None


def _without_thinking(text: str) -> str:
    """Return `text` less its thinking sections; one may begin before the reply does, its tag in the prompt."""
    said = _THINKING.sub("\n", text)
    ends = list(_THINKING_END.finditer(said))
    return said[ends[-1].end() :] if ends else said


def _has_surrogates(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def _none(note: str) -> Extraction:
    return Extraction(rule=ExtractionRule.NONE, source=None, note=note)
