"""The options that make the settings of an evaluation."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hkbench.analysis.tolerances import RTOL_BY_NAME
from hkbench.cli.fields import add_field, options_of, with_default
from hkbench.errors import UsageError
from hkbench.records import EvaluationSettings


def add_evaluation(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("evaluation")
    for name, field in EvaluationSettings.model_fields.items():
        if field.description is not None:
            add_field(group, name, field, with_default(field.description, field.default), field.default or None)


def evaluation_settings(options: argparse.Namespace) -> EvaluationSettings:
    """Return the settings that the options ask for. UsageError: see `rtol_by_dtype`."""
    kept = None if options.keep_profile is None else str(Path(options.keep_profile).absolute())
    return options_of(EvaluationSettings, options, rtol=rtol_by_dtype(options.rtol or ()), keep_profile=kept)


def options_for(settings: EvaluationSettings) -> dict[str, Any]:
    """Map each option to the value that gives these settings again."""
    return dict(settings) | {"rtol": [f"{dtype}={value!r}" for dtype, value in settings.rtol.items()]}


def rtol_by_dtype(texts: Sequence[str]) -> dict[str, float]:
    """Parse "float32=1e-5" as dtype and value. UsageError for a dtype compared exactly, and for no tolerance."""
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
