"""A run's cards on the nodes of a cluster: the same evaluator a card, its work moved when a node is lost."""

from hkbench.cluster.evaluator import ClusterEvaluator

__all__ = ["ClusterEvaluator"]
