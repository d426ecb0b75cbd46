"""Spaces of Triton kernels of which every state was measured (measure_space.py), and which rules edit."""

from __future__ import annotations

import csv
import gzip
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.search_figures import NEAR, Figure, Run, difference
from hkbench.moves import KernelSpace
from hkbench.moves.base import Site
from hkbench.search import Outcome, Request
from hkbench.specs import KernelSpec, candidate, load_spec
from hkbench.stats import bootstrap_interval

ROOT = Path(__file__).resolve().parents[1]
TABLES = ROOT / "benchmarks" / "measured"
SHARE = 0.2  #: of the states of a space, after which the best is compared with the optimum
EARLY = 20  #: evaluations, likewise
_TILES = ("32", "64", "128", "256")
_PRODUCT = {"num_stages": ("2", "3", "4", "5"), "BLOCK_M": _TILES, "BLOCK_N": _TILES, "num_warps": ("4", "8")}
#: Of each kernel the sites that are written anew, and how: at most 600 states. None: in every way that a rule knows.
CHOICES: dict[str, dict[str, Sequence[str] | None]] = {
    "matmul_triton": {**_PRODUCT, "BLOCK_K": ("16", "32", "64", "128")},
    "dequant_gemm_triton": {**_PRODUCT, "BLOCK_K": _TILES},
    "attention_triton": {
        "num_stages": None,
        "BLOCK_M": ("16", "32", "64", "128", "256"),
        "BLOCK_N": ("16", "32", "64", "128"),
        "num_warps": ("2", "4", "8"),
        "exponentials": None,
    },
    "layer_norm_triton": {"num_stages": None, "BLOCK": None, "num_warps": None, "cache of load 5": None},
    "softmax_triton": {"BLOCK": None, "num_warps": None, "cache of load 1": None, "cache of load 3": None},
    "row_sum_atomic_triton": {"num_stages": None, "BLOCK": None, "num_warps": None, "cache of load 1": None},
}


class NarrowSpace(KernelSpace):
    """The space of a spec's kernel, of which some sites are written anew, and some of their choices are taken."""

    def __init__(self, spec: KernelSpec, choices: Mapping[str, Sequence[str] | None]) -> None:
        self.name = spec.name
        self._kept = choices
        super().__init__(candidate(spec), spec.language, by_rule=True, by_model=False)
        sites = self._states[self.start].base.sites
        self.labels = tuple(site.label for site in sites)
        self.choices = tuple(site.choices for site in sites)
        if missing := set(choices) - set(self.labels):
            raise ValueError(f"{spec.name} has no {', '.join(sorted(missing))}: there are {', '.join(self.labels)}")

    def _sites(self, source: str) -> tuple[Site, ...]:
        found = super()._sites(source)
        return tuple(_narrowed(site, self._kept[site.label]) for site in found if site.label in self._kept)

    def texts(self, key: str) -> tuple[str, ...]:
        """Return what stands at each site of a state."""
        state = self._states[key]
        return tuple(site.choices[chosen] for site, chosen in zip(state.base.sites, state.chosen, strict=True))

    def all_states(self) -> list[tuple[str, ...]]:
        """Return the texts of all states."""
        return list(itertools.product(*self.choices))

    def source_of(self, texts: Sequence[str]) -> str:
        """Return the source in which these texts stand at the sites."""
        base = self._states[self.start].base
        return base.written([site.choices.index(text) for site, text in zip(base.sites, texts, strict=True)])


def _narrowed(site: Site, kept: Sequence[str] | None) -> Site:
    if kept is None:
        return site
    places = [site.choices.index(choice) for choice in kept]
    texts = tuple(site.texts[place] for place in places)
    return replace(site, choices=tuple(kept), now=places.index(site.now), texts=texts)


def spec_of(name: str) -> KernelSpec:
    return load_spec(ROOT / "kernels" / f"{name}.json")


class MeasuredSpace(NarrowSpace):
    """A space that answers with the times of a table: a column a site, the last one seconds, empty where it failed."""

    def __init__(self, path: Path) -> None:
        with gzip.open(path, "rt") as file:
            (*labels, _), *lines = csv.reader(file)
        name = path.name.removesuffix(".csv.gz").rpartition("_")[0]
        columns = {label: tuple(dict.fromkeys(line[place] for line in lines)) for place, label in enumerate(labels)}
        super().__init__(spec_of(name), columns)
        self.seconds = {tuple(line[:-1]): float(line[-1]) if line[-1] else None for line in lines}
        self.best = min(seconds for seconds in self.seconds.values() if seconds is not None)

    def measure(self, key: str) -> Outcome:
        return Outcome(key, self.seconds[self.texts(key)])

    def outcome(self, request: Request) -> Outcome:
        assert request.move.to is not None
        return self.measure(request.move.to)


def load(folder: Path = TABLES) -> list[MeasuredSpace]:
    """Read all tables of a folder."""
    return [MeasuredSpace(path) for path in sorted(folder.glob("*.csv.gz"))]


def measured_table(spaces: Sequence[MeasuredSpace], runs: Sequence[Run], against: str) -> str:
    """Return tables: the spaces, and by searcher the share of each optimum after 20 evaluations and after `SHARE`."""
    lines = [
        "| kernel | states | of them failed | optimum over start | within 5 % of the optimum |",
        "| --- | --- | --- | --- | --- |",
    ]
    for space in spaces:
        times = [seconds for seconds in space.seconds.values() if seconds is not None]
        start = space.seconds[space.texts(space.start)]
        assert start is not None
        near = sum(seconds <= NEAR * space.best for seconds in times)
        counts = f"{len(space.seconds)} | {len(space.seconds) - len(times)}"
        lines.append(f"| {space.name} | {counts} | x{start / space.best:.2f} | {near} |")
    budgets = {
        f"{EARLY} evaluations": {space.name: EARLY for space in spaces},
        f"{SHARE:.0%} of the states": {space.name: int(SHARE * len(space.seconds)) for space in spaces},
    }
    for title, budget in budgets.items():
        lines += ["", f"After {title}:", "", *_shares(runs, against, budget)]
    return "\n".join(lines) + "\n"


def _shares(runs: Sequence[Run], against: str, budget: Mapping[str, int]) -> list[str]:
    """Return a row a searcher: the mean share of each optimum, and what the searcher `against` is better by."""
    figure = Figure("share", lambda run: run.after(budget[run.space]), lambda value: math.exp(-value), True)
    ratio = replace(figure, shown=math.exp)
    lines = [
        f"| searcher | {' | '.join(budget)} | {against} against it: time |",
        f"| --- {'| --- ' * len(budget)}| --- |",
    ]
    for name in dict.fromkeys(run.searcher for run in runs):
        own = [run for run in runs if run.searcher == name]
        cells = [name, *(_share([run for run in own if run.space == space], figure) for space in budget)]
        cells.append("" if name == against else difference(runs, against, name, ratio))
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _share(runs: Sequence[Run], figure: Figure) -> str:
    found = bootstrap_interval([figure.of(run) for run in runs], lambda values: float(values.mean()))
    return f"{figure.shown(found.value):.1%} [{figure.shown(found.high):.1%}, {figure.shown(found.low):.1%}]"
