"""Arguments that several commands share."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path

from hkbench.errors import UsageError
from hkbench.records import BackendName, DeviceKind, SizeSet
from hkbench.registry import BACKENDS, backend_names, default_backend
from hkbench.shipped import shipped_folder

PROMPTS = shipped_folder("prompts")


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
    """Return a number; `nan` where the text is not one, or is infinite."""
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


def add_numbers(parser: argparse.ArgumentParser, otherwise: str) -> None:
    """Add the numbers of problems. `otherwise`: what it means to leave them out, for the help."""
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
        choices=["auto", *(kind.value for kind in DeviceKind.known())],
        help="where candidates are measured; auto takes a GPU that torch sees, else the CPU (default: auto)",
    )
    group.add_argument(
        "--device-index",
        type=device_indices,
        metavar="N[,N...]",
        help="measure on these devices only, by torch's numbers, as nvidia-smi or rocm-smi count where no "
        "CUDA_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES says otherwise (default: all of that kind)",
    )
    defaults = ", ".join(f"{entry.name} on {entry.default_on}" for entry in BACKENDS if entry.default_on is not None)
    group.add_argument(
        "--backend",
        choices=backend_names(),
        help=f"the language of the kernels (default: {defaults})",
    )
    group.add_argument(
        "--sizes",
        choices=[sizes.value for sizes in SizeSet],
        help="which sizes of the problems (default: cpu on a CPU, emulated on an emulated GPU, else full; "
        "see docs/problems.md)",
    )


def add_build_only(parser: argparse.ArgumentParser, compiled: str) -> None:
    """Add the options; `compiled`: what the command makes of it, for the help."""
    parser.add_argument(
        "--build-only", action="store_true", help=f"compile and link, run nothing on a device{compiled}"
    )
    more = "gfx942 (default), gfx950; hipkittens also gfx1250, gfx1100, gfx1201"
    parser.add_argument("--arch", metavar="GFX", help=f"architecture for --build-only: {more}")


def check_build_only(options: argparse.Namespace) -> None:
    """Raise UsageError for arguments that contradict each other."""
    if options.build_only and options.device_index is not None:
        raise UsageError("--device-index goes with a measurement; --build-only uses no device")
    if options.arch and not options.build_only:
        raise UsageError("--arch goes with --build-only; a measured candidate is built for the device it runs on")


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
        metavar="N",
        help="model calls, and problems, under way at once (default: 8 calls, and 8 problems or as many as keep the "
        "compilers and the devices busy)",
    )
    group.add_argument(
        "--replay",
        type=Path,
        metavar="PATH",
        help="serve recorded replies (of a run folder, or of a file such as examples/replies/reflect.toml) "
        "instead of calling a model",
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


def chosen_backend(options: argparse.Namespace, kind: DeviceKind) -> BackendName:
    """Return the backend that was named, else the device's own."""
    named: str | None = options.backend
    return named or default_backend(kind)


def chosen_sizes(options: argparse.Namespace) -> SizeSet | None:
    return SizeSet(options.sizes) if options.sizes else None
