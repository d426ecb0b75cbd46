"""The options of a run whose candidates are measured on the nodes of a cluster."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from hkbench.cli.arguments import device_kind
from hkbench.cli.runs import tell
from hkbench.cluster import ClusterEvaluator
from hkbench.errors import UsageError
from hkbench.headline import card_lines
from hkbench.records import AnyEvent, BackendName, EvaluationSettings, NodeFacts, Problem, RunFacts, SizeSet
from hkbench.store.settings import names_text


def add_cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="measure on the cards of a Ray cluster: HOST:PORT of its head, or auto for the one of this machine, which "
        "is started where none runs (docs/cluster.md; needs hkbench[cluster])",
    )
    parser.add_argument(
        "--mixed-cards",
        action="store_true",
        help="with --cluster, measure on cards of several models, whose speed-ups are then counted as one",
    )
    parser.add_argument(
        "--check-cards",
        action="store_true",
        help="with --cluster, have each card judge the first problem's reference against itself before all else, and "
        "say how far the cards differ",
    )


def check_cluster(options: argparse.Namespace) -> None:
    """Raise UsageError for what does not go with --cluster, or only with it."""
    if options.cluster is None:
        if options.mixed_cards:
            raise UsageError("--mixed-cards goes with --cluster; this machine's devices are all of one kind")
        if options.check_cards:
            raise UsageError("--check-cards goes with --cluster, whose cards may differ")
        return
    if options.build_only:
        raise UsageError("--cluster measures, and --build-only only compiles: leave out one of them")
    if options.device_index is not None:
        raise UsageError(
            "--device-index names devices of this machine, and --cluster measures on others: start the nodes with the "
            "GPUs that they are to lend (`ray start --num-gpus`, CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES)"
        )


def cluster_evaluator(
    options: argparse.Namespace, settings: EvaluationSettings, sizes: SizeSet | None
) -> ClusterEvaluator:
    """Join the cluster; its cards are not opened yet. Raises what `open_site` raises."""
    from hkbench.cluster.ray_site import open_site  # here, because no other command should pay for Ray's parts

    site = open_site(options.cluster)
    return ClusterEvaluator(
        site, device_kind(options), settings, sizes, options.builds, mixed=options.mixed_cards, tell=tell
    )


async def begin_on_cards(
    evaluator: ClusterEvaluator, record: Callable[[AnyEvent], None], check: Problem | None, backend: BackendName
) -> None:
    """Have the journal told of the cards from now on, and check them on the reference of a problem, if it is given."""
    evaluator.record(record)
    if check is not None:
        found = await evaluator.check_cards(check, backend)
        record(found)
        for line in card_lines(found):
            tell(line)


def on_nodes(facts: RunFacts, nodes: tuple[NodeFacts, ...]) -> RunFacts:
    """Return a run's facts with those of the nodes that measure; its host is the controller's."""
    names = names_text([node.name for node in nodes])
    return facts.model_copy(update={"nodes": nodes, "hardware": facts.hardware | {"nodes": f"{len(nodes)}: {names}"}})
