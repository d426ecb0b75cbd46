"""The candidate in a reply."""

from __future__ import annotations

from hkbench.binding import bind_reply, may_be_bound
from hkbench.lab.prompting import Prompter
from hkbench.llm.extract import extract
from hkbench.records import Extraction, Problem, Reply


async def found_in(reply: Reply, parent_source: str | None, problem: Problem, prompter: Prompter) -> Extraction:
    """Return the code in a reply; a kernel without `ModelNew` is bound to the problem, where that is certain."""
    found = extract(reply.text, parent_source)
    if not may_be_bound(reply.text, found, prompter.backend):
        return found
    return bind_reply(reply.text, found, problem, await prompter.facts(problem), prompter.backend)
