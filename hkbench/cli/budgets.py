"""The arguments that say what a batch may spend."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from hkbench.batch.budget import MIN_ATTEMPTS, Limits
from hkbench.cli.arguments import above_zero, finite, positive
from hkbench.cli.models import calls_service
from hkbench.errors import UsageError
from hkbench.llm.prices import find_price
from hkbench.records import Price
from hkbench.store.layout import RunPaths
from hkbench.store.reader import read_run_file

_TIME = re.compile(r"(?:(\d+(?:\.\d+)?)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")
_UNITS = (86400.0, 3600.0, 60.0, 1.0)


def time_span(text: str) -> float:
    """Return the seconds in a text such as "90m", "8h", "3600s", "1d", "1h30m"."""
    found = _TIME.fullmatch(text.strip().replace(" ", ""))
    value = sum(float(part) * unit for part, unit in zip(found.groups("0"), _UNITS, strict=True)) if found else 0.0
    if not value > 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration: write 90m, 8h or 3600s")
    return value


def outage_span(text: str) -> float:
    """Parse as `time_span`, and "0": an outage is not waited out."""
    return 0.0 if text.strip() == "0" else time_span(text)


def add_outage(parser: argparse.ArgumentParser, default: str) -> None:
    """Add --outage with the time that suits the command."""
    parser.add_argument(
        "--outage",
        type=outage_span,
        default=default,
        metavar="T",
        help="for how long a service that gives no answer (no connection, HTTP 5xx, too many requests) is asked again: "
        f"90s, 30m, 2h; 0 for not at all (default: {default})",
    )


amount = above_zero("amount of money")


def share(text: str) -> float:
    value = finite(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"must be a share of at least 0 and less than 1, not {text!r}")
    return value


def add_budgets(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "budgets",
        "Of the run folder with all its sessions. At the limit no model call is begun, what is under way is finished "
        "and judged, and the run ends with exit code 75. They are no settings of the run: a resume may change them.",
    )
    group.add_argument("--max-cost", type=amount, metavar="X", help="money, in the price file's currency")
    group.add_argument("--max-tokens", type=positive, metavar="N", help="input and output tokens of all calls")
    group.add_argument("--max-time", type=time_span, metavar="T", help="wall time: 90m, 8h, 3600s, 1h30m")
    group.add_argument(
        "--fail-on-error",
        type=share,
        metavar="R",
        help="end likewise, with exit code 69, when more than this share of the session's model calls, or of its "
        f"evaluations, failed by the service or the machine (looked at from {MIN_ATTEMPTS} on): 0.1 is one in ten",
    )
    group.add_argument(
        "--prices",
        type=Path,
        metavar="FILE",
        help="what tokens cost (default: $HKBENCH_PRICES, else prices.toml in the working folder; "
        "see examples/prices.toml)",
    )
    add_outage(parser, "30m")


def limits(options: argparse.Namespace) -> Limits:
    return Limits(options.max_cost, options.max_tokens, options.max_time, options.fail_on_error)


def chosen_prices(options: argparse.Namespace, judge: str | None) -> tuple[Price | None, Price | None]:
    """Return the prices of the model and of the judge, else those that the run folder keeps.

    `judge`: the judge's model; `None`: there is no judge. Recorded replies cost nothing and have no price.

    Raises:
        UsageError: --max-cost without a price of either, or with prices in two currencies. Also what `find_price`
            raises.
    """
    if not calls_service(options):
        return None, None
    paths = RunPaths(options.results)
    kept = read_run_file(paths).facts if paths.run.is_file() else None
    price = find_price(options.prices, options.model) or (kept.price if kept is not None else None)
    judge_price = None
    if judge is not None:
        judge_price = find_price(options.prices, judge) or (kept.judge_price if kept is not None else None)
    for model, found in ((options.model, price), (judge, judge_price)):
        if options.max_cost is not None and model is not None and found is None:
            raise UsageError(
                f"--max-cost needs the price of {model}: write it into a price file (examples/prices.toml) "
                "and name that with --prices"
            )
    if price is not None and judge_price is not None and price.currency != judge_price.currency:
        raise UsageError(
            f"the prices of {options.model} and {judge} are in {price.currency} and {judge_price.currency}: "
            "write both into one price file"
        )
    return price, judge_price
