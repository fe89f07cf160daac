import asyncio
import os
import time

import psutil
import pytest

from sentigeo.report.runner import Kernels


def test_a_kernel_has_its_variables_and_can_be_ended(monkeypatch):
    monkeypatch.setenv("SENTIGEO_SHARED", "yes")
    kernels = Kernels()
    manager = kernels.kind({"SENTIGEO_OWN": "mine"})(kernel_name="python3")

    async def start():
        await manager.start_kernel()
        return manager.provisioner.process.pid

    pid = asyncio.run(start())
    variables = psutil.Process(pid).environ()
    assert (variables["SENTIGEO_OWN"], variables["SENTIGEO_SHARED"]) == ("mine", "yes")
    assert "SENTIGEO_OWN" not in os.environ
    kernels.end()
    assert kernels.ended
    deadline = time.monotonic() + 10
    while manager.provisioner.process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    kernels.end()  # which finds nothing left to do
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
