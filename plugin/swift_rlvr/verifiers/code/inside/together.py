"""The process of a completion's code together with its tests: the second way to run a test program.

Here everything works as in any Python: files, patches, threads, mutation, identity. In return, code
may lie to the tests. So what comes of it is no proof that the code is right; it tells whether code
that the other way (`harness`) refuses may be right all the same.
"""

import sys
from collections.abc import Callable
from contextlib import suppress
from types import CodeType, ModuleType
from typing import Any

from . import stand_ins
from .harness import RECURSION_LIMIT, Recorder, Space, execute, marks
from .solution import Names, failure


class _Local(Recorder):
    """Finds the names of the code in its own module."""

    def __init__(self, module: ModuleType):
        super().__init__(goes_on=False)
        self.module = module
        self.names = Names(module)

    def find(self, name: str) -> Any:
        """What the code's module has under a name. Raises NameError."""
        kind, value = self.names.find(name)
        return vars(self.module)[name] if kind == "module" else value

    def is_equal_to_all(self, *values: object) -> bool:
        # No object is equal to one that was made just now, unless it lies.
        stranger = object()
        return any((value == stranger) is True for value in values)


def run(
    compiled: CodeType,
    module: ModuleType,
    job: dict,
    receive: Callable[[], dict],
    report: Callable[[dict], None],
) -> None:
    """Run the code, and only then receive and run tests, until no more arrive. Each report of
    outcomes bears the number that came with the tests.
    """
    try:
        exec(compiled, vars(module))
    except BaseException as error:
        report(failure(error))
        return
    report({"kind": "loaded"})

    sys.setrecursionlimit(RECURSION_LIMIT)
    for name, stand_in in stand_ins.build().items():
        if name.partition(".")[0] not in job["packages"]:
            sys.modules.setdefault(name, stand_in)
    local = _Local(module)
    # as in `harness`: what the tests look up is found when they do
    vars(module)["__all__"] = []
    own = Space(__name__="tests")
    own.recorder = local
    while program := receive():
        nonce = program.pop("nonce")
        if program["shares_names"]:
            # As where code and tests are one file: either may use the other's names.
            space = vars(module)
            for name in set(program["names"]) - space.keys():
                with suppress(NameError):
                    space[name] = local.find(name)
        else:
            space = own
        space.update(marks(local))
        execute(program, local, space)
        report({"outcomes": local.outcomes, "nonce": nonce})
        local.outcomes = []
