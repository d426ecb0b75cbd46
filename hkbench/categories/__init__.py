"""What kind of problem it is, in which stages such a one is optimised, and when a stage or the problem is over.

Data, not code: prompts/categories.toml; the format is in docs/categories.md.
"""

from hkbench.categories.book import GENERIC, Advice, Category, CategoryBook, Classification, Match, StageGuide
from hkbench.categories.key_metrics import key_metrics, metric_names
from hkbench.categories.load import load_categories
from hkbench.categories.rules import STAGES, Condition, Ridge, Rule, Situation, first, situation

__all__ = [
    "GENERIC", "Advice", "Category", "CategoryBook", "Classification", "Match", "StageGuide",
    "key_metrics", "metric_names",
    "load_categories",
    "STAGES", "Condition", "Ridge", "Rule", "Situation", "first", "situation",
]  # fmt: skip
