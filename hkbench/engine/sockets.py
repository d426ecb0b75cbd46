"""A worker's ends of the sockets between the processes of one evaluation."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass


@dataclass(frozen=True)
class EvaluationSockets:
    """Hold a worker's ends of an evaluation's sockets, and its files: both workers are given them."""

    sockets: tuple[socket.socket, ...]
    files: tuple[int, ...]

    @property
    def descriptors(self) -> list[int]:
        return [*(sock.fileno() for sock in self.sockets), *self.files]

    def close(self) -> None:
        """Close sockets and files, once. A runner whose worker is gone ends when these are closed too."""
        for sock in self.sockets:
            sock.close()
        for fd in self.files:
            os.close(fd)
