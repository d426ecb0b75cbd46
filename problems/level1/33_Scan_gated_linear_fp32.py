import torch
import torch.nn as nn


class Model(nn.Module):
    """Gated linear recurrence: h[t] = gate[t] * h[t - 1] + x[t], from a given state h[-1]."""

    def forward(self, gate: torch.Tensor, x: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        """gate, x: (batch, steps, channels), state: (batch, channels), float32. Returns all h, as x."""
        history = []
        for step in range(x.shape[1]):
            state = gate[:, step] * state + x[:, step]
            history.append(state)
        return torch.stack(history, dim=1)


batch = 64
steps = 256
channels = 4096

CPU_SIZES = {"batch": 8, "steps": 128, "channels": 1024}
EMULATED_SIZES = {"batch": 2}
SHAPES = [
    {"batch": 1, "steps": 128, "channels": 1024},
    {"batch": 3, "steps": 77, "channels": 1001},
    {"batch": 5, "steps": 200, "channels": 96},
]


def get_inputs():
    gate = torch.sigmoid(torch.randn(batch, steps, channels) + 2.0)
    x = torch.randn(batch, steps, channels)
    state = torch.randn(batch, channels)
    return [gate, x, state]


def get_init_inputs():
    return []
