# ruff: noqa: E501
"""Small right programs with tests of every form that datasets have: name -> (code, tests).

None of them may earn a silent 0: each earns 1, or is not graded, with a reason.
"""

STACK = """
class Stack:
    def __init__(self):
        self.items = []
    def push(self, item):
        self.items.append(item)
    def pop(self):
        if not self.items:
            raise IndexError("empty")
        return self.items.pop()
    def __len__(self):
        return len(self.items)
    def __repr__(self):
        return f"Stack({self.items})"
"""
FILES = """
import os, json
def write(path, value):
    with open(path, "w") as file:
        json.dump(value, file)
def read(path):
    with open(path) as file:
        return json.load(file)
def count(folder):
    return len(os.listdir(folder))
"""
EVENS = "def evens(n):\n    for i in range(0, n, 2):\n        yield i\n"
SHAPES = """
import abc, math
class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self): ...
class Square(Shape):
    def __init__(self, a): self.a = a
    def area(self): return self.a ** 2
class Circle(Shape):
    def __init__(self, r): self.r = r
    def area(self): return math.pi * self.r ** 2
"""
VECTOR = """
class Vector:
    def __init__(self, x, y):
        self.x, self.y = x, y
    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)
    def __mul__(self, k):
        return Vector(self.x * k, self.y * k)
    __rmul__ = __mul__
    def __eq__(self, other):
        return isinstance(other, Vector) and (self.x, self.y) == (other.x, other.y)
    def __hash__(self):
        return hash((self.x, self.y))
    def __repr__(self):
        return f"Vector({self.x}, {self.y})"
"""
LINKED = """
class Node:
    def __init__(self, value, next=None):
        self.value, self.next = value, next
def build(values):
    head = None
    for value in reversed(values):
        head = Node(value, head)
    return head
def reverse(head):
    before = None
    while head:
        head.next, before, head = before, head, head.next
    return before
def values(head):
    found = []
    while head:
        found.append(head.value)
        head = head.next
    return found
"""
ACCOUNT = """
class InsufficientFunds(Exception):
    def __init__(self, missing):
        super().__init__(f"missing {missing}")
        self.missing = missing
class Account:
    interest = 0.1
    def __init__(self, balance=0):
        self._balance = balance
    @property
    def balance(self):
        return self._balance
    def withdraw(self, amount):
        if amount > self._balance:
            raise InsufficientFunds(amount - self._balance)
        self._balance -= amount
        return self._balance
    @classmethod
    def rich(cls): return cls(10**6)
    @staticmethod
    def currency(): return "EUR"
"""
CACHE = """
from collections import OrderedDict
class LRUCache(OrderedDict):
    def __init__(self, capacity):
        super().__init__()
        self.capacity = capacity
    def get(self, key):
        if key not in self: return -1
        self.move_to_end(key)
        return self[key]
    def put(self, key, value):
        self[key] = value
        self.move_to_end(key)
        if len(self) > self.capacity: self.popitem(last=False)
"""
UNIT = "import unittest\nfrom solution import *\n"
CASE = UNIT + "class TestIt(unittest.TestCase):\n"

HONEST = {
    # --- check(candidate)
    "check": (
        "def add(a, b): return a + b",
        "def check(candidate):\n    assert candidate(1, 2) == 3\n    assert candidate(a=0, b=0) == 0\ncheck(add)",
    ),
    "check with metadata": (
        "def f(s): return s[::-1]",
        "METADATA = {'author': 'x'}\n\ndef check(candidate):\n    assert candidate('abc') == 'cba', 'first'\n    assert True, 'done'\n    assert candidate('') == ''\ncheck(f)",
    ),
    "check with floats": (
        "def f(x): return x * 0.1",
        "def check(candidate):\n    assert abs(candidate(3) - 0.3) < 1e-6\n    assert candidate(10) == 1.0\ncheck(f)",
    ),
    "check truth": (
        "def is_even(n): return n % 2 == 0",
        "def check(candidate):\n    assert candidate(2)\n    assert not candidate(3)\n    assert candidate(4) is True\n    assert candidate(5) == False\ncheck(is_even)",
    ),
    "check round": (
        "def half(x): return x / 2",
        "def check(candidate):\n    assert round(candidate(5), 2) == 2.5\n    assert tuple([1, 2]) == (1, 2)\ncheck(half)",
    ),
    "check inverse": (
        "def enc(s): return s[::-1]\ndef dec(s): return s[::-1]",
        "def check(candidate):\n    import random, string\n    for _ in range(20):\n        s = ''.join(random.choice(string.ascii_lowercase) for _ in range(9))\n        assert candidate(enc(s)) == s\ncheck(dec)",
    ),
    "check with a set": (
        "def f(xs): return set(xs)",
        "def check(candidate):\n    assert candidate([1, 1, 2]) == {1, 2}\n    assert candidate([]) == set()\n    assert sorted(candidate([3, 1])) == [1, 3]\ncheck(f)",
    ),
    "check that raises": (
        "def f(x):\n    if x < 0: raise ValueError('negative')\n    return x ** 0.5",
        "def check(candidate):\n    assert candidate(4) == 2\n    try:\n        candidate(-1)\n        assert False\n    except ValueError:\n        pass\ncheck(f)",
    ),
    # --- unittest
    "assertEqual": (
        "def add(a, b): return a + b",
        CASE
        + "    def test_one(self):\n        self.assertEqual(add(1, 2), 3)\n    def test_two(self):\n        self.assertEqual(add(-1, 1), 0, 'zero')\nif __name__ == '__main__':\n    unittest.main()",
    ),
    "assertTrue and so on": (
        "def f(x): return x if x else None",
        CASE
        + "    def test_one(self):\n        self.assertTrue(f(1))\n        self.assertIsNone(f(0))\n        self.assertFalse(f(0))\n        self.assertIn(f(2), [1, 2])\n        self.assertIsInstance(f(3), int)\n        self.assertNotEqual(f(1), 2)\n        self.assertIsNotNone(f(4))",
    ),
    "assertAlmostEqual": (
        "def f(x): return x * 0.1",
        CASE
        + "    def test_one(self):\n        self.assertAlmostEqual(f(3), 0.3)\n        self.assertAlmostEqual(f(3), 0.3, places=5)\n        self.assertAlmostEqual(f(3), 0.3, delta=0.01)",
    ),
    "assertRaises": (
        "def f(x):\n    if x < 0: raise ValueError('negative')\n    return x",
        CASE
        + "    def test_one(self):\n        with self.assertRaises(ValueError):\n            f(-1)\n        self.assertRaises(ValueError, f, -2)\n        with self.assertRaisesRegex(ValueError, 'neg'):\n            f(-3)\n        with self.assertRaises(ValueError) as caught:\n            f(-4)\n        self.assertEqual(str(caught.exception), 'negative')",
    ),
    "setUp with a class": (
        STACK,
        CASE
        + "    def setUp(self):\n        self.stack = Stack()\n    def test_push(self):\n        self.stack.push(1)\n        self.assertEqual(len(self.stack), 1)\n    def test_pop(self):\n        self.stack.push(2)\n        self.assertEqual(self.stack.pop(), 2)\n        with self.assertRaises(IndexError):\n            self.stack.pop()\n    def test_repr(self):\n        self.assertEqual(repr(self.stack), 'Stack([])')\n        self.assertEqual(self.stack.items, [])",
    ),
    "setUpClass": (
        STACK,
        CASE
        + "    @classmethod\n    def setUpClass(cls):\n        cls.stack = Stack()\n        cls.stack.push(3)\n    def test_pop(self):\n        self.assertEqual(self.stack.pop(), 3)",
    ),
    "assertListEqual": (
        "def f(xs): return sorted(xs)",
        CASE
        + "    def test_one(self):\n        self.assertListEqual(f([2, 1]), [1, 2])\n        self.assertCountEqual(f([2, 1]), [2, 1])\n        self.assertDictEqual({1: f([])}, {1: []})\n        self.assertGreater(len(f([1])), 0)",
    ),
    "tempfile": (
        FILES,
        CASE
        + "    def test_one(self):\n        import tempfile, os\n        with tempfile.TemporaryDirectory() as folder:\n            path = os.path.join(folder, 'a.json')\n            write(path, {'a': [1]})\n            self.assertEqual(read(path), {'a': [1]})\n            self.assertEqual(count(folder), 1)",
    ),
    "tempfile in setUp": (
        FILES,
        UNIT
        + "import tempfile, os, shutil\nclass TestIt(unittest.TestCase):\n    def setUp(self):\n        self.folder = tempfile.mkdtemp()\n        self.path = os.path.join(self.folder, 'b.json')\n    def tearDown(self):\n        shutil.rmtree(self.folder)\n    def test_one(self):\n        write(self.path, [1, 2])\n        self.assertEqual(read(self.path), [1, 2])",
    ),
    "a file": (
        FILES,
        "write('x.json', {'k': 1})\nassert read('x.json') == {'k': 1}\nimport os\nassert os.path.exists('x.json')\nwith open('x.json') as file:\n    assert file.read() == '{\"k\": 1}'",
    ),
    "a file of the tests": (
        FILES,
        "import os\nwith open('y.json', 'w') as file:\n    file.write('[1]')\nassert read('y.json') == [1]\nos.remove('y.json')",
    ),
    "mkdir": (
        FILES,
        "import os\nos.makedirs('d/e')\nwrite('d/e/z.json', 3)\nassert read('d/e/z.json') == 3 and count('d/e') == 1",
    ),
    "mkdir by the code": (
        "import os\ndef make(path):\n    os.makedirs(path, exist_ok=True)\n    open(os.path.join(path, 'a.txt'), 'w').write('a')\n    return sorted(os.listdir(path))",
        "assert make('q/r') == ['a.txt']",
    ),
    "open is patched": (
        "def lines(path):\n    with open(path) as file:\n        return len(file.readlines())",
        CASE
        + "    def test_one(self):\n        from unittest.mock import mock_open, patch\n        with patch('builtins.open', mock_open(read_data='a\\nb\\n')):\n            self.assertEqual(lines('x'), 2)",
    ),
    "input is patched": (
        "def ask(): return int(input()) + 1",
        CASE
        + "    def test_one(self):\n        from unittest.mock import patch\n        with patch('builtins.input', return_value='4'):\n            self.assertEqual(ask(), 5)",
    ),
    "a function is patched": (
        "import time\ndef now(): return int(time.time())",
        CASE
        + "    def test_one(self):\n        from unittest.mock import patch\n        with patch('time.time', return_value=5.5):\n            self.assertEqual(now(), 5)",
    ),
    "a name of the code is patched": (
        "def price(): return 3\ndef total(n): return n * price()",
        CASE
        + "    def test_one(self):\n        from unittest.mock import patch\n        with patch('solution.price', return_value=5):\n            self.assertEqual(total(2), 10)",
    ),
    "a mock is handed over": (
        "def notify(sender, name):\n    sender.send(f'hi {name}')\n    return sender.count",
        CASE
        + "    def test_one(self):\n        from unittest.mock import Mock\n        sender = Mock(count=3)\n        self.assertEqual(notify(sender, 'Bo'), 3)\n        sender.send.assert_called_once_with('hi Bo')",
    ),
    "stdout is captured": (
        "def show(x): print('value', x)",
        CASE
        + "    def test_one(self):\n        import io\n        from unittest.mock import patch\n        with patch('sys.stdout', new=io.StringIO()) as out:\n            show(3)\n            self.assertEqual(out.getvalue(), 'value 3\\n')",
    ),
    "stdin is replaced": (
        "import sys\ndef total(): return sum(map(int, sys.stdin.read().split()))",
        "import io, sys\nsys.stdin = io.StringIO('1 2 3')\nassert total() == 6",
    ),
    # --- pytest
    "test functions": (
        "def add(a, b): return a + b",
        "from solution import add\ndef test_add():\n    assert add(1, 2) == 3\ndef test_neg():\n    x = add(-1, 1)\n    assert x == 0",
    ),
    "pytest.raises": (
        "def f(x):\n    if not isinstance(x, int): raise TypeError('no int')\n    return x",
        "import pytest\nfrom solution import f\ndef test_f():\n    with pytest.raises(TypeError):\n        f('a')\n    with pytest.raises(TypeError, match='no int'):\n        f('a')\n    assert f(1) == 1",
    ),
    "pytest.approx": (
        "def f(x): return [x * 0.1, x]",
        "import pytest\nfrom solution import f\ndef test_f():\n    assert f(3) == pytest.approx([0.3, 3])\n    assert f(3)[0] == pytest.approx(0.3)",
    ),
    "parametrize": (
        "def f(x): return x + 1",
        "import pytest\nfrom solution import f\n@pytest.mark.parametrize('x, y', [(1, 2), (2, 3)])\ndef test_f(x, y):\n    assert f(x) == y",
    ),
    "fixture": (
        STACK,
        "import pytest\nfrom solution import Stack\n@pytest.fixture\ndef stack():\n    s = Stack()\n    s.push(1)\n    return s\ndef test_pop(stack):\n    assert stack.pop() == 1",
    ),
    "tmp_path": (
        FILES,
        "from solution import *\ndef test_files(tmp_path):\n    write(tmp_path / 'a.json', [1])\n    assert read(tmp_path / 'a.json') == [1]",
    ),
    "capsys": (
        "def show(x): print(x)",
        "from solution import show\ndef test_show(capsys):\n    show(3)\n    assert capsys.readouterr().out == '3\\n'",
    ),
    # --- classes
    "class": (
        STACK,
        "s = Stack()\ns.push(1)\ns.push([2])\nassert len(s) == 2\nassert s.pop() == [2]\nassert s.items == [1]",
    ),
    "class of a list": (
        "class Stack(list):\n    def push(self, x): self.append(x)\n    def peek(self): return self[-1]",
        "s = Stack()\ns.push(1)\ns.push(2)\nassert s.peek() == 2 and len(s) == 2\nassert s.pop() == 2\nassert s == [1] and isinstance(s, list)",
    ),
    "class of a dict": (
        CACHE,
        "c = LRUCache(2)\nc.put(1, 1)\nc.put(2, 2)\nassert c.get(1) == 1\nc.put(3, 3)\nassert c.get(2) == -1\nassert c.get(3) == 3\nassert len(c) == 2",
    ),
    "abstract class": (
        SHAPES,
        "import math\nassert Square(3).area() == 9\nassert math.isclose(Circle(1).area(), math.pi)\nassert issubclass(Square, Shape) and isinstance(Circle(2), Shape)\ntry:\n    Shape()\n    assert False\nexcept TypeError:\n    pass",
    ),
    "operators": (
        VECTOR,
        "a = Vector(1, 2)\nassert a + a == Vector(2, 4)\nassert a * 2 == 2 * a\nassert a != Vector(0, 0)\nassert len({a, Vector(1, 2)}) == 1\nassert repr(a) == 'Vector(1, 2)'\nassert sum([a, a], Vector(0, 0)) == Vector(2, 4)",
    ),
    "linked list": (
        LINKED,
        "head = build([1, 2, 3])\nassert values(head) == [1, 2, 3]\nback = reverse(head)\nassert values(back) == [3, 2, 1]\nassert back.value == 3 and back.next.value == 2\nassert reverse(None) is None",
    ),
    "account": (
        ACCOUNT,
        CASE
        + "    def test_one(self):\n        account = Account(10)\n        self.assertEqual(account.withdraw(3), 7)\n        with self.assertRaises(InsufficientFunds) as caught:\n            account.withdraw(100)\n        self.assertEqual(caught.exception.missing, 93)\n        self.assertEqual(Account.rich().balance, 10**6)\n        self.assertEqual(Account.currency(), 'EUR')\n        with self.assertRaises(AttributeError):\n            account.balance = 5\n        self.assertEqual(Account.interest, 0.1)",
    ),
    "private attribute": (
        ACCOUNT,
        "a = Account(5)\nassert a._balance == 5\na._balance = 9\nassert a.balance == 9",
    ),
    "derived by the tests": (
        SHAPES,
        "class Unit(Shape):\n    def area(self): return 1\nassert Unit().area() == 1 and isinstance(Unit(), Shape)",
    ),
    "callback class": (
        "def apply(items, visitor):\n    for item in items: visitor.visit(item)\n    return visitor.result",
        "class Sum:\n    def __init__(self): self.result = 0\n    def visit(self, x): self.result += x\nassert apply([1, 2], Sum()) == 3",
    ),
    "tree of the tests": (
        "def depth(node):\n    return 0 if node is None else 1 + max(depth(node.left), depth(node.right))",
        "class Node:\n    def __init__(self, v, left=None, right=None):\n        self.v, self.left, self.right = v, left, right\nassert depth(Node(1, Node(2), Node(3, Node(4)))) == 3\nassert depth(None) == 0",
    ),
    "dataclass": (
        "from dataclasses import dataclass, field, asdict\n@dataclass\nclass Point:\n    x: int\n    y: int = 0\n    tags: list = field(default_factory=list)",
        "from dataclasses import asdict\np = Point(1)\nassert p == Point(1, 0)\np.tags.append('a')\nassert p.tags == ['a']\nassert asdict(p) == {'x': 1, 'y': 0, 'tags': ['a']}",
    ),
    "enum": (
        "import enum\nclass Color(enum.Enum):\n    RED = 1\n    BLUE = 2\ndef other(c): return Color.BLUE if c is Color.RED else Color.RED",
        "assert other(Color.RED) is Color.BLUE\nassert other(Color.BLUE).name == 'RED'\nassert [c.value for c in Color] == [1, 2]",
    ),
    "context manager": (
        "class Log:\n    def __init__(self): self.entries = []\n    def __enter__(self):\n        self.entries.append('in')\n        return self\n    def __exit__(self, *error):\n        self.entries.append('out')\n        return False",
        "log = Log()\nwith log as l:\n    l.entries.append('body')\nassert log.entries == ['in', 'body', 'out']",
    ),
    "named tuple": (
        "from collections import namedtuple\nP = namedtuple('P', 'x y')\ndef f(): return P(1, 2)",
        "p = f()\nassert p.x == 1 and p == (1, 2) and p._replace(x=3) == P(3, 2)\nassert isinstance(p, P)",
    ),
    # --- mutation and identity
    "sorts in place": (
        "def sort(xs): xs.sort()",
        "xs = [3, 1, 2]\nassert sort(xs) is None\nassert xs == [1, 2, 3]",
    ),
    "keeps its list": (
        "class Bag:\n    def __init__(self): self.items = []\n    def all(self): return self.items",
        "b = Bag()\nb.all().append(1)\nassert b.items == [1]\nb.items.append(2)\nassert b.all() == [1, 2]",
    ),
    "returns the same": (
        "def f(xs):\n    xs.append(1)\n    return xs",
        "xs = []\nassert f(xs) is xs and xs == [1]",
    ),
    "a copy": (
        "def f(xs): return list(xs)",
        "xs = [1]\nys = f(xs)\nassert ys == xs and ys is not xs",
    ),
    "singleton": (
        "class One:\n    _it = None\n    def __new__(cls):\n        if cls._it is None: cls._it = super().__new__(cls)\n        return cls._it",
        "assert One() is One()",
    ),
    "memo": (
        "cache = {}\ndef f(n):\n    if n not in cache: cache[n] = n * 2\n    return cache[n]",
        "assert f(2) == 4\nassert cache == {2: 4}\ncache.clear()\nassert f(3) == 6 and len(cache) == 1",
    ),
    "global counter": (
        "count = 0\ndef up():\n    global count\n    count += 1",
        "import solution\nup()\nup()\nassert solution.count == 2",
    ),
    # --- generators, exceptions, async, threads
    "generator": (
        EVENS,
        "assert list(evens(5)) == [0, 2, 4]\ng = evens(3)\nassert next(g) == 0 and next(g) == 2\ntry:\n    next(g)\n    assert False\nexcept StopIteration:\n    pass",
    ),
    "generator in unittest": (
        EVENS,
        CASE
        + "    def test_one(self):\n        self.assertEqual(list(evens(5)), [0, 2, 4])\n        import types\n        self.assertIsInstance(evens(3), types.GeneratorType)",
    ),
    "iterator class": (
        "class Count:\n    def __init__(self, n): self.n = n\n    def __iter__(self):\n        return iter(range(self.n))",
        "assert list(Count(3)) == [0, 1, 2]\nassert sum(Count(4)) == 6\na, b = Count(2)\nassert (a, b) == (0, 1)\nassert 2 in Count(3)",
    ),
    "map and zip": (
        "def f(xs): return map(str, xs)\ndef g(a, b): return zip(a, b)",
        "assert list(f([1, 2])) == ['1', '2']\nassert dict(g('ab', [1, 2])) == {'a': 1, 'b': 2}",
    ),
    "closure": (
        "def counter():\n    n = 0\n    def up():\n        nonlocal n\n        n += 1\n        return n\n    return up",
        "c = counter()\nassert c() == 1 and c() == 2\nassert counter()() == 1",
    ),
    "decorator": (
        "import functools\ndef twice(f):\n    @functools.wraps(f)\n    def inner(*a, **k):\n        f(*a, **k)\n        return f(*a, **k)\n    return inner",
        "calls = []\n@twice\ndef g(x):\n    calls.append(x)\n    return x\nassert g(3) == 3 and calls == [3, 3]\nassert g.__name__ == 'g'",
    ),
    "docstring and annotations": (
        "def f(x: int) -> int:\n    'Doubles.'\n    return 2 * x",
        "import inspect\nassert f.__doc__ == 'Doubles.'\nassert f.__annotations__ == {'x': int, 'return': int}\nassert list(inspect.signature(f).parameters) == ['x']\nassert callable(f) and f(2) == 4",
    ),
    "async": ("async def f(x): return x + 1", "import asyncio\nassert asyncio.run(f(1)) == 2"),
    "async of the tests": (
        "async def twice(f): return [await f(), await f()]",
        "import asyncio\nasync def one(): return 1\nassert asyncio.run(twice(one)) == [1, 1]",
    ),
    "async unittest": (
        "async def f(x): return x + 1",
        UNIT
        + "class TestIt(unittest.IsolatedAsyncioTestCase):\n    async def test_one(self):\n        self.assertEqual(await f(1), 2)",
    ),
    "threads": (
        "import threading\nclass Counter:\n    def __init__(self):\n        self.n, self.lock = 0, threading.Lock()\n    def up(self):\n        with self.lock: self.n += 1",
        "import threading\nc = Counter()\nts = [threading.Thread(target=c.up) for _ in range(5)]\nfor t in ts: t.start()\nfor t in ts: t.join()\nassert c.n == 5",
    ),
    "own exception": (
        "class MyError(ValueError):\n    code = 7\ndef f(): raise MyError('bad')",
        "try:\n    f()\nexcept MyError as error:\n    assert str(error) == 'bad' and error.code == 7\nelse:\n    assert False\nimport pytest\nwith pytest.raises(ValueError):\n    f()",
    ),
    "exception chain": (
        "def f():\n    try:\n        int('a')\n    except ValueError as e:\n        raise RuntimeError('x') from e",
        "try:\n    f()\n    assert False\nexcept RuntimeError as e:\n    assert isinstance(e.__cause__, ValueError)",
    ),
    # --- numbers and other values
    "float": ("def f(x): return x * 0.1", "assert f(3) == 0.3\nassert f(1) == 0.1"),
    "floats in a list": (
        "def f(x): return {'a': [x * 0.1, x / 3]}",
        "assert f(3) == {'a': [0.3, 1.0]}",
    ),
    "float in a call": (
        "def f(x): return x * 0.1",
        {"fn_name": "f", "inputs": [[3], [1]], "outputs": [0.3, 0.1]},
    ),
    "many digits": (
        "def f(n): return 10 ** n",
        "assert f(5000) == 10 ** 5000\nassert len(str(f(10))) == 11",
    ),
    "many digits printed": (
        "n = int(input())\nprint(10 ** n)",
        {"inputs": ["5000\n"], "outputs": ["1" + "0" * 5000 + "\n"]},
    ),
    "many digits read": (
        "n = int(input())\nprint(n % 7)",
        {"inputs": ["1" * 5001 + "\n"], "outputs": [f"{(10**5001 // 9) % 7}\n"]},
    ),
    "datetime": (
        "import datetime\ndef f(y): return datetime.date(y, 1, 2)",
        "import datetime\nassert f(2020) == datetime.date(2020, 1, 2)\nassert f(2020) + datetime.timedelta(1) == datetime.date(2020, 1, 3)",
    ),
    "decimal and fraction": (
        "from decimal import Decimal\nfrom fractions import Fraction\ndef f(): return Decimal('0.1') * 3, Fraction(1, 3)",
        "from decimal import Decimal\nfrom fractions import Fraction\nassert f() == (Decimal('0.3'), Fraction(1, 3))",
    ),
    "regular expression": (
        "import re\ndef f(s): return re.search(r'(\\d+)', s)",
        "assert f('a12').group(1) == '12'\nassert f('a') is None\nimport re\nassert isinstance(f('1'), re.Match)",
    ),
    "counter": (
        "from collections import Counter, defaultdict\ndef f(s): return Counter(s)\ndef g(): return defaultdict(int, a=1)",
        "assert f('aab')['a'] == 2 and f('aab')['z'] == 0\nassert f('aab').most_common(1) == [('a', 2)]\nassert g()['q'] == 0 and g() == {'a': 1}",
    ),
    "path": (
        "from pathlib import Path\ndef f(p): return Path(p).suffix, Path(p) / 'a'",
        "from pathlib import Path\nassert f('x.txt') == ('.txt', Path('x.txt') / 'a')",
    ),
    "logging": (
        "import logging\ndef f(): logging.getLogger('x').warning('careful')",
        CASE
        + "    def test_one(self):\n        with self.assertLogs('x', level='WARNING') as logs:\n            f()\n        self.assertIn('careful', logs.output[0])",
    ),
    "environment": (
        "import os\ndef f(): return os.environ.get('MODE', 'none')",
        "import os\nos.environ['MODE'] = 'test'\nassert f() == 'test'",
    ),
    "random seed": (
        "import random\ndef f():\n    return [random.randint(1, 9) for _ in range(3)]",
        "import random\nrandom.seed(3)\na = f()\nrandom.seed(3)\nassert f() == a and all(1 <= x <= 9 for x in a)",
    ),
    "sqlite": (
        "import sqlite3\ndef make():\n    c = sqlite3.connect(':memory:')\n    c.execute('create table t(a)')\n    c.execute('insert into t values (1)')\n    return c",
        "assert make().execute('select a from t').fetchall() == [(1,)]",
    ),
    "csv to a stream": (
        "import csv\ndef f(stream, rows):\n    csv.writer(stream).writerows(rows)",
        "import io\ns = io.StringIO()\nf(s, [[1, 2]])\nassert s.getvalue() == '1,2\\r\\n'",
    ),
    "json text": (
        "import json\ndef f(x): return json.dumps(x, sort_keys=True)",
        "import json\nassert json.loads(f({'b': 1, 'a': 2})) == {'a': 2, 'b': 1}",
    ),
    "many calls": ("def f(x): return x + 1", "for i in range(3000):\n    assert f(i) == i + 1"),
}

MOCKS = "import unittest\nfrom unittest.mock import patch, MagicMock, Mock\nimport os, tempfile, shutil, json, csv, random, datetime\nclass TestCases(unittest.TestCase):\n"
HONEST |= {
    "bcb csv": (
        "import csv, os\ndef task_func(path):\n    with open(path) as f:\n        return sorted(csv.reader(f))",
        MOCKS
        + "    def setUp(self):\n        self.d = tempfile.mkdtemp()\n        self.p = os.path.join(self.d, 'a.csv')\n        with open(self.p, 'w', newline='') as f:\n            csv.writer(f).writerows([['b','1'],['a','2']])\n    def tearDown(self):\n        shutil.rmtree(self.d)\n    def test_a(self):\n        self.assertEqual(task_func(self.p), [['a','2'],['b','1']])\n        self.assertTrue(os.path.exists(self.p))",
    ),
    "bcb subprocess patched": (
        "import subprocess\ndef task_func(c):\n    return subprocess.run(c, capture_output=True).returncode",
        MOCKS
        + "    @patch('subprocess.run')\n    def test_a(self, run):\n        run.return_value.returncode = 3\n        self.assertEqual(task_func(['x']), 3)\n        run.assert_called_once()",
    ),
    "bcb datetime": (
        "from datetime import datetime, timedelta\ndef task_func(s):\n    return datetime.strptime(s, '%Y-%m-%d') + timedelta(days=1)",
        MOCKS
        + "    def test_a(self):\n        r = task_func('2020-01-01')\n        self.assertEqual(r, datetime.datetime(2020,1,2))\n        self.assertIsInstance(r, datetime.datetime)\n        self.assertEqual(r.day, 2)",
    ),
    "bcb random": (
        "import random\ndef task_func(n, seed=0):\n    random.seed(seed)\n    return [random.randint(0, 9) for _ in range(n)]",
        MOCKS
        + "    def test_a(self):\n        self.assertEqual(task_func(5), task_func(5))\n        self.assertEqual(len(task_func(3)), 3)\n        self.assertTrue(all(0 <= x <= 9 for x in task_func(9)))",
    ),
    "bcb glob": (
        "import glob, os\ndef task_func(d):\n    return sorted(os.path.basename(p) for p in glob.glob(os.path.join(d, '*.txt')))",
        MOCKS
        + "    def test_a(self):\n        with tempfile.TemporaryDirectory() as d:\n            for n in 'ab':\n                open(os.path.join(d, n + '.txt'), 'w').close()\n            self.assertEqual(task_func(d), ['a.txt', 'b.txt'])",
    ),
    "bcb /tmp": (
        "import os\ndef task_func(p):\n    return os.path.getsize(p)",
        MOCKS
        + "    def setUp(self):\n        os.makedirs('/tmp/data_x', exist_ok=True)\n        with open('/tmp/data_x/a', 'w') as f: f.write('abc')\n    def test_a(self):\n        self.assertEqual(task_func('/tmp/data_x/a'), 3)",
    ),
    "bcb move": (
        "import shutil, os\ndef task_func(a, b):\n    os.makedirs(b, exist_ok=True)\n    return shutil.move(a, b)",
        MOCKS
        + "    def test_a(self):\n        with tempfile.TemporaryDirectory() as d:\n            p = os.path.join(d, 'a')\n            open(p, 'w').close()\n            r = task_func(p, os.path.join(d, 'sub'))\n            self.assertTrue(os.path.exists(os.path.join(d, 'sub', 'a')))",
    ),
    "bcb copy": (
        "import shutil\ndef task_func(a, b): return shutil.copy(a, b)",
        MOCKS
        + "    def test_a(self):\n        with tempfile.TemporaryDirectory() as d:\n            p = os.path.join(d, 'a')\n            open(p, 'w').write('x')\n            task_func(p, p + '2')\n            self.assertEqual(open(p + '2').read(), 'x')",
    ),
    "bcb zip": (
        "import zipfile, os\ndef task_func(p, out):\n    with zipfile.ZipFile(out, 'w') as z: z.write(p, 'a')\n    return out",
        MOCKS
        + "    def test_a(self):\n        with tempfile.TemporaryDirectory() as d:\n            p = os.path.join(d, 'a')\n            open(p, 'w').write('x')\n            import zipfile\n            self.assertEqual(zipfile.ZipFile(task_func(p, p + '.zip')).namelist(), ['a'])",
    ),
    "bcb socket": (
        "import socket\ndef task_func(): return socket.gethostbyname('localhost')",
        MOCKS
        + "    @patch('socket.gethostbyname', return_value='1.2.3.4')\n    def test_a(self, g):\n        self.assertEqual(task_func(), '1.2.3.4')",
    ),
    "bcb urllib": (
        "import urllib.request\ndef task_func(u):\n    with urllib.request.urlopen(u) as r: return r.read().decode()",
        MOCKS
        + "    @patch('urllib.request.urlopen')\n    def test_a(self, o):\n        o.return_value.__enter__.return_value.read.return_value = b'hi'\n        self.assertEqual(task_func('http://x'), 'hi')",
    ),
    "bcb sqlite file": (
        "import sqlite3\ndef task_func(p):\n    c = sqlite3.connect(p)\n    c.execute('create table t(a)')\n    c.execute('insert into t values (1)')\n    c.commit()\n    n = c.execute('select count(*) from t').fetchone()[0]\n    c.close()\n    return n",
        MOCKS
        + "    def test_a(self):\n        with tempfile.TemporaryDirectory() as d:\n            self.assertEqual(task_func(os.path.join(d, 'x.db')), 1)",
    ),
    "bcb subprocess real": (
        "import subprocess\ndef task_func(): return subprocess.run(['echo', 'hi'], capture_output=True, text=True).stdout",
        MOCKS
        + "    def test_a(self):\n        r = task_func()\n        self.assertEqual(r, 'hi\\n')",
    ),
    "bcb multiprocessing": (
        "from multiprocessing import Pool\ndef g(x): return x * 2\ndef task_func(xs):\n    with Pool(2) as p: return p.map(g, xs)",
        MOCKS
        + "    def test_a(self):\n        r = task_func([1, 2])\n        self.assertEqual(r, [2, 4])",
    ),
    "thread pool": (
        "from concurrent.futures import ThreadPoolExecutor\ndef task_func(xs):\n    with ThreadPoolExecutor(2) as p: return list(p.map(lambda x: x * 2, xs))",
        MOCKS
        + "    def test_a(self):\n        r = task_func([1, 2])\n        self.assertEqual(r, [2, 4])",
    ),
    "thread pool callback": (
        "from concurrent.futures import ThreadPoolExecutor\ndef task_func(f, xs):\n    with ThreadPoolExecutor(2) as p: return list(p.map(f, xs))",
        "def double(x): return 2 * x\nassert task_func(double, [1, 2]) == [2, 4]",
    ),
    "classeval": (
        "class AccessGate:\n    def __init__(self):\n        self.a = {}\n    def add(self, k, v):\n        self.a[k] = v\n        return self.a\n    def get(self, k): return self.a.get(k)",
        MOCKS
        + "    def test_a(self):\n        g = AccessGate()\n        self.assertEqual(g.add('x', 1), {'x': 1})\n        self.assertEqual(g.get('x'), 1)\n        self.assertEqual(g.a, {'x': 1})\n        g.a['y'] = 2\n        self.assertEqual(g.get('y'), 2)",
    ),
    "classeval datetime": (
        "from datetime import datetime\nclass Cal:\n    def __init__(self): self.events = []\n    def add(self, e): self.events.append(e)\n    def on(self, d): return [e for e in self.events if e['date'].date() == d.date()]",
        MOCKS
        + "    def test_a(self):\n        from datetime import datetime\n        c = Cal()\n        c.add({'date': datetime(2020,1,1,5), 'n': 'x'})\n        self.assertEqual(c.on(datetime(2020,1,1)), [{'date': datetime(2020,1,1,5), 'n': 'x'}])\n        self.assertEqual(c.events[0]['n'], 'x')",
    ),
    "class with Node given": (
        "class Tree:\n    def __init__(self, root): self.root = root\n    def total(self):\n        def go(n): return 0 if n is None else n.v + go(n.l) + go(n.r)\n        return go(self.root)",
        "class Node:\n    def __init__(self, v, l=None, r=None): self.v, self.l, self.r = v, l, r\nassert Tree(Node(1, Node(2), Node(3))).total() == 6",
    ),
    "uses a class of the tests": (
        "def mk(v): return TreeNode(v)",
        "class TreeNode:\n    def __init__(self, v): self.v = v\nassert mk(3).v == 3\nassert isinstance(mk(1), TreeNode)",
    ),
    "str enum": (
        "import enum\nclass C(str, enum.Enum):\n    A = 'a'\ndef f(): return C.A",
        "assert f() == 'a'\nassert f() is C.A",
    ),
    "int enum": (
        "import enum\nclass C(enum.IntEnum):\n    A = 1\ndef f(): return C.A",
        "assert f() == 1\nassert f().name == 'A'",
    ),
    "fraction": (
        "from fractions import Fraction\ndef f(): return Fraction(1, 2)",
        "assert f() == 0.5",
    ),
    "eq to plain": (
        "class M:\n    def __init__(self, r): self.r = r\n    def __eq__(self, o): return self.r == (o.r if isinstance(o, M) else o)\ndef f(): return M([1])",
        "assert f() == [1]",
    ),
    "eq to plain class": (
        "class M:\n    def __init__(self, r): self.r = r\n    def __eq__(self, o): return self.r == (o.r if isinstance(o, M) else o)",
        "m = M([1])\nassert m == [1]",
    ),
    "lru cache": (
        "import functools\n@functools.lru_cache(None)\ndef fib(n): return n if n < 2 else fib(n-1) + fib(n-2)",
        "assert fib(30) == 832040\nassert fib.cache_info().hits > 0\nfib.cache_clear()",
    ),
    "partial": (
        "import functools\ndef add(a, b): return a + b\nadd3 = functools.partial(add, 3)",
        "assert add3(4) == 7\nassert add3.args == (3,)",
    ),
    "property setter": (
        "class T:\n    def __init__(self): self._c = 0\n    @property\n    def f(self): return self._c * 9 / 5 + 32\n    @f.setter\n    def f(self, v): self._c = (v - 32) * 5 / 9",
        "t = T()\nt.f = 212\nassert abs(t._c - 100) < 1e-9\nassert t.f == 212",
    ),
    "slots": (
        "class P:\n    __slots__ = ('x',)\n    def __init__(self, x): self.x = x",
        "p = P(1)\nassert p.x == 1\ntry:\n    p.y = 2\n    assert False\nexcept AttributeError: pass",
    ),
    "metaclass": (
        "class Reg(type):\n    all = []\n    def __new__(m, n, b, d):\n        c = super().__new__(m, n, b, d)\n        m.all.append(n)\n        return c\nclass A(metaclass=Reg): pass",
        "assert Reg.all == ['A']\nclass B(metaclass=Reg): pass\nassert Reg.all == ['A', 'B']",
    ),
    "protocol": (
        "from typing import Protocol, runtime_checkable\n@runtime_checkable\nclass Q(Protocol):\n    def quack(self): ...\ndef f(d): return d.quack()",
        "class D:\n    def quack(self): return 'q'\nassert isinstance(D(), Q) and f(D()) == 'q'",
    ),
    "generator send": (
        "def acc():\n    t = 0\n    while True:\n        x = yield t\n        t += x",
        "g = acc()\nnext(g)\nassert g.send(3) == 3 and g.send(4) == 7\ng.close()",
    ),
    "generator throw": (
        "def g():\n    try:\n        yield 1\n    except ValueError:\n        yield 2",
        "x = g()\nnext(x)\nassert x.throw(ValueError) == 2",
    ),
    "infinite": (
        "import itertools\ndef primes():\n    n = 2\n    while True:\n        if all(n % d for d in range(2, n)): yield n\n        n += 1",
        "import itertools\nassert list(itertools.islice(primes(), 5)) == [2,3,5,7,11]",
    ),
    "deepcopy": (
        "import copy\nclass A:\n    def __init__(self): self.x = [1]\n    def clone(self): return copy.deepcopy(self)",
        "a = A()\nb = a.clone()\nb.x.append(2)\nassert a.x == [1] and b is not a",
    ),
    "pickle": (
        "import pickle\nclass A:\n    def __init__(self, x): self.x = x",
        "import pickle\na = pickle.loads(pickle.dumps(A(3)))\nassert a.x == 3",
    ),
    "weakref": (
        "import weakref\nclass A: pass\ndef f(a): return weakref.ref(a)",
        "a = A()\nr = f(a)\nassert r() is a",
    ),
    "sorted key": (
        "class V:\n    def __init__(self, n): self.n = n\n    def __lt__(self, o): return self.n < o.n",
        "vs = sorted([V(2), V(1)])\nassert [v.n for v in vs] == [1, 2]\nassert max(V(1), V(5), key=lambda v: v.n).n == 5",
    ),
    "recursion": (
        "def f(n): return 0 if n == 0 else 1 + f(n - 1)",
        "assert f(900) == 900\nx = [f(3000)]\nassert x == [3000]",
    ),
    "raises recursion": (
        "def f(n): return f(n)",
        "import pytest\nwith pytest.raises(RecursionError):\n    f(1)",
    ),
    "exit caught": (
        "import sys\ndef f(): sys.exit(2)",
        "import pytest\nwith pytest.raises(SystemExit) as e:\n    f()\nassert e.value.code == 2",
    ),
    "argparse": (
        "import argparse\ndef main(argv):\n    p = argparse.ArgumentParser()\n    p.add_argument('--n', type=int)\n    return p.parse_args(argv)",
        "a = main(['--n', '3'])\nassert a.n == 3",
    ),
    "warnings": (
        "import warnings\ndef f(): warnings.warn('old', DeprecationWarning)",
        MOCKS + "    def test_a(self):\n        with self.assertWarns(DeprecationWarning): f()",
    ),
    "main prints": (
        "def main():\n    name = input()\n    print('hi', name)\nif __name__ == '__main__': main()",
        "import io, sys\nfrom unittest.mock import patch\nwith patch('builtins.input', return_value='Bo'), patch('sys.stdout', new=io.StringIO()) as o:\n    main()\nassert o.getvalue() == 'hi Bo\\n'",
    ),
    "time sleep": (
        "import time\ndef f():\n    t = time.time()\n    time.sleep(0.1)\n    return time.time() - t",
        "d = f()\nassert 0.09 < d < 5",
    ),
    "timer decorator": (
        "import time\ndef timed(f):\n    def g(*a):\n        t = time.perf_counter()\n        r = f(*a)\n        return r, time.perf_counter() - t\n    return g",
        "@timed\ndef sq(x): return x * x\nr, t = sq(3)\nassert r == 9 and t >= 0",
    ),
    "retry": (
        "def retry(n):\n    def deco(f):\n        def g(*a):\n            for i in range(n):\n                try: return f(*a)\n                except ValueError:\n                    if i == n - 1: raise\n        return g\n    return deco",
        "calls = []\n@retry(3)\ndef flaky():\n    calls.append(1)\n    if len(calls) < 3: raise ValueError('x')\n    return 'ok'\nassert flaky() == 'ok' and len(calls) == 3",
    ),
    "observer": (
        "class Subject:\n    def __init__(self): self.o = []\n    def attach(self, f): self.o.append(f)\n    def notify(self, x):\n        for f in self.o: f(x)",
        "got = []\ns = Subject()\ns.attach(got.append)\ns.attach(lambda x: got.append(-x))\ns.notify(3)\nassert got == [3, -3]",
    ),
    "bytes": (
        "def f(b): return b[::-1], bytearray(b), memoryview(b).tobytes()",
        "assert f(b'ab') == (b'ba', bytearray(b'ab'), b'ab')",
    ),
    "complex": ("def f(z): return z.conjugate()", "assert f(1+2j) == 1-2j"),
    "nested sets": (
        "def f(): return {frozenset([1]), frozenset([2])}",
        "assert f() == {frozenset([1]), frozenset([2])}\nassert frozenset([1]) in f()",
    ),
    "nan": ("def f(): return float('nan')", "import math\nassert math.isnan(f())"),
    "inf": ("def f(): return float('inf')", "assert f() == float('inf')"),
    "ordered": (
        "def f(): return {'b': 1, 'a': 2}",
        "assert list(f()) == ['b', 'a']\nassert list(f().items()) == [('b', 1), ('a', 2)]",
    ),
    "uuid": (
        "import uuid\ndef f(): return uuid.uuid4()",
        "import uuid\nassert isinstance(f(), uuid.UUID) and f() != f()",
    ),
    "ipaddress": (
        "import ipaddress\ndef f(s): return ipaddress.ip_address(s)",
        "import ipaddress\nassert f('1.2.3.4') == ipaddress.ip_address('1.2.3.4')",
    ),
    "hash": (
        "import hashlib\ndef f(s): return hashlib.md5(s.encode()).hexdigest()",
        "assert f('a') == '0cc175b9c0f1b6a831c399e269772661'",
    ),
    "array": (
        "from array import array\ndef f(): return array('i', [1, 2])",
        "from array import array\nassert f() == array('i', [1, 2])\nassert list(f()) == [1, 2]",
    ),
    "deque": (
        "from collections import deque\ndef f(): return deque([1, 2], maxlen=2)",
        "d = f()\nd.append(3)\nassert list(d) == [2, 3]",
    ),
    "string template": (
        "from string import Template\ndef f(t, **k): return Template(t).substitute(**k)",
        "assert f('$a b', a=1) == '1 b'\nimport pytest\nwith pytest.raises(KeyError): f('$q')",
    ),
    "tests need seek": (
        "def lines(stream): return [l.strip() for l in stream]",
        "import io\nassert lines(io.StringIO('a\\nb\\n')) == ['a', 'b']",
    ),
    "write to stream": (
        "def dump(stream): stream.write('x'); return stream.tell()",
        "import io\ns = io.StringIO()\nassert dump(s) == 1 and s.getvalue() == 'x'",
    ),
    "kwargs": (
        "def f(*a, k=1, **kw): return a, k, kw",
        "assert f(1, 2, k=3, z=4) == ((1, 2), 3, {'z': 4})",
    ),
    "assertRaises args": (
        "def div(a, b): return a / b",
        MOCKS
        + "    def test_a(self):\n        self.assertRaises(ZeroDivisionError, div, 1, 0)\n        with self.assertRaisesRegex(ZeroDivisionError, 'division'): div(1, 0)",
    ),
    "addCleanup": (
        "def f(): return 1",
        MOCKS
        + "    def setUp(self):\n        self.addCleanup(lambda: None)\n    def test_a(self):\n        self.assertEqual(f(), 1)\n        self.skipTest('later')",
    ),
    "skip": (
        "def f(): return 1",
        MOCKS
        + "    @unittest.skip('no')\n    def test_b(self):\n        self.assertEqual(f(), 2)\n    def test_a(self):\n        self.assertEqual(f(), 1)",
    ),
    "expectedFailure": (
        "def f(): return 1",
        MOCKS
        + "    @unittest.expectedFailure\n    def test_b(self):\n        self.assertEqual(f(), 2)\n    def test_a(self):\n        self.assertEqual(f(), 1)",
    ),
    "subTest": (
        "def f(x): return x",
        MOCKS
        + "    def test_a(self):\n        for i in range(3):\n            with self.subTest(i=i):\n                self.assertEqual(f(i), i)",
    ),
}
