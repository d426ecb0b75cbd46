"""The judge's rules, said once, from the judge's own settings."""

from __future__ import annotations

from collections.abc import Mapping

from hkbench.records import Backend, DeviceKind

_LANGUAGE = {
    Backend.HIPKITTENS: "HipKittens (HIP C++ with kittens.cuh)",
    Backend.HIP: "HIP C++",
    Backend.CUDA: "CUDA C++",
    Backend.TRITON: "Triton",
    Backend.CPP: "C++ on the CPU",
}


def contract(trials: int, tolerances: Mapping[str, float], device: DeviceKind, backend: Backend) -> str:
    """The rules as a list, ready for a prompt.

    `tolerances` maps dtypes as torch prints them ("float32") to records.Tolerance.rtol.
    """
    where = "CPU" if device is DeviceKind.CPU else "same device as the inputs"
    limits = ", ".join(f"{dtype} {rtol:g}" for dtype, rtol in tolerances.items())
    compared = "integers and booleans exactly"
    if limits:
        compared = (
            "|got - expected| <= rtol * |expected| + rtol * rms(expected) for every element, against a "
            f"higher-precision reference, rtol: {limits}; {compared}"
        )
    ended = "its work is done or queued on the current stream: no background threads, no other streams running"
    if device is DeviceKind.CPU:
        ended = "its work is done: no background threads of yours go on"
    clock = "wall clock" if device is DeviceKind.CPU else "device events on the current stream"
    rules = (
        f"One self-contained Python file defines `class ModelNew(nn.Module)`; its kernels are written in "
        f"{_LANGUAGE[backend]}. It may use the standard library and torch, and reads no other file of yours.",
        "`ModelNew` takes the same constructor arguments and the same `forward` arguments as `Model`, and has "
        "parameters and buffers of the same names and shapes: the reference's `state_dict` is loaded into it.",
        "The result has the reference's structure, shapes and dtypes, is computed afresh on every call, and lies "
        f"on the {where}. Inputs and parameters are not modified.",
        f"Correctness: {trials} trials with different seeds; {compared}. NaN or Inf only where the reference has them.",
        f"Time: forward passes by {clock}, caches flushed before each, yours and the reference's in turn; "
        "the speed-up is the ratio of the medians and has to be at least 1.0. Building is not timed.",
        f"When `forward` returns, {ended}. No results are kept from one call to the next, and no global torch "
        "setting is changed.",
    )
    return "\n".join(f"- {rule}" for rule in rules)
