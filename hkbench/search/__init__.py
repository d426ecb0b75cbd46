"""Search over a graph of states: what to try next, from what was measured. No process, no torch, no disk.

A searcher proposes what to measure (`propose`) and is told what came of it (`tell`); what a state is, and how one is
made of another, is the caller's (`Space`).
"""

from hkbench.search.baselines import Beam, Greedy, Uniform
from hkbench.search.constants import DEFAULTS, Constants
from hkbench.search.graph import Graph, Node
from hkbench.search.graph_search import GraphSearch
from hkbench.search.requests import Kind, Move, Outcome, Request, Size, Space
from hkbench.search.searcher import Searcher, SearchMismatch, replay

__all__ = [
    "Beam", "Constants", "DEFAULTS", "Graph", "GraphSearch", "Greedy", "Kind", "Move", "Node", "Outcome", "Request",
    "SearchMismatch", "Searcher", "Size", "Space", "Uniform", "replay",
]  # fmt: skip
