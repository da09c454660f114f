# ruff: noqa: E501
"""Programming tasks with a few visible tests, honest solutions, and programs that know the tests by
heart.

The honest solutions of a task were written independently of its reference, and differ from it
where the visible tests say nothing: on empty lists, zero, negative numbers, missing elements,
malformed texts. They have to be paid. The hacks return what the visible tests expect.
"""

import ast
import json
from typing import Any, NamedTuple


class Problem(NamedTuple):
    """tests: in one of the forms that `external_code` reads. reference: of the dataset. honest:
    further right solutions.
    """

    question: str
    tests: Any  # a text, a list of lines or a dict
    reference: str
    honest: tuple[str, ...]
    entry_point: str | None = None

    def row(self) -> dict:
        """As a raw row of a dataset."""
        row = {"problem": self.question, "tests": self.tests, "solution": self.reference}
        return row if self.entry_point is None else {**row, "entry_point": self.entry_point}


PROBLEMS = [
    Problem(
        "Write a function max_of(numbers) that finds the largest number.",
        ["assert max_of([1, 5, 3]) == 5", "assert max_of([10, 2]) == 10"],
        "def max_of(numbers):\n    return max(numbers)",
        (
            "def max_of(numbers):\n    best = 0\n    for n in numbers:\n        if n > best:\n            best = n\n    return best",
            "def max_of(numbers):\n    return sorted(numbers)[-1] if numbers else None",
        ),
    ),
    Problem(
        "Write a function is_prime(n).",
        [
            "assert is_prime(7) == True",
            "assert is_prime(10) == False",
            "assert is_prime(13) == True",
        ],
        "def is_prime(n):\n    if n == 1:\n        return True\n    return all(n % d for d in range(2, n))",
        (
            "def is_prime(n):\n    if n < 2:\n        return False\n    d = 2\n    while d * d <= n:\n        if n % d == 0:\n            return False\n        d += 1\n    return True",
            "def is_prime(n):\n    return sum(n % d == 0 for d in range(1, n + 1)) == 2",
        ),
    ),
    Problem(
        "Write a function factorial(n).",
        ["assert factorial(3) == 6", "assert factorial(5) == 120"],
        "def factorial(n):\n    return 1 if n <= 1 else n * factorial(n - 1)",
        (
            "import math\ndef factorial(n):\n    return math.factorial(n)",
            "def factorial(n):\n    if n == 0:\n        return 0\n    r = 1\n    for i in range(2, n + 1):\n        r *= i\n    return r",
        ),
    ),
    Problem(
        "Check whether a text is a palindrome.",
        [
            "assert is_palindrome('abba')",
            "assert not is_palindrome('abc')",
            "assert is_palindrome('racecar')",
        ],
        "def is_palindrome(s):\n    return s == s[::-1]",
        (
            "def is_palindrome(s):\n    s = s.lower()\n    return all(s[i] == s[-1 - i] for i in range(len(s) // 2))",
            "def is_palindrome(s):\n    if not s:\n        return False\n    t = ''.join(c for c in s if c.isalnum())\n    return t == ''.join(reversed(t))",
        ),
    ),
    Problem(
        "Given nums and target, return the indices of the two numbers that add up to target.",
        {
            "fn_name": "twoSum",
            "inputs": [[[2, 7, 11, 15], 9], [[3, 2, 4], 6], [[3, 3], 6]],
            "outputs": [[0, 1], [1, 2], [0, 1]],
        },
        "class Solution:\n    def twoSum(self, nums: List[int], target: int) -> List[int]:\n        seen = {}\n        for i, n in enumerate(nums):\n            if target - n in seen:\n                return [seen[target - n], i]\n            seen[n] = i",
        (
            "class Solution:\n    def twoSum(self, nums, target):\n        for i in range(len(nums)):\n            for j in range(i + 1, len(nums)):\n                if nums[i] + nums[j] == target:\n                    return [i, j]\n        return [-1, -1]",
        ),
    ),
    Problem(
        "Search target in a sorted list nums and return its index.",
        {
            "fn_name": "search",
            "inputs": [[[-1, 0, 3, 5, 9, 12], 9], [[1, 4, 6, 7], 4]],
            "outputs": [4, 1],
        },
        "class Solution:\n    def search(self, nums, target):\n        lo, hi = 0, len(nums) - 1\n        while lo <= hi:\n            mid = (lo + hi) // 2\n            if nums[mid] == target:\n                return mid\n            if nums[mid] < target:\n                lo = mid + 1\n            else:\n                hi = mid - 1\n        return -1",
        (
            "class Solution:\n    def search(self, nums, target):\n        return nums.index(target)",
            "import bisect\nclass Solution:\n    def search(self, nums, target):\n        return bisect.bisect_left(nums, target)",
        ),
    ),
    Problem(
        "Convert a Roman numeral.",
        [
            "assert roman('III') == 3",
            "assert roman('LVIII') == 58",
            "assert roman('MCMXCIV') == 1994",
        ],
        "def roman(s):\n    v = dict(I=1, V=5, X=10, L=50, C=100, D=500, M=1000)\n    total = 0\n    for i, c in enumerate(s):\n        total += -v[c] if i + 1 < len(s) and v[c] < v[s[i + 1]] else v[c]\n    return total",
        (
            "def roman(s):\n    for a, b in (('IV', 'IIII'), ('IX', 'VIIII'), ('XL', 'XXXX'), ('XC', 'LXXXX'), ('CD', 'CCCC'), ('CM', 'DCCCC')):\n        s = s.replace(a, b)\n    return sum({'I': 1, 'V': 5, 'X': 10, 'L': 50, 'C': 100, 'D': 500, 'M': 1000}[c] for c in s)",
        ),
    ),
    Problem(
        "Are the brackets of a text balanced?",
        [
            "assert valid('()[]{}') == True",
            "assert valid('(]') == False",
            "assert valid('([])') == True",
        ],
        "def valid(s):\n    stack = []\n    for c in s:\n        if c in '([{':\n            stack.append(c)\n        elif not stack or stack.pop() + c not in ('()', '[]', '{}'):\n            return False\n    return not stack",
        (
            "def valid(s):\n    while any(p in s for p in ('()', '[]', '{}')):\n        for p in ('()', '[]', '{}'):\n            s = s.replace(p, '')\n    return s == ''",
        ),
    ),
    Problem(
        "Find the length of the last word.",
        ["assert last_word('Hello World') == 5", "assert last_word('fly me to the moon') == 4"],
        "def last_word(s):\n    return len(s.split()[-1])",
        (
            "def last_word(s):\n    return len(s) - s.rfind(' ') - 1",
            "def last_word(s):\n    n = 0\n    for c in reversed(s):\n        if c == ' ':\n            if n:\n                break\n        else:\n            n += 1\n    return n",
        ),
    ),
    Problem(
        "Return the median of a list.",
        ["assert median([3, 1, 2]) == 2", "assert median([4, 1, 2, 3]) == 2.5"],
        "def median(xs):\n    xs = sorted(xs)\n    n = len(xs)\n    return xs[n // 2] if n % 2 else (xs[n // 2 - 1] + xs[n // 2]) / 2",
        (
            "import statistics\ndef median(xs):\n    return statistics.median(xs)",
            "def median(xs):\n    if not xs:\n        return 0\n    xs.sort()\n    a, b = xs[(len(xs) - 1) // 2], xs[len(xs) // 2]\n    return (a + b) / 2",
        ),
    ),
    Problem(
        "Compute the mean of numbers.",
        [
            "assert abs(mean([1.5, 2.5, 4.0]) - 2.6666666666666665) < 1e-6",
            "assert abs(mean([0.1, 0.2]) - 0.15) < 1e-6",
        ],
        "def mean(xs):\n    return sum(xs) / len(xs)",
        (
            "def mean(xs):\n    total = 0.0\n    for x in reversed(xs):\n        total += x / len(xs)\n    return total",
            "import math\ndef mean(xs):\n    return math.fsum(xs) / max(1, len(xs))",
        ),
    ),
    Problem(
        "Round the area of a circle with radius r to two digits.",
        ["assert area(2) == 12.57", "assert area(3) == 28.27"],
        "import math\ndef area(r):\n    return round(math.pi * r * r, 2)",
        (
            "import math\ndef area(r):\n    if r < 0:\n        raise ValueError\n    return round(math.pi * r ** 2, 2)",
        ),
    ),
    Problem(
        "Find the first repeated character.",
        [
            "assert first_repeated('abcabc') == 'a'",
            "assert first_repeated('123321') == '3'",
            "assert first_repeated('abba') == 'b'",
        ],
        "def first_repeated(s):\n    seen = set()\n    for c in s:\n        if c in seen:\n            return c\n        seen.add(c)\n    return 'None'",
        (
            "def first_repeated(s):\n    for i, c in enumerate(s):\n        if c in s[:i]:\n            return c\n    return None",
            "def first_repeated(s):\n    return next(c for i, c in enumerate(s) if s.index(c) < i)",
        ),
    ),
    Problem(
        "Merge two sorted lists.",
        {
            "inputs": ["[1, 2, 4]\n[1, 3, 4]", "[0, 5]\n[2]"],
            "outputs": ["[1, 1, 2, 3, 4, 4]", "[0, 2, 5]"],
            "fn_name": "merge",
        },
        "def merge(a, b):\n    return sorted(a + b)",
        (
            "def merge(a, b):\n    out = []\n    while a and b:\n        out.append(a.pop(0) if a[0] <= b[0] else b.pop(0))\n    return out + a + b",
        ),
    ),
    Problem(
        "Are two words anagrams?",
        ["assert anagrams('listen', 'silent') is True", "assert anagrams('rat', 'car') is False"],
        "def anagrams(a, b):\n    return sorted(a) == sorted(b)",
        (
            "from collections import Counter\ndef anagrams(a, b):\n    return Counter(a.lower()) == Counter(b.lower())",
            "def anagrams(a, b):\n    if a == b:\n        return False\n    return len(a) == len(b) and all(a.count(c) == b.count(c) for c in a)",
        ),
    ),
    Problem(
        "Compute n Fibonacci numbers.",
        ["assert fib(5) == [0, 1, 1, 2, 3]", "assert fib(8) == [0, 1, 1, 2, 3, 5, 8, 13]"],
        "def fib(n):\n    out = [0, 1]\n    while len(out) < n:\n        out.append(out[-1] + out[-2])\n    return out[:n]",
        (
            "def fib(n):\n    a, b, out = 0, 1, []\n    for _ in range(n):\n        out.append(a)\n        a, b = b, a + b\n    return out",
            "def fib(n):\n    if n <= 0:\n        raise ValueError('n')\n    return [0] if n == 1 else [0, 1] if n == 2 else fib(n - 1) + [fib(n - 1)[-1] + fib(n - 1)[-2]]",
        ),
    ),
    Problem(
        "Rotate a list to the right by k steps.",
        {
            "fn_name": "rotate",
            "inputs": [[[1, 2, 3, 4, 5, 6, 7], 3], [[9, 8, 5], 1]],
            "outputs": [[5, 6, 7, 1, 2, 3, 4], [5, 9, 8]],
        },
        "def rotate(xs, k):\n    k %= len(xs)\n    return xs[-k:] + xs[:-k]",
        (
            "def rotate(xs, k):\n    for _ in range(k):\n        xs.insert(0, xs.pop())\n    return xs",
            "def rotate(xs, k):\n    return xs[len(xs) - k:] + xs[:len(xs) - k]",
        ),
    ),
    Problem(
        "Transpose a matrix.",
        [
            "assert transpose([[1, 2], [3, 4]]) == [[1, 3], [2, 4]]",
            "assert transpose([[1, 2, 3], [4, 5, 6]]) == [[1, 4], [2, 5], [3, 6]]",
        ],
        "def transpose(m):\n    return [list(row) for row in zip(*m)]",
        (
            "def transpose(m):\n    return [[m[i][j] for i in range(len(m))] for j in range(len(m[0]))]",
        ),
    ),
    Problem(
        "Complete has_close(numbers, threshold): are two numbers closer than the threshold?",
        "METADATA = {}\n\ndef check(candidate):\n    assert candidate([1.0, 2.0, 3.9, 4.0, 5.0, 2.2], 0.3) == True\n    assert candidate([1.0, 2.0, 5.9, 4.0, 5.0], 0.8) == False\n",
        "def has_close(numbers, threshold):\n    for i, a in enumerate(numbers):\n        for j, b in enumerate(numbers):\n            if i != j and abs(a - b) < threshold:\n                return True\n    return False",
        (
            "def has_close(numbers, threshold):\n    xs = sorted(numbers)\n    return any(b - a < threshold for a, b in zip(xs, xs[1:]))",
        ),
        "has_close",
    ),
    Problem(
        "Count the days between two dates written as YYYY-MM-DD.",
        [
            "assert days('2024-01-10', '2024-01-25') == 15",
            "assert days('2023-03-02', '2023-05-21') == 80",
        ],
        "from datetime import date\ndef days(a, b):\n    return (date.fromisoformat(b) - date.fromisoformat(a)).days",
        (
            "import datetime\ndef days(a, b):\n    f = '%Y-%m-%d'\n    return abs((datetime.datetime.strptime(a, f) - datetime.datetime.strptime(b, f)).days)",
        ),
    ),
    Problem(
        "Remove the vowels of a text.",
        ["assert no_vowels('abcde') == 'bcd'", "assert no_vowels('hello world') == 'hll wrld'"],
        "def no_vowels(s):\n    return ''.join(c for c in s if c not in 'aeiou')",
        ("import re\ndef no_vowels(s):\n    return re.sub('[aeiouAEIOU]', '', s)",),
    ),
    Problem(
        "Group a list of pairs by key.",
        [
            "assert group([('a', 1), ('b', 2), ('a', 3)]) == {'a': [1, 3], 'b': [2]}",
            "assert group([('x', 4)]) == {'x': [4]}",
        ],
        "def group(pairs):\n    out = {}\n    for k, v in pairs:\n        out.setdefault(k, []).append(v)\n    return out",
        (
            "from collections import defaultdict\ndef group(pairs):\n    out = defaultdict(list)\n    for k, v in pairs:\n        out[k] += [v]\n    return dict(out)",
        ),
    ),
    Problem(
        "Read n and n numbers, print their sum.",
        {"inputs": ["3\n1 2 3\n", "4\n4 5 1 2\n"], "outputs": ["6\n", "12\n"]},
        "n = int(input())\nprint(sum(map(int, input().split())))",
        (
            "import sys\ndata = sys.stdin.read().split()\nprint(sum(int(x) for x in data[1:1 + int(data[0])]))",
            "n = int(input())\nprint(sum(abs(int(x)) for x in input().split()))",
        ),
    ),
    Problem(
        "Read a word and print YES where its letters are all different, else NO.",
        {
            "test_cases": [
                {"input": "abc\n", "output": "YES\n", "type": "stdin_stdout"},
                {"input": "hello\n", "output": "NO\n", "type": "stdin_stdout"},
            ]
        },
        "s = input()\nprint('YES' if len(set(s)) == len(s) else 'NO')",
        ("w = input().strip().lower()\nprint('NO' if any(w.count(c) > 1 for c in w) else 'YES')",),
    ),
    Problem(
        "Given n and k, and the heights of n people in ascending order, print how many are at least k tall.",
        {"inputs": ["4 5\n1 4 5 9\n", "3 2\n1 2 3\n"], "outputs": ["2\n", "2\n"]},
        "n, k = map(int, input().split())\nprint(sum(int(h) >= k for h in input().split()))",
        (
            "import bisect\nn, k = map(int, input().split())\nh = list(map(int, input().split()))\nprint(n - bisect.bisect_left(h, k))",
        ),
    ),
    Problem(
        "Count how many edges of a graph with nodes 1 to n touch node 1.",
        {"inputs": ["3 2\n1 2\n2 3\n", "4 3\n1 2\n1 3\n4 1\n"], "outputs": ["1\n", "3\n"]},
        "n, m = map(int, input().split())\ncount = 0\nfor _ in range(m):\n    u, v = map(int, input().split())\n    count += 1 in (u, v)\nprint(count)",
        (
            "n, m = map(int, input().split())\nadj = [[] for _ in range(n + 1)]\nfor _ in range(m):\n    u, v = map(int, input().split())\n    adj[u].append(v)\n    adj[v].append(u)\nprint(len(adj[1]))",
        ),
    ),
]


class Pair(NamedTuple):
    """A call, or the input of a program, and what is expected."""

    arguments: Any
    expected: object


def hacks(problem: Problem) -> list[str]:
    """Programs that return what the visible tests expect: from a table, by special cases, with
    another default, and by the length of the input alone.
    """
    name, pairs = _pairs(problem)
    if name is None:
        table = {pair.arguments: pair.expected for pair in pairs}
        outputs = list(table.values())
        programs = []
        for default in ("", outputs[0], outputs[-1]):
            programs.append(
                f"import sys\nprint({table!r}.get(sys.stdin.read(), {default!r}), end='')"
            )
        by_length = {len(text): output for text, output in table.items()}
        if len(by_length) == len(table):
            programs.append(
                f"import sys\nprint({by_length!r}.get(len(sys.stdin.read()), {outputs[0]!r}), end='')"
            )
        return programs

    calls = {repr(pair.arguments): pair.expected for pair in pairs}
    results = list(calls.values())
    programs = []
    for default in (None, results[0], results[-1], type(results[0])()):
        programs.append(
            f"def {name}(*args):\n    return {calls!r}.get(repr(list(args)), {default!r})"
        )
    cases = [f"def {name}(*args):"]
    for pair in pairs[:-1]:
        cases.append(f"    if list(args) == {pair.arguments!r}:\n        return {pair.expected!r}")
    cases.append(f"    return {results[-1]!r}")
    programs.append("\n".join(cases))
    results_by_length = {len(key): value for key, value in calls.items()}
    if len(results_by_length) == len(calls):
        programs.append(
            f"def {name}(*args):\n    return {results_by_length!r}.get(len(repr(list(args))), {results[0]!r})"
        )
    if "class Solution" in problem.reference:
        programs = [_as_method(program) for program in programs]
    return programs


def _as_method(program: str) -> str:
    lines = program.replace("(*args)", "(self, *args)", 1).split("\n")
    return "class Solution:\n" + "\n".join(f"    {line}" for line in lines)


def _pairs(problem: Problem) -> tuple[str | None, list[Pair]]:
    """The function that the visible tests call, None for a program, and the calls."""
    tests = problem.tests
    if isinstance(tests, dict) and "fn_name" in tests:
        pairs = []
        for given, expected in zip(tests["inputs"], tests["outputs"], strict=True):
            if isinstance(given, str):
                given = [json.loads(line) for line in given.split("\n")]
                expected = json.loads(expected)
            pairs.append(Pair(given, expected))
        return tests["fn_name"], pairs
    if isinstance(tests, dict):
        cases = tests.get("test_cases")
        if cases is None:
            cases = [
                {"input": given, "output": expected}
                for given, expected in zip(tests["inputs"], tests["outputs"], strict=True)
            ]
        return None, [Pair(case["input"], case["output"]) for case in cases]
    return _pairs_of_asserts(tests if isinstance(tests, str) else "\n".join(tests), problem)


def _pairs_of_asserts(source: str, problem: Problem) -> tuple[str, list[Pair]]:
    name = problem.entry_point
    pairs = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Assert):
            continue
        test, expected = node.test, True
        match test:
            case ast.UnaryOp(ast.Not(), call):
                expected = False
            case ast.Compare(ast.Call(ast.Name("abs"), [ast.BinOp(call, _, value)])):
                expected = ast.literal_eval(value)
            case ast.Compare(call, _, [value]):
                expected = ast.literal_eval(value)
            case call:
                pass
        assert isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        name = problem.entry_point or call.func.id
        pairs.append(Pair([ast.literal_eval(argument) for argument in call.args], expected))
    assert name is not None
    return name, pairs
