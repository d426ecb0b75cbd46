"""What a runner may use of a machine, told by paths."""

from __future__ import annotations

import pytest

from hkbench.sandbox.environment import is_gpu


@pytest.mark.parametrize("path", ["/dev/nvidia0", "/dev/nvidia-uvm", "/dev/kfd", "/dev/dri"])
def test_devices_of_gpus_are_known_by_their_names(path: str) -> None:
    assert is_gpu(path)


@pytest.mark.parametrize("path", ["/dev/null", "/dev/shm/nvidia0", "/tmp/dri", "nvidia0"])
def test_other_files_are_no_gpus(path: str) -> None:
    assert not is_gpu(path)
