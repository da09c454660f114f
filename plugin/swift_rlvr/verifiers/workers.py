"""Processes of the sandbox that import this package and answer messages one after another; the
verifiers of SQL and reasoning-gym have theirs.

They stay, because starting one takes seconds. They are those of the sandbox and not of
`swift_rlvr.utils.parallel`, whose multiprocessing would import the trainer's main module in each of
them. What runs in one calls `swift_rlvr.verifiers.worker_limits.confine`.
"""

import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from swift_rlvr.utils.errors import NotInstalledError
from swift_rlvr.verifiers.code.process import Child, Ended, python

_PLUGIN = str(Path(__file__).parents[2])
_START_SECONDS = 300  # for the imports on a busy machine
# Limit on the wall of a job that computes nothing, which none should reach: so many times its
# seconds of CPU time, and at least so many seconds.
_WAIT_FACTOR = 30
_WAIT_LEAST = 60


def start_code(module: str) -> str:
    """What such a process runs: `main` of a module, with the package's folder on its path."""
    return f"import sys\nsys.path.insert(0, sys.argv.pop(1))\nfrom {module} import main\nmain()\n"


class Worker:
    """A process that is started when it is first asked, and replaced after it has ended. One thread
    uses it: on Linux it ends with that.

    module: its `main` runs in the process. memory: in bytes, the first message. environment: all
    that it sees of one. longest: bytes of a report.
    """

    def __init__(self, module: str, memory: int, environment: Mapping[str, str], longest: int):
        self._module = module
        self._memory = memory
        self._environment = environment
        self._longest = longest
        self._child: Child | None = None

    def ask(self, message: dict[str, Any], seconds: float) -> dict[str, Any]:
        """The report on a message; {"ended": how} if the process ended: "timeout" or its status.

        seconds: of CPU time, after which the process ends itself.

        NotInstalledError if the first report says that something is unavailable.
        """
        was_killed = False
        while True:
            child = self._child or self._start()
            self._child = None
            child.deadline = time.monotonic() + max(_WAIT_LEAST, _WAIT_FACTOR * seconds)
            try:
                report = child.ask(message, self._longest)
            except Ended as ended:
                child.close()
                killed = ended.reason == "killed" and child.status == -signal.SIGKILL
                if killed and not was_killed:
                    # by somebody else, perhaps, and not for what is in the message
                    was_killed = True
                    continue
                if ended.reason == "timeout" or child.status == -signal.SIGPROF:
                    return {"ended": "timeout"}
                return {"ended": f"exit status {child.status}"}
            self._child = child
            return report

    def close(self) -> None:
        """End the process; the next message gets another one."""
        if self._child is not None:
            self._child.close()
            self._child = None

    def _start(self) -> Child:
        code = start_code(self._module)
        start = python("-c", code, _PLUGIN, environment=self._environment)
        child = Child(start, time.monotonic() + _START_SECONDS)
        try:
            report = child.ask({"memory": self._memory})
        except Ended as ended:
            child.close()
            raise RuntimeError(f"a process of {self._module} did not start: {ended}") from None
        if "unavailable" in report:
            raise NotInstalledError(report["unavailable"])
        return child
