"""Static, advisory reading of a candidate: what stands out, where, and why it matters."""

from hkbench.reading.reader import read_candidate
from hkbench.reading.rules import RULES, StaticRule, table

__all__ = ["RULES", "StaticRule", "read_candidate", "table"]
