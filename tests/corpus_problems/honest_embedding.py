import torch
from torch import nn


class Model(nn.Module):
    """Rows of a table, picked by token."""

    def __init__(self, vocabulary, hidden):
        super().__init__()
        self.table = nn.Embedding(vocabulary, hidden)

    def forward(self, tokens):
        return self.table(tokens)


vocabulary = 32768
hidden = 1024
tokens = 16384
CPU_SIZES = {"vocabulary": 2048, "hidden": 512, "tokens": 2048}


def get_inputs():
    return [torch.randint(0, vocabulary, (tokens,))]


def get_init_inputs():
    return [vocabulary, hidden]
