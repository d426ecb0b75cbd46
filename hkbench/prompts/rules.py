"""The evaluator's rules, said once, from the evaluator's own settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hkbench.backends import find_backend
from hkbench.device_kinds import model_of
from hkbench.records import BEYOND_KERNELBENCH, BackendName, DeviceKind, EvaluationSettings, Rule, RuleSet, Track
from hkbench.records.trust import FOREIGN_SHARE


def contract(
    settings: EvaluationSettings,
    tolerances: Mapping[str, float],
    device: DeviceKind,
    backend: BackendName,
    shapes: Sequence[Mapping[str, int | float]] = (),
) -> str:
    """Return the rules as a list, ready for a prompt: KernelBench's contract first, then what the evaluator adds to it.

    `tolerances` maps dtypes as torch prints them ("float32") to records.Tolerance.rtol; `shapes` are those that the
    problem names.
    """
    limits = ", ".join(f"{dtype} {rtol:g}" for dtype, rtol in tolerances.items())
    compared = "integers and booleans exactly"
    by_ours = settings.rules is RuleSet.HKBENCH
    if not by_ours:
        compared = f"torch.allclose with Model's own answer, atol = rtol{f': {limits}' if limits else ''}"
    elif limits:
        compared = (
            "|got - expected| <= rtol * |expected| + rtol * rms(expected) for every element, against a "
            f"higher-precision reference, rtol: {limits}; {compared}"
        )
    on_device = "the device's clock, from the release of the inputs until the current stream has done its work"
    clock = "wall clock" if model_of(device).candidates_device(0) == "cpu" else on_device
    rules = [
        f"One self-contained Python file defines `class ModelNew(nn.Module)`; its kernels are written in "
        f"{find_backend(backend).language}. It may use the standard library and torch, and reads no other file of "
        "yours.",
        "`ModelNew` takes the same constructor arguments and the same `forward` arguments as `Model`, and returns the "
        "same structure and shapes.",
        f"Correctness: {settings.trials} trials with different seeds; {compared}. {_VARIED if by_ours else _PLAIN}",
        f"Time: forward passes by {clock}, caches flushed before each, yours and the reference's in turn; "
        "the speed-up is the ratio of the medians and has to be at least 1.0. Building is not timed.",
        _shapes_text(settings, shapes),
    ]
    lines = [f"- {rule}" for rule in rules]
    lines += ["", "Fair play (a verdict that fails names the rule):"]
    let_pass = frozenset[Rule]() if by_ours else BEYOND_KERNELBENCH
    lines += [f"- {rule}: {text}" for rule, text in fair_play(settings, device).items() if rule not in let_pass]
    return "\n".join(lines)


def _shapes_text(settings: EvaluationSettings, shapes: Sequence[Mapping[str, int | float]]) -> str:
    """Return what counts beyond the shapes of the inputs that the prompt states."""
    if not settings.require_shapes:
        return "Shapes: correctness and speed-up are those at the shapes that are stated here; no other shape counts."
    named = "; ".join(", ".join(f"{name} = {size}" for name, size in shape.items()) for shape in shapes)
    these = f"at those with {named}, and " if named else ""
    return (
        f"Shapes: the speed-up is that at the shapes that are stated here, but the answer has to be right {these}at "
        "hidden ones, which change the constants of the problem's file: sizes that no usual tile divides, a size of 1, "
        "larger and smaller ones. `ModelNew` is made anew for each shape."
    )


def fair_play(settings: EvaluationSettings, device: DeviceKind) -> dict[Rule, str]:
    """Return what is demanded beyond KernelBench's own contract, rule by rule."""
    on_cpu = model_of(device).candidates_device(0) == "cpu"
    where = "on the CPU" if on_cpu else "on the device of the inputs"
    ended = "its work is done" if on_cpu else "its work is done or queued on the current stream"
    streams = "" if on_cpu else " and no streams that are not joined"
    texts = {
        Rule.FRESH_RESULTS: "inputs are fresh in every call, timed ones too, and timed outputs are checked; the result "
        "is computed from the inputs of this very call, and the same inputs give the same answer within the tolerance.",
        Rule.OWN_MEMORY: "outputs lie in memory of their own: not in an input's (unless the reference's do), not in "
        "that of an earlier result.",
        Rule.UNTOUCHED: "inputs, parameters and buffers stay as they were given.",
        Rule.SAME_PARAMETERS: "`ModelNew` has the parameters of `Model` with the same names and shapes (or, renamed, "
        "the same shapes in the same order); the reference's values are loaded into it.",
        Rule.PARAMETERS_CHANGE: "parameters change after construction, through `load_state_dict`; what is derived from "
        "them has to follow.",
        Rule.EXACT_FORM: f"outputs are plain torch tensors {where} with exactly the reference's dtypes.",
        Rule.NO_LEFTOVERS: f"when `forward` returns, {ended}: no threads or processes that go on{streams}, no lazy "
        "results, no changed clocks, no changed global torch settings. The evaluator's clocks have to agree.",
        Rule.OWN_KERNELS: _OWN if settings.track is Track.OWN else _ANY,
        Rule.CLEAN_LAUNCHES: "no launch fails: the device's last error is read after each call.",
        Rule.CONFINED: "no network, no files but the interpreter's, the toolchain's and the working folder, no other "
        f"processes; building has {settings.build_timeout:g} s, one forward pass {settings.run_timeout:g} s.",
    }
    if on_cpu:
        del texts[Rule.CLEAN_LAUNCHES]
    return texts


_VARIED = (
    "NaN or Inf only where the reference has them. Besides the problem's own inputs they use shifted and scaled ones, "
    "heavy tails and single large elements, as far as the reference itself stays finite; timed inputs have a few large "
    "ones too."
)
_PLAIN = (
    "Inputs are the problem's own. `ModelNew` is made under the seed that `Model` was made under, and nothing is "
    "loaded into it: draw its parameters in the same order."
)
_OWN = (
    "the kernels in this file do the operation: at least half of the time has to be in them. No torch operators, "
    "library calls or torch.compile in their place, also not as a fallback: what these compute may take "
    f"{FOREIGN_SHARE:.0%} of the reference's time or of yours, whichever is less, so that a library's product or "
    "convolution followed by a kernel of yours does not count. torch may allocate, reshape, copy, cast and launch."
)
_ANY = (
    "torch operators and library calls (rocBLAS, cuBLAS, MIOpen, cuDNN, oneDNN) count as well as kernels of your own; "
    "the share of the time in your own is reported."
)
