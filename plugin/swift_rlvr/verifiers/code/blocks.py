"""Which blocks of an answer are its program."""

import ast
import builtins
import symtable
from typing import NamedTuple

from swift_rlvr.verifiers.code.cases import Form
from swift_rlvr.verifiers.code.inside import prelude

_UNREADABLE = (ValueError, SyntaxError, MemoryError, RecursionError)
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_PRINTING = {"print", "stdout", "write", "writelines"}
_MOST_TRIED = 8  # of the last blocks, so that the work grows with the length of an answer alone


def program_of(blocks: list[str], form: Form) -> str:
    r"""The last block that may pass the tests, or else the last one, with the blocks that define what
    it needs: models write helpers into blocks of their own. Behind a solution they like to show how
    it is used, which is no part of it.

    >>> from swift_rlvr.verifiers.code.cases import read_form
    >>> form = read_form(["assert twice(2) == 4"])
    >>> program_of(["def add(a, b): return a + b", "def twice(a): return add(a, a)", "twice(3)"], form)
    'def add(a, b): return a + b\n\ndef twice(a): return add(a, a)'
    """
    if len(blocks) == 1:
        return blocks[0]
    parts = _Parts(blocks)
    mark = form.mark_of_a_solution
    marked = [number for number, block in enumerate(blocks) if mark.search(block)]
    last = marked[-1] if marked else len(blocks) - 1
    program = parts.with_needed(last)
    if not form.programs or not marked or _prints(program):
        return program
    # What reads the input prints nothing: it is a part of a block further below, which calls it.
    for number in range(len(blocks) - 1, last, -1)[:_MOST_TRIED]:
        whole = parts.with_needed(number)
        if mark.search(whole) and _prints(whole):
            return whole
    return program


def is_program(text: str, form: Form) -> bool:
    """Whether a text without any block is a program as a whole, one that may pass the tests."""
    if not form.mark_of_a_solution.search(text):
        return False
    try:
        ast.parse(text)
    except _UNREADABLE:
        return False
    return True


class _Names(NamedTuple):
    """The global names of a block: those that it binds, and those that it takes from elsewhere."""

    bound: set[str]
    needed: set[str]


def _names_of(block: str) -> _Names:
    try:
        module = symtable.symtable(block, "<block>", "exec")
    except _UNREADABLE:
        return _Names(set(), set())
    bound: set[str] = set()
    needed: set[str] = set()
    tables = [module]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            name = symbol.get_name()
            if not symbol.is_global():
                continue
            if symbol.is_assigned():
                bound.add(name)
            elif symbol.is_imported():
                # What all programs have anyway is no reason to run a block with an earlier attempt.
                if name not in prelude.NAMES:
                    bound.add(name)
            elif symbol.is_referenced() and name not in vars(builtins):
                needed.add(name)
    return _Names(bound, needed - bound)


class _Parts:
    """The blocks of an answer, and which of them bind a name."""

    def __init__(self, blocks: list[str]):
        self.blocks = blocks
        self.names = [_names_of(block) for block in blocks]
        self.binding: dict[str, list[int]] = {}
        for number, names in enumerate(self.names):
            for name in names.bound:
                self.binding.setdefault(name, []).append(number)

    def with_needed(self, number: int) -> str:
        """A block with those that bind what it needs and what they need: of several the nearest above,
        or else the first below. They keep their order.
        """
        chosen = [number]
        bound = set(self.names[number].bound)
        for one in chosen:  # which grows
            for name in sorted(self.names[one].needed):
                if name in bound or name not in self.binding:
                    continue
                above = [each for each in self.binding[name] if each < number]
                nearest = above[-1] if above else self.binding[name][0]
                chosen.append(nearest)
                bound |= self.names[nearest].bound
        return "\n\n".join(self.blocks[each] for each in sorted(chosen))


def _prints(program: str) -> bool:
    """Whether a program may print something, and is not definitions alone, or just its first half."""
    try:
        tree = ast.parse(program)
    except _UNREADABLE:
        return True
    printing = set(_PRINTING)
    statements: list[ast.AST] = []
    for statement in tree.body:
        if isinstance(statement, _DEFINITIONS):
            printing.add(statement.name)
        else:
            statements.append(statement)

    has_output = False
    for node in ast.walk(tree):
        match node:
            case ast.Name(name) | ast.Attribute(_, name):
                has_output = has_output or name in _PRINTING
    return has_output and any(_calls(statement, printing) for statement in statements)


def _calls(statement: ast.AST, names: set[str]) -> bool:
    """Whether a statement calls something and mentions one of the names, outside of functions."""
    has_call = is_named = False
    nodes = [statement]
    while nodes:
        node = nodes.pop()
        if isinstance(node, (*_DEFINITIONS, ast.Lambda)):
            continue
        nodes += ast.iter_child_nodes(node)
        match node:
            case ast.Call():
                has_call = True
            case ast.Name(name) | ast.Attribute(_, name):
                is_named = is_named or name in names
    return has_call and is_named
