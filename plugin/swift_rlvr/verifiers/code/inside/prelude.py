"""Names that code may use without importing them, as on LeetCode and in the graders of APPS,
LiveCodeBench and verl.

Those put ``from typing import *`` and the like before every program, so that ``List[int]`` works in
a signature and ``defaultdict`` in a body, and completions for their datasets count on it. Here only
what the code names is imported, since importing all of it would take longer than most programs run.
What the code defines or imports itself goes before.

The child imports this outside the package: only the standard library.
"""

from importlib import import_module
from types import CodeType
from typing import Any

# Modules that code may name without an import.
_MODULES = """
    bisect collections copy datetime fractions functools heapq io itertools json math operator random re statistics
    string sys time typing
"""
# What code may name of a module without an import.
_MEMBERS = {
    "typing": """
        Any Callable ClassVar DefaultDict Deque Dict Final FrozenSet Generator Generic Hashable Iterable Iterator List
        Literal Mapping MutableMapping MutableSequence NamedTuple NoReturn Optional Protocol Sequence Set Sized Tuple
        Type TypeVar TypedDict Union cast
    """,
    "collections": "ChainMap Counter OrderedDict defaultdict deque namedtuple",
    "heapq": "heapify heappop heappush heappushpop heapreplace nlargest nsmallest",
    "bisect": "bisect_left bisect_right insort insort_left insort_right",
    "itertools": """
        accumulate chain combinations combinations_with_replacement compress count cycle dropwhile filterfalse groupby
        islice pairwise permutations product repeat starmap takewhile tee zip_longest
    """,
    "functools": "cache cached_property cmp_to_key lru_cache partial reduce total_ordering wraps",
    "math": """
        acos asin atan atan2 ceil comb cos degrees dist e exp fabs factorial floor fmod gcd hypot inf isclose isinf
        isnan isqrt lcm log log10 log2 nan perm pi prod radians sin sqrt tan tau trunc
    """,
    "operator": "add attrgetter itemgetter methodcaller mul or_ and_ sub truediv xor",
    "string": "ascii_letters ascii_lowercase ascii_uppercase digits punctuation",
    "random": "choice choices randint randrange sample shuffle uniform",
    "statistics": "mean median mode",
    "datetime": "date timedelta",
    "copy": "deepcopy",
    "re": "findall finditer fullmatch",
    "io": "BytesIO StringIO",
    "sys": "maxsize setrecursionlimit stdin stdout",
}
# name -> the module that it is, or that it is imported from
NAMES: dict[str, str] = {}
for _module in _MODULES.split():
    NAMES[_module] = _module
for _module, _members in _MEMBERS.items():
    for _member in _members.split():
        NAMES[_member] = _module


class ListNode:
    """A node of a linked list, as LeetCode's own."""

    def __init__(self, val: Any = 0, next: Any = None):
        self.val = val
        self.next = next


class TreeNode:
    """A node of a binary tree, as LeetCode's own."""

    def __init__(self, val: Any = 0, left: Any = None, right: Any = None):
        self.val = val
        self.left = left
        self.right = right


# LeetCode shows these in a comment above its code, where most solutions leave them.
_NODES = {"ListNode": ListNode, "TreeNode": TreeNode}


def provide(code: CodeType, space: dict) -> None:
    """Put those of `NAMES` that the code mentions into the namespace in which it is going to run.

    >>> space = {}
    >>> provide(compile("def solve(numbers: List[int]): return gcd(*numbers)", "", "exec"), space)
    >>> sorted(space)
    ['List', 'gcd']
    """
    # Names that are not local to a function, and names of attributes.
    mentioned: set[str] = set()
    left = [code]
    while left:
        part = left.pop()
        mentioned.update(part.co_names)
        # The code of functions, classes and comprehensions is a constant of what they stand in.
        left += [constant for constant in part.co_consts if isinstance(constant, CodeType)]

    for name in mentioned & _NODES.keys():
        space[name] = _NODES[name]
    for name in mentioned & NAMES.keys():
        module = import_module(NAMES[name])
        if name == NAMES[name]:
            space[name] = module
        else:
            space[name] = getattr(module, name)
