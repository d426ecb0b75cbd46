"""A small categories file for tests to change."""

from __future__ import annotations

STAGE = """
[[categories.stages]]
name = "{name}"
focus = "the {name} part"
guidance = ["do it"]
metrics.rocm = ["occupancy"]
"""
STAGES = "".join(STAGE.format(name=name) for name in ("one", "two", "three"))
TEXT = f"""
[ridge.full]
float32 = 20

[ridge.cpu]
float32 = 10

[[exit]]
when = {{ roof_at_least = 0.95 }}
why = "at the roof"

[[categories]]
name = "product"
title = "a product"
match.graph = [{{ contains = "matmul", of_ridge_at_least = 1.0 }}]
match.names = ["(?i)matmul"]
match.levels = [1]
{STAGES}
skip = [{{ when = {{ stage = 2, gain_below = 1.0 }}, why = "it got worse" }}]

[[categories.exit]]
when = {{ stage = 1, speedup_below = 0.5, kernel_size_at_most = 3, contains = "conv" }}
why = "far behind"

[[categories]]
name = "generic"
title = "the rest"
{STAGES}
"""
