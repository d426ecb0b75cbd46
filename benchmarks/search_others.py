"""Other people's searchers on recorded spaces: optuna's TPE and kernel-tuner's strategies, where they are installed."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import json
import random
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.search_spaces import Recorded, key_of

State = tuple[int, ...]
#: Returns the states that were evaluated, each once, in their order. Arguments: space, seed, evaluations.
Rival = Callable[[Recorded, int, int], list[State]]
KERNEL_TUNER = ("greedy_ils", "hybrid_vndx", "adaptive_tabu_greywolf", "genetic_algorithm")
TRIES = 3  #: suggestions for each evaluation that is wanted: some are not in the space, or were had before


def rivals() -> dict[str, Rival]:
    """Return those that are installed."""
    found: dict[str, Rival] = {}
    if importlib.util.find_spec("optuna"):
        found["optuna TPE"] = tpe
    if importlib.util.find_spec("kernel_tuner"):
        found |= {f"kernel-tuner {name}": strategy(name) for name in KERNEL_TUNER}
    return found


def tpe(space: Recorded, seed: int, evaluations: int) -> list[State]:
    """What is not in the space is told as failed, and costs nothing."""
    optuna: Any = importlib.import_module("optuna")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed, multivariate=True))
        order: dict[State, None] = {}
        for _ in range(TRIES * evaluations):
            if len(order) >= evaluations:
                break
            trial = study.ask()
            state = tuple(
                trial.suggest_int(name, 0, len(values) - 1)
                for name, values in zip(space.parameters, space.values, strict=True)
            )
            time = space.times.get(state)
            if state in space.times:
                order.setdefault(state)
            study.tell(trial, time, state=None if time is not None else optuna.trial.TrialState.FAIL)
    return list(order)


def strategy(name: str) -> Rival:
    """Return a strategy of kernel-tuner with its own constants, in simulation mode."""

    def run(space: Recorded, seed: int, evaluations: int) -> list[State]:
        tuner: Any = importlib.import_module("kernel_tuner")
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()):
            cache = Path(folder) / "cache.json"
            cache.write_text(json.dumps(cache_of(space)))
            random.seed(seed)  # its strategies draw from the generators of both modules
            np.random.seed(seed)
            seen = Recorder(space)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tuner.tune_kernel(
                    space.name,
                    "__global__ void none() {}",
                    1,
                    [],
                    choices(space),
                    restrictions=seen.valid,
                    lang="CUDA",
                    strategy=name,
                    strategy_options={"max_fevals": evaluations},
                    cache=str(cache),
                    simulation_mode=True,
                    quiet=True,
                    metrics={"seen": seen.metric},
                    seed=seed,
                )  # fmt: skip
        return list(seen.order)[:evaluations]

    return run


class Recorder:
    """Notes the configurations that kernel-tuner evaluates, by a metric that it asks for of each."""

    def __init__(self, space: Recorded) -> None:
        self._space = space
        self.order: dict[State, None] = {}

    def valid(self, config: dict[str, int]) -> bool:
        return tuple(config[name] for name in self._space.parameters) in self._space.times

    def metric(self, config: dict[str, Any]) -> float:
        self.order.setdefault(tuple(config[name] for name in self._space.parameters))
        return 0.0


def cache_of(space: Recorded) -> dict[str, Any]:
    """Return a space as a cache of kernel-tuner: its times, and an error where there is none."""
    cache = {}
    for state, time in space.times.items():
        entry: dict[str, Any] = dict(zip(space.parameters, state, strict=True))
        entry |= {"time": "RuntimeFailedConfig" if time is None else time}
        entry |= {"compile_time": 0, "verification_time": 0, "benchmark_time": 0}
        cache[key_of(state)] = entry
    return {
        "device_name": "recorded",
        "kernel_name": space.name,
        "problem_size": 1,
        "tune_params_keys": space.parameters,
        "tune_params": choices(space),
        "objective": "time",
        "cache": cache,
    }


def choices(space: Recorded) -> dict[str, list[int]]:
    """Return the values of each parameter, by their places."""
    return {name: list(range(len(values))) for name, values in zip(space.parameters, space.values, strict=True)}
