"""The kernels of a run: each in an environment of its own, and all ended when one fails."""

import os
import signal
from contextlib import suppress
from typing import Any

from jupyter_client.manager import AsyncKernelManager

# What libraries take the number of their threads from.
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "LOKY_MAX_CPU_COUNT",
)


class Kernels:
    """Starts kernels, and knows those that were started.

    Attributes:
        ended: Whether they were told to end.
    """

    def __init__(self) -> None:
        self.ended = False
        self._started: list[AsyncKernelManager] = []

    def kind(self, variables: dict[str, str]) -> type[AsyncKernelManager]:
        """Return a kind of kernel that has some environment variables besides those of all."""
        started = self._started

        class Kernel(AsyncKernelManager):
            async def start_kernel(self, **settings: Any) -> None:  # type: ignore[override]
                started.append(self)
                await super().start_kernel(env=os.environ | variables, **settings)

        return Kernel

    def end(self) -> None:
        """End every kernel that still runs, and the processes that it started."""
        self.ended = True
        for kernel in self._started:
            process = getattr(kernel.provisioner, "process", None)
            if process is not None and process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # a kernel leads a group of its own
