import torch
import torch.nn as nn


class Model(nn.Module):
    """Log-softmax over the last dimension."""

    def forward(self, logits: torch.Tensor) -> torch.Tensor:
        """logits: (rows, classes) bfloat16. Returns the same shape and dtype."""
        return torch.log_softmax(logits, dim=-1)


rows = 8192
classes = 32768

CPU_SIZES = {"rows": 1024, "classes": 4096}
EMULATED_SIZES = {"rows": 256}
SHAPES = [{"rows": 1, "classes": 32768}, {"rows": 500, "classes": 5003}, {"rows": 33, "classes": 50257}]


def get_inputs():
    # Each row has a temperature and an offset of its own, so that its normaliser cannot be guessed.
    temperature = 0.5 + 3.0 * torch.rand(rows, 1, dtype=torch.bfloat16)
    offset = 4.0 * torch.randn(rows, 1, dtype=torch.bfloat16)
    return [torch.randn(rows, classes, dtype=torch.bfloat16) * temperature + offset]


def get_init_inputs():
    return []
