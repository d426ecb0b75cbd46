"""Asking a model, serving recorded replies instead, and finding the code in what comes back."""

from hkbench.llm.client import ModelClient
from hkbench.llm.extract import extract
from hkbench.llm.key import api_key, base_url
from hkbench.llm.openai_client import OpenAIClient
from hkbench.llm.prices import find_price
from hkbench.llm.replay import ReplayClient
from hkbench.llm.settings import ModelSettings
from hkbench.llm.structured import ReadAnswer, read_answer, shape_of

__all__ = [
    "ModelClient",
    "ModelSettings",
    "OpenAIClient",
    "ReadAnswer",
    "ReplayClient",
    "api_key",
    "base_url",
    "extract",
    "find_price",
    "read_answer",
    "shape_of",
]
