"""The names of a Python source that tests: what it binds, what it imports, and what it asks of the
code.
"""

import ast
import builtins
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from swift_rlvr.verifiers.code.inside import prelude
from swift_rlvr.verifiers.code.inside.stand_ins import NAMES as STAND_INS

_UNREADABLE = (ValueError, SyntaxError, MemoryError, RecursionError)


def walk(nodes: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of several trees."""
    for node in nodes:
        yield from ast.walk(node)


def looked_up(*nodes: ast.AST) -> Counter:
    """Names that are looked up, and how often."""
    names: Counter = Counter()
    for node in walk(nodes):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
            names[node.id] += 1
    return names


def bound_names(node: ast.AST) -> list[str]:
    """Names that a node binds by itself."""
    match node:
        case ast.Name(name, ast.Store() | ast.Del()) | ast.AugAssign(ast.Name(name)):
            return [name]
        case ast.FunctionDef(name) | ast.AsyncFunctionDef(name) | ast.ClassDef(name):
            return [name]
        case ast.arg(name) | ast.ExceptHandler(_, str(name)):
            return [name]
        case ast.Import(aliases) | ast.ImportFrom(_, aliases):
            return [(each.asname or each.name).partition(".")[0] for each in aliases]
        case ast.MatchAs(_, str(name)) | ast.MatchStar(str(name)):
            return [name]
    return []


def _free(tree: ast.AST) -> Counter:
    """Names that the source looks up and binds nowhere."""
    free = looked_up(tree)
    del free["__name__"]
    for node in ast.walk(tree):
        for name in bound_names(node):
            del free[name]
    return free


def asked_names(source: str, candidate: str | None) -> tuple[str, ...]:
    """The names that the code has to define, as the tests of a source write them; `candidate` is
    what a function ``check`` is called with.

    >>> asked_names("from solution import add\\nimport math\\nassert add(1, 2) == math.floor(3.5)", None)
    ('add',)
    >>> asked_names("def check(candidate):\\n    assert candidate(1) == 3", "Solution().add")
    ('Solution().add',)
    """
    try:
        tree = ast.parse(source)
    except _UNREADABLE:
        return (candidate,) if candidate else ()
    names = {*asked_for(tree, None), *taken_over(tree, candidate), *_from_solution(tree)}
    modules = sys.stdlib_module_names | STAND_INS.keys() | {"TestCase", "np", "pd"}
    types = {name for name in prelude.NAMES if name[:1].isupper()}
    names -= modules | types
    if candidate is not None:
        # The class of ``Solution().add`` need not be named apart.
        names = {name for name in names if not candidate.startswith(name)} | {candidate}
    return tuple(sorted(names))


class Import(NamedTuple):
    """A name that a source imports."""

    module: str  # begins with a dot where it is relative
    member: str  # of the module that is imported from it, "*" for all; empty for the module itself
    name: str  # what it is called in the source


def imports_of(tree: ast.AST) -> Iterator[Import]:
    """All that a source imports.

    >>> for each in imports_of(ast.parse("import os.path, re as r; from math import pi")): print(*each)
    os.path  os
    re  r
    math pi pi
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, "", alias.asname or top_module(alias.name))
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            for alias in node.names:
                yield Import(module, alias.name, alias.asname or alias.name)


def top_module(module: str) -> str:
    """``a`` of ``a.b.c``."""
    return module.partition(".")[0]


def _from_solution(tree: ast.Module) -> Iterator[str]:
    """The names that tests import from the code's module, or look up in it."""
    for each in imports_of(tree):
        if each.module == "solution" and each.member not in ("", "*"):
            yield each.member
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(ast.Name("solution"), name):
                yield name


def asked_for(tree: ast.Module, candidate: str | None) -> tuple[str, ...]:
    """The names that are likely to be functions of the code."""
    names = {*_free(tree), *([candidate] if candidate else [])}
    return tuple(sorted(name for name in names - vars(builtins).keys() if name.isidentifier()))


def taken_over(tree: ast.Module, candidate: str | None) -> tuple[str, ...]:
    """Builtins that are the code's: a function may well be called `sum`.

    Only the one that is named as its function, or all that a source names that asks for nothing
    else: a `sorted` of the code's own must not judge what its `f` returns.
    """
    if candidate is not None and candidate in vars(builtins):
        return (candidate,)
    if any(_from_solution(tree)):
        return ()
    if candidate is not None:
        for step in tree.body:
            # It gets the function, under a name of its own.
            if isinstance(step, ast.FunctionDef) and step.name == "check":
                return ()
    own = []
    for name in _free(tree):
        value = vars(builtins).get(name)
        if name[:2] == "__":
            continue
        if name not in vars(builtins):
            return ()
        # Tests name errors in order to say which is raised.
        if not (isinstance(value, type) and issubclass(value, BaseException)):
            own.append(name)
    return tuple(sorted(own))


def missing_imports(tree: ast.Module) -> Iterator[ast.stmt]:
    """Imports of modules that are named as such: they must not be the code's."""
    attributes = Counter(
        node.value.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    )
    for name, count in _free(tree).items():
        if name == "TestCase":
            yield ast.ImportFrom("unittest", [ast.alias(name)], 0)
        elif name in sys.stdlib_module_names | {"pytest"} and attributes[name] == count:
            yield ast.Import([ast.alias(name)])


def modules_of(tree: ast.Module) -> set[str]:
    """The modules that a source imports."""
    return {each.module for each in imports_of(tree) if each.module[0] != "."}


def missing_modules(tree: ast.Module, packages: tuple[str, ...]) -> list[str]:
    """Those that are neither in the standard library nor among the packages, with what is missing
    of pytest and numpy, of which some is there in any case.
    """
    missing = []
    tops = {*map(top_module, modules_of(tree))}
    for name in sorted(tops - sys.stdlib_module_names - {*packages, "solution"}):
        offered = STAND_INS.get(name, set())
        more = _used(tree, name) - offered
        if not offered:
            missing.append(name)
        elif more:
            missing.append(f"{name} for {', '.join(sorted(more))}")
    return missing


def _used(tree: ast.Module, package: str) -> set[str]:
    """What a source names of a package, with dots; "*" for all that cannot be seen."""
    used: set[str] = set()
    aliases: dict[str, str] = {}  # name -> what of the package it stands for; empty: for all of it
    for each in imports_of(tree):
        if top_module(each.module) != package:
            continue
        within = each.module.partition(".")[2]
        if each.member:
            within = f"{within}.{each.member}".strip(".")
            used.add(within)
        elif each.name == package:  # ``import numpy.testing`` binds numpy
            within = ""
        aliases[each.name] = within

    reached = set()  # what is asked for an attribute; `ast.walk` comes to it later
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            reached.add(node.value)
            base, *names = ast.unparse(node).split(".")
            # Else it is an attribute of a call or an element, which has names of its own in it.
            if base in aliases and all(map(str.isidentifier, names)):
                used.add(".".join(filter(None, [aliases[base], *names])))
        elif isinstance(node, ast.Name) and node not in reached and aliases.get(node.id) == "":
            used.add("*")
    return used
