"""An emulated GPU in a process of its own, beside a device that executes nothing; run by a test as a script.

    python emulated_gpu.py LIBRARIES SCRIPT

SCRIPT finds `gpu` (the device), `report()` and `begin()`.
"""

from __future__ import annotations

import os
import runpy
import socket
import sys

from hkbench.emulator.device import Ran, Server
from hkbench.emulator.report import CallOptions
from hkbench.protocol import messages, wire
from hkbench.protocol.codec import decode, encode
from hkbench.runner.emulated.gpu import EmulatedGpu

LDS = 65536
KNOWN = {"name": "AMD Instinct MI300X", "arch": "gfx942", "compute_units": 304, "memory": 192 << 30, "lds": LDS}


def main(libraries: str, script: str) -> None:
    from support.listening_device import Kernel, Listening

    control, theirs = socket.socketpair()
    if os.fork() == 0:
        control.close()
        Server(theirs, Listening(came=Ran(instructions=7), kernels={"scale": Kernel()}), LDS).run()
        os._exit(0)
    theirs.close()

    def ask(message: wire.Message) -> wire.Message:
        wire.send(control, message)
        return wire.receive(control)

    attached = ask({"op": "attach"})
    link, heap = wire.receive_descriptors(control, 2)
    told = decode(messages.EmulatedGpu, {"gpu": KNOWN, "libraries": libraries, "hip": "7.2.0"} | attached)
    names = {
        "gpu": EmulatedGpu(told, link, heap),
        "report": lambda: ask({"op": "report", "outputs": []}),
        "begin": lambda: ask({"op": "begin", "options": encode(CallOptions())}),
    }
    runpy.run_path(script, names)


if __name__ == "__main__":
    main(*sys.argv[1:])
