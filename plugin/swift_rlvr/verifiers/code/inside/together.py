"""The process of a completion's code together with its tests: the second way to run a test program.

Here everything works as in any Python: files, patches, threads, mutation, identity. In return, code
may lie to the tests. `seal` makes that hard, and no more: what comes of it is no proof that the code
is right; it tells whether code that the other way (`harness`) refuses may be right all the same.
"""

import ast
import importlib
import sys
import typing
from collections.abc import Callable
from contextlib import suppress
from types import CodeType, FunctionType, ModuleType
from typing import Any

from . import seal, stand_ins
from .harness import RECURSION_LIMIT, Recorder, Space, execute, marks
from .solution import Names, failure

# typing_extensions, which packages import, puts functions in their place that ask for frames.
_OF_TYPING = {
    name: getattr(typing, name)
    for name in ("_collect_parameters", "_check_generic")
    if hasattr(typing, name)
}


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
        return seal.lies(*values)

    def is_skipped(self, error: BaseException | None) -> bool:
        return False  # the code may have raised it


class _Together(Space):
    """The names of the tests. Code may use the classes and functions that they define, where both
    would be one file elsewhere; not the values, which may be those that are expected.
    """

    module: ModuleType
    shares_names = False

    def __setitem__(self, name: str, value: Any) -> None:
        super().__setitem__(name, value)
        is_definition = isinstance(value, (type, FunctionType)) and name[:2] != "__"
        if self.shares_names and is_definition:
            vars(self.module)[name] = value


def _import_packages(job: dict) -> None:
    """Import what the code and the tests take from packages. Some of it asks for frames while it is
    loaded, which nobody may do once they are closed.
    """
    packages = {name.partition(".")[0] for name in job["packages"]}
    if not packages:
        return
    names = {*job["imports"]}
    nodes: list[ast.AST] = []
    with suppress(RecursionError, MemoryError):  # nested more deeply than its compiler minds
        nodes = [*ast.walk(ast.parse(job["code"]))]
    for node in nodes:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    for name in sorted(names):
        if name.partition(".")[0] in packages:
            with suppress(ImportError):  # the code will see, or it is a name and no module
                importlib.import_module(name)


def run(
    compiled: CodeType,
    module: ModuleType,
    job: dict,
    receive: Callable[[], dict],
    report: Callable[..., bool],
) -> None:
    """Run the code, and only then receive and run tests, until no more arrive. Each report of
    outcomes bears the number that came with the tests, what came of tests that must fail, and whether
    objects of the code have decided.
    """
    for name, stand_in in stand_ins.build().items():
        if name.partition(".")[0] not in job["packages"]:
            sys.modules[name] = stand_in
    if "unittest" in job["imports"]:
        import unittest.case

        seal.doubt_equality(unittest.case.TestCase)
    _import_packages(job)
    vars(typing).update(_OF_TYPING)
    judging = seal.Judging(job["imports"])
    local = _Local(module)
    own = _Together(marks(local), __equal__=seal.equal, __unequal__=seal.unequal, __name__="tests")
    own.recorder, own.module = local, module
    doubts = seal.Doubts(module, own)
    own["__operand__"] = doubts.operand
    seal.close_frames()
    seal.keep_frames_from_handlers()
    try:
        exec(compiled, vars(module))
    except BaseException as error:
        report(failure(error))
        return
    report({"kind": "loaded"})

    sys.setrecursionlimit(RECURSION_LIMIT)
    # as in `harness`: what the tests look up is found when they do
    vars(module)["__all__"] = []
    while program := receive():
        nonce = program.pop("nonce")
        own.shares_names = program["shares_names"]
        # A class of LeetCode's has no operators that anybody tests.
        classes = {name for name in program["names"] if name[:1].isupper()}
        doubts.tested = frozenset(classes - {"Solution"})
        local.goes_on = False
        is_whole = execute(program, local, own)
        outcomes, local.outcomes, local.goes_on = local.outcomes, [], True
        source, names = judging.must_fail(doubts)
        steps = source.count("\n") + 1
        execute({"source": source, "steps": steps, "taken_over": ()}, local, own | names)
        failed = [number for number, kind, _ in local.outcomes if kind in ("failed", "error")]
        is_honest = failed == list(range(steps))
        is_sound = is_whole and is_honest
        report(
            {
                "outcomes": outcomes,
                "nonce": nonce,
                "is_sound": is_sound,
                "doubts": doubts.are_raised,
            }
        )
        local.outcomes = []
