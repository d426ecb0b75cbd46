import torch
import torch.nn as nn


class Model(nn.Module):
    """The mean of the squared differences of bfloat16 numbers, summed in float32."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return ((a.float() - b.float()) ** 2).mean().to(a.dtype)


rows = 16384
columns = 8192

CPU_SIZES = {"rows": 512, "columns": 2048}


def get_inputs() -> list[torch.Tensor]:
    return [torch.rand(rows, columns, dtype=torch.bfloat16), torch.rand(rows, columns, dtype=torch.bfloat16)]


def get_init_inputs() -> list[object]:
    return []
