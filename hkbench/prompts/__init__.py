"""Which prompt a problem gets, what is put into it, and what the next one says about a failure."""

from hkbench.prompts.config import BackendRules, PromptBook, PromptConfig, load_prompts
from hkbench.prompts.context import (
    AgentHint,
    DeviceSheet,
    HintTopic,
    PromptContext,
    Question,
    Reflection,
    StageSheet,
    SynthesisTask,
)
from hkbench.prompts.history import Tried, with_history
from hkbench.prompts.reflection import hints_of, pitfall_as_shown, reflect_on, with_advice, with_remedies
from hkbench.prompts.render import render
from hkbench.prompts.rules import contract
from hkbench.prompts.text import clean

__all__ = [
    "BackendRules", "PromptBook", "PromptConfig", "load_prompts",
    "AgentHint", "DeviceSheet", "HintTopic", "PromptContext", "Question", "Reflection", "StageSheet", "SynthesisTask",
    "hints_of", "pitfall_as_shown", "reflect_on", "with_advice", "with_remedies",
    "Tried", "with_history",
    "render",
    "contract",
    "clean",
]  # fmt: skip
