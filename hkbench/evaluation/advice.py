"""What a failure by one of our rules says to who knows KernelBench's: which rule asks for more, and the one change."""

from __future__ import annotations

from hkbench.records import Rule


def beyond(rule: Rule, change: str) -> str:
    """Return the end of a message that names the rule; `change` is an imperative."""
    return f"KernelBench does not ask for this, the rule {rule} does: {change}"


FRESH_OUTPUT = beyond(
    Rule.OWN_MEMORY,
    "allocate the output in each forward (torch.empty), or return a copy (.clone()) of a buffer that is kept or of a "
    "CUDA graph's output",
)
NOT_THE_INPUT = beyond(Rule.OWN_MEMORY, "write the result into a tensor that forward allocates (torch.empty)")
SAME_PARAMETERS = beyond(
    Rule.SAME_PARAMETERS,
    "keep what is derived from a parameter as a plain attribute in place of an nn.Parameter, and make it anew in "
    "forward when the parameter's _version or data_ptr() has changed",
)


def renew(name: str) -> str:
    """Return the advice for a copy of a parameter that was not made anew."""
    return beyond(
        Rule.PARAMETERS_CHANGE,
        f"derive it from {name} in each forward, or anew when {name}'s _version or data_ptr() has changed",
    )
