"""Arguments that several commands share."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Sequence
from pathlib import Path

from hkbench.errors import UsageError
from hkbench.judge.tolerances import RTOL_BY_NAME
from hkbench.records import Backend, DeviceKind, IsolationLevel, JudgeSettings, SizeSet, Track

PROMPTS = Path(__file__).resolve().parents[2] / "prompts"


def positive(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1, not {text!r}")
    return value


def whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a whole number, not {text!r}") from None


def finite(text: str) -> float:
    """A number; `nan` where the text is not one, or is infinite."""
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan


def number(text: str) -> float:
    value = finite(text)
    if math.isnan(value):
        raise argparse.ArgumentTypeError(f"must be a number, not {text!r}")
    return value


def not_negative(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return int(text)


def device_indices(text: str) -> tuple[int, ...]:
    """Parse "0,2" into the numbers of devices, each once."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise argparse.ArgumentTypeError(f"{text!r} is neither the number of a device nor several, as 0,2")
    return tuple(dict.fromkeys(map(int, parts)))


def above_zero(what: str) -> Callable[[str], float]:
    """Make the parser of a finite number above zero; `what` completes "must be a positive ..." in its error."""

    def parse(text: str) -> float:
        value = finite(text)
        if not value > 0:
            raise argparse.ArgumentTypeError(f"must be a positive {what}, not {text!r}")
        return value

    return parse


seconds = above_zero("number of seconds")
gibibytes = above_zero("number of GiB")


def add_numbers(parser: argparse.ArgumentParser, otherwise: str) -> None:
    """The numbers of problems. `otherwise`: what it means to leave them out, for the help."""
    parser.add_argument(
        "numbers",
        nargs="*",
        metavar="PROBLEM",
        help=f"which problems, by number: 3, FIRST LAST, 1-8, 1,4,7 or 1-3,9; {otherwise}",
    )


def add_device(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("device")
    group.add_argument(
        "--device",
        choices=["auto", *(kind.value for kind in DeviceKind)],
        help="where candidates are measured; auto takes a GPU that torch sees, else the CPU (default: auto)",
    )
    group.add_argument(
        "--device-index",
        type=device_indices,
        metavar="N[,N...]",
        help="measure on these devices only, by torch's numbers, as nvidia-smi or rocm-smi count where no "
        "CUDA_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES says otherwise (default: all of that kind)",
    )
    group.add_argument(
        "--backend",
        choices=[backend.value for backend in Backend],
        help="the language of the kernels (default: hipkittens on rocm, cuda on cuda, cpp on cpu)",
    )
    group.add_argument(
        "--sizes",
        choices=[sizes.value for sizes in SizeSet],
        help="which sizes of the problems (default: cpu on a CPU, else full; see docs/problems.md)",
    )


def add_build_only(parser: argparse.ArgumentParser, compiled: str) -> None:
    """`compiled`: what the command makes of it, for the help."""
    parser.add_argument(
        "--build-only", action="store_true", help=f"compile and link, run nothing on a device{compiled}"
    )
    more = "gfx942 (default), gfx950; hipkittens also gfx1250, gfx1100, gfx1201"
    parser.add_argument("--arch", metavar="GFX", help=f"architecture for --build-only: {more}")


def check_build_only(options: argparse.Namespace) -> None:
    """Raises UsageError for arguments that contradict each other."""
    if options.build_only and options.device_index is not None:
        raise UsageError("--device-index goes with a measurement; --build-only uses no device")
    if options.arch and not options.build_only:
        raise UsageError("--arch goes with --build-only; a measured candidate is built for the device it runs on")


def add_judge(parser: argparse.ArgumentParser) -> None:
    defaults = JudgeSettings()
    group = parser.add_argument_group("judge")
    group.add_argument(
        "--trials",
        type=positive,
        default=defaults.trials,
        metavar="N",
        help=f"correctness trials, each with fresh inputs (default: {defaults.trials})",
    )
    group.add_argument(
        "--timing-runs",
        type=positive,
        metavar="N",
        help="timed runs of each side, interleaved; up to three times as many while it is not settled "
        "which is faster (default: on a GPU 40 to 300, until the interval is narrow; 30 to 90 on a CPU)",
    )
    group.add_argument(
        "--timing-seconds",
        type=seconds,
        default=defaults.timing_seconds,
        metavar="S",
        help=f"no timed run is begun after S seconds (default: {defaults.timing_seconds:g})",
    )
    group.add_argument(
        "--warmup",
        type=not_negative,
        default=defaults.warmups,
        metavar="N",
        help=f"calls of each side before the timed ones (default: {defaults.warmups})",
    )
    group.add_argument(
        "--build-timeout",
        type=seconds,
        default=defaults.build_timeout,
        metavar="S",
        help=f"limit of a candidate's builds (default: {defaults.build_timeout:g})",
    )
    group.add_argument(
        "--load-timeout",
        type=seconds,
        default=defaults.load_timeout,
        metavar="S",
        help=f"limit of importing a candidate, builds apart (default: {defaults.load_timeout:g})",
    )
    group.add_argument(
        "--run-timeout",
        type=seconds,
        default=defaults.run_timeout,
        metavar="S",
        help=f"limit of one forward pass (default: {defaults.run_timeout:g})",
    )
    group.add_argument(
        "--evaluation-timeout",
        type=seconds,
        default=defaults.evaluation_timeout,
        metavar="S",
        help="limit of all trials, timed runs and checks of a candidate together, builds apart "
        f"(default: {defaults.evaluation_timeout:g})",
    )
    group.add_argument(
        "--memory-gib",
        type=gibibytes,
        metavar="G",
        help="memory limit of a candidate's processes (default: 80 %% of the machine's)",
    )
    group.add_argument(
        "--host-copies",
        action="store_true",
        help="pass inputs and outputs through host memory (for containers without shared GPU memory)",
    )
    group.add_argument(
        "--track",
        choices=[track.value for track in Track],
        default=defaults.track.value,
        help="own: the candidate's own kernels have to do the work; any: library calls may (default: "
        f"{defaults.track.value})",
    )
    group.add_argument(
        "--rtol",
        action="append",
        default=[],
        metavar="DTYPE=VALUE",
        help="another tolerance, as float32=1e-5 (default: docs/design.md)",
    )
    group.add_argument(
        "--require-isolation",
        choices=[level.value for level in IsolationLevel],
        default=defaults.require_isolation.value,
        help="judge nothing where candidates cannot be confined this far; `hkbench doctor` says how far they can "
        f"(default: {defaults.require_isolation.value})",
    )
    group.add_argument(
        "--stock-builds", action="store_true", help="build as torch alone does, without precompiled headers"
    )
    group.add_argument(
        "--prepare-builds",
        action="store_true",
        help="precompile what the candidates' builds could have used: eval.py at its end (up to a minute), a batch "
        "beside its work, on a GPU without being asked",
    )
    group.add_argument("--no-profile", action="store_true", help="do not profile correct but slow candidates")
    group.add_argument(
        "--profile-timeout",
        type=seconds,
        default=defaults.profile_timeout,
        metavar="S",
        help="limit of ncu or rocprof on one candidate, after which torch's profiler is used "
        f"(default: {defaults.profile_timeout:g})",
    )
    group.add_argument(
        "--keep-profile",
        type=Path,
        metavar="DIR",
        help="keep what ncu or rocprof wrote and printed, in folders below DIR",
    )


def judge_settings(options: argparse.Namespace) -> JudgeSettings:
    return JudgeSettings(
        trials=options.trials,
        timing_runs=options.timing_runs,
        timing_seconds=options.timing_seconds,
        warmups=options.warmup,
        build_timeout=options.build_timeout,
        load_timeout=options.load_timeout,
        run_timeout=options.run_timeout,
        evaluation_timeout=options.evaluation_timeout,
        memory_gib=options.memory_gib,
        track=Track(options.track),
        rtol=rtol_by_dtype(options.rtol),
        require_isolation=IsolationLevel(options.require_isolation),
        profile_slow=not options.no_profile,
        profile_timeout=options.profile_timeout,
        keep_profile=None if options.keep_profile is None else str(options.keep_profile.absolute()),
        host_copies=options.host_copies,
        stock_builds=options.stock_builds,
        prepare_builds=options.prepare_builds,
    )


def rtol_by_dtype(texts: Sequence[str]) -> dict[str, float]:
    """ "float32=1e-5" as dtype and value. UsageError for a dtype that is compared exactly, and for no tolerance."""
    found: dict[str, float] = {}
    for text in texts:
        dtype, _, value = text.partition("=")
        try:
            rtol = float(value)
        except ValueError:
            rtol = 0.0
        if dtype not in RTOL_BY_NAME or not 0.0 < rtol < 1.0:
            known = ", ".join(RTOL_BY_NAME)
            raise UsageError(f"{text!r} is not DTYPE=VALUE with a dtype of {known} and a value between 0 and 1")
        found[dtype] = rtol
    return found


def add_base_url(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--base-url",
        metavar="URL",
        help="an OpenAI-compatible endpoint (default: $LLM_GATEWAY_URL, $OPENAI_BASE_URL, base_url in hkbench.toml)",
    )


def add_model(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("model")
    group.add_argument(
        "--model",
        metavar="NAME",
        help="the model's name at the endpoint (default: $LLM_MODEL, model in hkbench.toml; not needed with --replay)",
    )
    add_base_url(group)
    group.add_argument(
        "--api",
        choices=["chat", "responses"],
        default="chat",
        help="chat completions or the Responses API (default: chat)",
    )
    group.add_argument("--temperature", type=number)
    group.add_argument("--max-reply-tokens", type=positive, metavar="N", help="limit of one reply's output tokens")
    group.add_argument("--reasoning-effort", metavar="LEVEL")
    group.add_argument(
        "--model-timeout", type=seconds, default=1200.0, metavar="S", help="limit of one call (default: 1200)"
    )
    group.add_argument("--no-stream", action="store_true", help="for gateways that refuse streamed replies")
    group.add_argument(
        "--concurrency",
        type=positive,
        default=8,
        metavar="N",
        help="model calls, and problems, under way at once (default: 8)",
    )
    group.add_argument(
        "--replay",
        type=Path,
        metavar="DIR",
        help="serve recorded replies (a results folder, or examples/replies) instead of calling a model",
    )


def add_prompts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--prompts",
        type=Path,
        default=PROMPTS,
        metavar="DIR",
        help="folder with config.json and the templates (default: the project's prompts/)",
    )


def device_kind(options: argparse.Namespace) -> DeviceKind | None:
    return None if options.device in (None, "auto") else DeviceKind(options.device)


DEFAULT_BACKEND = {
    DeviceKind.ROCM: Backend.HIPKITTENS,
    DeviceKind.CUDA: Backend.CUDA,
    DeviceKind.CPU: Backend.CPP,
}


def chosen_backend(options: argparse.Namespace, kind: DeviceKind) -> Backend:
    """The backend that was named, else the device's own."""
    return Backend(options.backend) if options.backend else DEFAULT_BACKEND[kind]


def chosen_sizes(options: argparse.Namespace) -> SizeSet | None:
    return SizeSet(options.sizes) if options.sizes else None
