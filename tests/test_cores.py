import os
import signal
import subprocess
import sys
import time
from functools import partial

import psutil
import pytest

from sentigeo.cores import ask, start_workers
from sentigeo.errors import UserError


class Counter:
    """Something that remembers between tasks."""

    def __init__(self, start):
        self.value = start

    def add(self, number):
        self.value += number
        return self.value, os.getpid()

    def fail(self):
        raise UserError("No.")


def test_a_worker_keeps_what_it_works_on():
    with start_workers(1, partial(Counter, 10)) as workers:
        found = [workers.submit(ask, "add", number).result() for number in (1, 2, 3)]
    assert [value for value, _ in found] == [11, 13, 16]
    assert len({pid for _, pid in found}) == 1
    assert found[0][1] != os.getpid()


def fail_beside_another():
    with start_workers(2, partial(Counter, 0)) as workers:
        workers.submit(time.sleep, 60)
        workers.submit(ask, "fail").result()


def test_a_failure_is_told_and_ends_the_others():
    began = time.monotonic()
    with pytest.raises(UserError, match=r"^No\.$"):
        fail_beside_another()
    assert time.monotonic() - began < 30


def test_a_killed_worker_is_told():
    with pytest.raises(UserError, match="was killed"), start_workers(1) as workers:
        workers.submit(os.kill, workers.submit(os.getpid).result(), signal.SIGKILL).result()


def test_workers_end_when_their_parent_is_killed():
    code = (
        "import os, time\nfrom sentigeo.workers import start_workers\n"
        "if __name__ == '__main__':\n"
        "    with start_workers(1) as workers:\n"
        "        print(workers.submit(os.getpid).result(), flush=True)\n"
        "        workers.submit(time.sleep, 60).result()\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    worker = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 20
    while psutil.pid_exists(worker) and psutil.Process(worker).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.1)
