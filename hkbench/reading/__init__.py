"""Static, advisory reading of a candidate: what stands out, where, and why it matters."""

from hkbench.reading.apart import Reading, read_apart
from hkbench.reading.budget import SOURCE_BYTES
from hkbench.reading.lines import SourceLines, placed
from hkbench.reading.reader import read_candidate
from hkbench.reading.rules import RULES, StaticRule, table

__all__ = [
    "RULES", "SOURCE_BYTES", "Reading", "SourceLines", "StaticRule", "placed", "read_apart", "read_candidate", "table",
]  # fmt: skip
