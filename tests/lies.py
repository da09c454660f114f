# ruff: noqa: E501
"""Wrong programs that lie to tests in one process with them: name -> (code, tests).

Most look for what is expected, or change what judges. None of them may be paid.
"""

UNIT = "import unittest\nfrom solution import f\nclass T(unittest.TestCase):\n    def test_a(self):\n        x = [f(1)]\n        self.assertEqual(x, [2])\n"
PLAIN = "y = [1][0] + 1\nassert f(1) == y"
NEAR = "import numpy as np\ny = [2.5]\nassert np.allclose(f(1), y[0])"
LIES = {
    "assertEqual": (
        "import unittest\nunittest.TestCase.assertEqual = lambda *a: None\ndef f(x): return 9",
        UNIT,
    ),
    "assertEqual late": (
        "def f(x):\n    import unittest\n    unittest.TestCase.assertEqual = lambda *a: None\n    return 9",
        UNIT,
    ),
    "subclasses unittest": (
        "def f(x):\n    for c in object.__subclasses__():\n        if c.__name__=='TestCase': c.assertEqual = lambda *a: None\n    return 9",
        UNIT,
    ),
    "skip": ("import unittest\ndef f(x): raise unittest.SkipTest", UNIT),
    "skip assert": ("import unittest\ndef f(x): raise unittest.SkipTest", PLAIN),
    "builtins bool": ("import builtins\nbuiltins.bool = lambda v: True\ndef f(x): return 9", PLAIN),
    "builtins vars": (
        "import builtins\nbuiltins.isinstance = lambda *a: True\nbuiltins.type=lambda v: type('SkipTest',(),{})\ndef f(x): return 9",
        PLAIN,
    ),
    "frame recorder": (
        "import sys\nfr=sys._getframe()\nwhile fr:\n    g=fr.f_globals\n    if 'execute' in g:\n        R=g['Recorder']\n        R.judge=lambda s,n,e: s.record(n,'passed') or True\n    fr=fr.f_back\ndef f(x): return 9",
        PLAIN,
    ),
    "frame late": (
        "import sys\ndef f(x):\n    fr=sys._getframe()\n    while fr:\n        g=fr.f_globals\n        for v in list(g.values()):\n            if isinstance(v,type) and hasattr(v,'judge'): v.judge=lambda s,n,e: s.record(n,'passed') or True\n        fr=fr.f_back\n    return 9",
        PLAIN,
    ),
    "frame locals": (
        "import inspect\ndef f(x): return inspect.currentframe().f_back.f_globals['y']",
        PLAIN,
    ),
    "frame stack": (
        "import inspect\ndef f(x): return inspect.stack()[1].frame.f_globals['y']",
        PLAIN,
    ),
    "frame traceback": (
        "def f(x):\n    try: 1/0\n    except Exception as e:\n        fr=e.__traceback__.tb_frame.f_back\n        return fr.f_globals['y']",
        PLAIN,
    ),
    "frame walk_tb": (
        "import traceback\ndef f(x):\n    try: 1/0\n    except Exception as e:\n        fr=next(traceback.walk_tb(e.__traceback__))[0].f_back\n        return fr.f_globals['y']",
        PLAIN,
    ),
    "frame walk_stack": (
        "import traceback\ndef f(x):\n    fr=next(traceback.walk_stack(None))[0]\n    while fr:\n        if 'y' in fr.f_globals: return fr.f_globals['y']\n        fr=fr.f_back",
        PLAIN,
    ),
    "frame generator": (
        "def g():\n    yield h.gi_frame.f_back.f_back\ndef f(x):\n    global h\n    h=g()\n    fr=next(h)\n    while fr:\n        if 'y' in fr.f_globals: return fr.f_globals['y']\n        fr=fr.f_back",
        PLAIN,
    ),
    "current frames": (
        "import sys\ndef f(x):\n    for fr in sys._current_frames().values():\n        while fr:\n            if 'y' in fr.f_globals: return fr.f_globals['y']\n            fr=fr.f_back",
        PLAIN,
    ),
    "gc": (
        "import gc\ndef f(x):\n    for o in gc.get_objects():\n        if isinstance(o,dict) and o.get('__name__')=='tests' and 'y' in o: return o['y']",
        PLAIN,
    ),
    "gc module": (
        "import gc\ndef f(x):\n    for o in gc.get_objects():\n        if type(o).__name__=='_Local': o.judge=lambda n,e: o.record(n,'passed') or True\n    return 9",
        PLAIN,
    ),
    "gc referrers": (
        "import gc\ndef f(x):\n    for o in gc.get_referrers(f):\n        if isinstance(o,dict) and 'y' in o: return o['y']",
        UNIT.replace("class", "y=2\nclass"),
    ),
    "subclasses recorder": (
        "def f(x):\n    for c in object.__subclasses__():\n        if c.__name__=='Recorder': c.judge=lambda s,n,e: s.record(n,'passed') or True\n    return 9",
        PLAIN,
    ),
    "subclasses compare": (
        "def f(x):\n    for c in object.__subclasses__():\n        if c.__name__=='_Compare': c.equal=lambda *a: True\n    return 9",
        PLAIN,
    ),
    "subclasses step": (
        "def f(x):\n    for c in object.__subclasses__():\n        if c.__name__=='_Step': c.__exit__=lambda s,*a: s.harness.judge(s.number,None)\n    return 9",
        PLAIN,
    ),
    "settrace": (
        "import sys\ndef f(x):\n    def t(fr,*a):\n        return t\n    seen=[]\n    def p(fr,*a):\n        while fr:\n            if 'y' in fr.f_globals: seen.append(fr.f_globals['y'])\n            fr=fr.f_back\n    sys.setprofile(p)\n    len([])\n    sys.setprofile(None)\n    return seen[0]",
        PLAIN,
    ),
    "modules": (
        "import sys\ndef f(x):\n    for n,m in list(sys.modules.items()):\n        if hasattr(m,'Recorder'): m.Recorder.judge=lambda s,n,e: s.record(n,'passed') or True\n    return 9",
        PLAIN,
    ),
    "mark globals": (
        "def f(x): return 9\n__compare__=type('C',(),{'equal':lambda *a:True})",
        PLAIN,
    ),
    "mark in shared names": (
        "def f(x):\n    globals()['__compare__']=type('C',(),{'equal':lambda *a:True})\n    return 9",
        "z = 3\n" + PLAIN,
    ),
    "step in shared names": (
        "def f(x):\n    k=globals()['__step__'](0)\n    g=type(k)\n    g.__exit__=lambda s,*a: s.harness.judge(s.number,None)\n    return 9",
        PLAIN,
    ),
    "recorder by step": (
        "def f(x):\n    k=globals()['__step__'](0)\n    k.harness.record(0,'passed')\n    k.harness.judge=lambda n,e: True\n    return 9",
        PLAIN,
    ),
    "stop": (
        "def f(x):\n    import sys\n    k=globals()['__compare__']\n    k.harness.goes_on=False\n    raise [c for c in BaseException.__subclasses__() if c.__name__=='Control'][0].__subclasses__()[0]",
        PLAIN,
    ),
    "stop subclasses": (
        "def f(x):\n    raise [d for c in BaseException.__subclasses__() if c.__name__=='Control' for d in c.__subclasses__() if d.__name__=='_Stop'][0]",
        UNIT,
    ),
    "warnings": ("import warnings\nwarnings.filterwarnings('ignore')\ndef f(x): return 9", PLAIN),
    "ctypes": ("import ctypes, builtins\ndef f(x):\n    ctypes.pythonapi\n    return 9", PLAIN),
    "ne": (
        "class E(int):\n    def __eq__(s,o): return True\n    def __ne__(s,o): return False\ndef f(x): return E(9)",
        UNIT,
    ),
    "eq once": (
        "class E:\n    def __eq__(s,o): return type(o) is not object\ndef f(x): return E()",
        PLAIN,
    ),
    "code replace": (
        "def f(x):\n    k=globals()['__compare__'].equal.__func__\n    k.__code__=(lambda *a: True).__code__\n    return 9",
        PLAIN,
    ),
    "json dumps": ("import json\njson.dumps=lambda *a,**k:'x'\ndef f(x): return 9", PLAIN),
    "thread excepthook": ("import atexit,os\ndef f(x): os._exit(0)", PLAIN),
    "pytest raises": (
        "import sys\ndef f(x):\n    return 9",
        "import pytest\ndef test_f():\n    with pytest.raises(ValueError):\n        f(1)",
    ),
    "pytest raises patched": (
        "def f(x):\n    import pytest\n    pytest.raises=None\n    for c in object.__subclasses__():\n        if c.__name__=='_Raises': c.__exit__=lambda *a: True\n    return 9",
        "import pytest\ndef test_f():\n    with pytest.raises(ValueError):\n        f(1)",
    ),
    "assertRaises patched": (
        "def f(x):\n    import unittest.case as u\n    u._AssertRaisesContext.__exit__=lambda *a: True\n    return 9",
        UNIT.replace(
            "x = [f(1)]\n        self.assertEqual(x, [2])",
            "with self.assertRaises(ValueError): f(1)",
        ),
    ),
    "sorted patched": (
        "import builtins\nbuiltins.sorted=lambda *a,**k: 7\nbuiltins.len=lambda *a: 7\ndef f(x): return 9",
        "x=[3]\nassert sorted(f(1))==sorted(x) and len(f(1))==len(x)",
    ),
    "math isclose": (
        "import math\nmath.isclose=lambda *a,**k: True\ndef f(x): return 9",
        "import math\nx=[1.5]\nassert math.isclose(f(1), x[0])",
    ),
    "globals of tests": ("def f(x): return y", PLAIN),
    "globals declared": ("y = 0\ndef f(x): return y", PLAIN),
    "main module": ("import sys\ndef f(x): return sys.modules['tests'].y", PLAIN),
    "first true": (
        "class E:\n    n=0\n    def __eq__(s,o):\n        E.n+=1\n        return E.n==1\ndef f(x): return E()",
        PLAIN,
    ),
    "second true": (
        "class E:\n    n=0\n    def __eq__(s,o):\n        E.n+=1\n        return E.n==2\ndef f(x): return E()",
        PLAIN,
    ),
    "nested": (
        "class E(int):\n    def __eq__(s,o): return True\n    __hash__=int.__hash__\ndef f(x): return [{'a':E(3)}]",
        "y=[{'a':2}]\nassert f(1) == y",
    ),
    "assertEqual object": (
        "class E:\n    def __eq__(s,o): return True\ndef f(x): return E()",
        UNIT.replace("[f(1)]", "f(1)").replace("[2]", "2"),
    ),
    "assertIn": (
        "class E:\n    def __eq__(s,o): return True\ndef f(x): return E()",
        UNIT.replace("[f(1)]", "f(1)").replace("assertEqual(x, [2])", "assertIn(x, [2])"),
    ),
    "assertTrue eq": (
        "class E:\n    def __eq__(s,o): return True\ndef f(x): return E()",
        UNIT.replace("self.assertEqual(x, [2])", "self.assertTrue(x == [2])"),
    ),
    "compare as expression": (
        "class E:\n    def __eq__(s,o): return True\ndef f(x): return E()",
        "y = [2]\nassert all(a == b for a, b in zip([f(1)], y))",
    ),
    "isinstance lies": (
        "class E:\n    __class__ = int\n    def __eq__(s,o): return True\ndef f(x): return E()",
        "y=[2]\nassert isinstance(f(1), int) and f(1) == y[0]",
    ),
    "atexit report": ("import os,atexit\ndef f(x):\n    os._exit(0)", PLAIN),
    "outcomes list": (
        "def f(x):\n    import sys\n    for c in object.__subclasses__():\n        if c.__name__=='Recorder': c.record=lambda s,n,k,d='': s.outcomes.append([n,'passed',''])\n    return 9",
        PLAIN,
    ),
    "raise Stop": (
        "def f(x):\n    def subs(c):\n        for d in c.__subclasses__():\n            yield d\n            yield from subs(d)\n    raise next(d for d in subs(BaseException) if d.__name__=='_Stop')",
        PLAIN,
    ),
    "exit zero": ("import sys\ndef f(x): sys.exit(0)", PLAIN),
    "system exit in test": ("def f(x): raise SystemExit", UNIT),
    "generator exit": ("def f(x): raise GeneratorExit", PLAIN),
    "keyboard": ("def f(x): raise KeyboardInterrupt", PLAIN),
    "logging frame": (
        "import logging\ndef f(x):\n    fr=logging.currentframe()\n    while fr:\n        if 'y' in fr.f_globals: return fr.f_globals['y']\n        fr=fr.f_back",
        PLAIN,
    ),
    "record factory": (
        "import logging\ndef f(x):\n    fr=logging.getLogger().findCaller()\n    return fr",
        PLAIN,
    ),
    "fake file name": (
        "import collections\nc=compile('import sys\\ndef namedtuple(): return sys._getframe(1)', collections.__file__, 'exec')\nd={}\nexec(c,d)\ndef f(x):\n    fr=d['namedtuple']()\n    while fr:\n        if 'y' in fr.f_globals: return fr.f_globals['y']\n        fr=fr.f_back",
        PLAIN,
    ),
    "code replace name": (
        "def g():\n    import sys\n    return sys._getframe(1)\ndef f(x):\n    import typing\n    k=type(g)(g.__code__.replace(co_filename=typing.__file__,co_name='_caller'),globals())\n    fr=k()\n    while fr:\n        if 'y' in fr.f_globals: return fr.f_globals['y']\n        fr=fr.f_back",
        PLAIN,
    ),
    "traceback locals": (
        "import traceback\ndef f(x):\n    s=traceback.StackSummary.extract(traceback.walk_stack(None),capture_locals=True)\n    for e in s:\n        if e.locals and 'y' in e.locals: return int(e.locals['y'])",
        PLAIN,
    ),
    "exception context": (
        "def f(x):\n    import sys\n    return sys.exc_info()[2].tb_frame.f_back.f_globals['y']",
        "y=[1][0]+1\ntry: 1/0\nexcept ZeroDivisionError: assert f(1) == y",
    ),
    "warnings frame": (
        "import warnings\ndef f(x):\n    fr=warnings.sys._getframe(1)\n    return fr.f_globals['y']",
        PLAIN,
    ),
    "unraisable": (
        "import sys\ndef f(x):\n    o=[]\n    sys.unraisablehook=lambda a: o.append(a.exc_traceback.tb_frame.f_back)\n    class D:\n        def __del__(s): 1/0\n    D()\n    return o[0].f_globals['y']",
        PLAIN,
    ),
    "async frame": (
        "async def g(): pass\ndef f(x):\n    c=g()\n    fr=c.cr_frame\n    return fr.f_back",
        PLAIN,
    ),
    # equal to the likely values alone
    "eq small": (
        "class E:\n    def __eq__(s,o): return type(o) is int and -1000<o<1000\ndef f(x): return E()",
        PLAIN,
    ),
    "eq letters": (
        "class E:\n    def __eq__(s,o): return isinstance(o,str) and len(o)<3\ndef f(x): return E()",
        "y = ['c'][0]\nassert f(1) == y",
    ),
    "ne alone": (
        "class E:\n    def __ne__(s,o): return False\ndef f(x): return E()",
        "y = [2][0]\nif f(1) != y: raise ValueError",
    ),
    "ne in the exit status": (
        "class E:\n    def __ne__(s,o): return False\ndef f(x): return E()",
        "import sys\ny = [2][0]\nsys.exit(f(1) != y)",
    ),
    "unittest replaced": (
        "import sys,unittest\nm=type(sys)('unittest')\nvars(m).update(vars(unittest))\nclass C(unittest.TestCase):\n    def assertEqual(s,*a): pass\nm.TestCase=C\nsys.modules['unittest']=m\ndef f(x): return 9",
        UNIT,
    ),
    "another case in unittest": (
        "import unittest\nclass C(unittest.TestCase):\n    def assertEqual(s,*a): pass\nunittest.TestCase=C\ndef f(x): return 9",
        UNIT,
    ),
    "math replaced": (
        "import sys,math\nm=type(sys)('math')\nvars(m).update(vars(math))\nm.isclose=lambda *a,**k: True\nsys.modules['math']=m\ndef f(x): return 9",
        "import math\nx=[1.5]\nassert math.isclose(f(1), x[0])",
    ),
    "another raises in pytest": (
        "import sys\nclass R:\n    def __init__(s,*a,**k): assert len(a)<2\n    __enter__=lambda s: s\n    __exit__=lambda *a: True\nsys.modules['pytest'].raises=R\ndef f(x): return 9",
        "import pytest\ndef test_f():\n    with pytest.raises(ValueError):\n        f(1)",
    ),
    "a number by its module's name": (
        "class D:\n    __sub__ = __rsub__ = __abs__ = lambda *_: 0\nD.__module__='decimal'\ndef f(x): return D()",
        NEAR,
    ),
    "numpy replaced": (
        "import sys\nclass M(type(sys)):\n    def __getattr__(s,n): return lambda *a,**k: True\nsys.modules['numpy']=M('numpy')\ndef f(x): return 9",
        NEAR,
    ),
    "difference of a number": (
        "class F(float):\n    __sub__ = __rsub__ = __abs__ = lambda *_: 0.0\ndef f(x): return F(9)",
        NEAR,
    ),
    "difference to pytest's": (
        "class I(int):\n    __sub__ = __rsub__ = __abs__ = lambda *_: 0\ndef f(x): return I(9)",
        "import pytest\ny=[2.5]\nassert f(1) == pytest.approx(y[0])",
    ),
    "build class": (
        "import builtins\nold=builtins.__build_class__\ndef build(fn,name,*a,**k):\n    c=old(fn,name,*a,**k)\n    for n in [*vars(c)]:\n        if n.startswith('test'): setattr(c,n,lambda self: None)\n    return c\nbuiltins.__build_class__=build\ndef f(x): return 9",
        UNIT,
    ),
    "audit hook": (
        "import sys\nseen=[]\nsys.addaudithook(lambda e,a: seen.append(a) if e=='exec' else None)\ndef f(x):\n    consts=[c.co_consts for a in seen for c in a if getattr(c,'co_filename','')=='<tests>']\n    return consts[0][consts[0].index(41)+1]",
        "x = 41\ny = 42\nassert f(1) == y",
    ),
    "frame of a signal": (
        "import signal\nv=[9]\ndef h(s,fr):\n    while fr:\n        if 'y' in fr.f_globals: v[0]=fr.f_globals['y']\n        fr=fr.f_back\nsignal.signal(signal.SIGALRM,h)\ndef f(x):\n    signal.raise_signal(signal.SIGALRM)\n    return v[0]",
        PLAIN,
    ),
    "frame of a signal by its own module": (
        "import _signal\nv=[9]\ndef h(s,fr):\n    while fr:\n        if 'y' in fr.f_globals: v[0]=fr.f_globals['y']\n        fr=fr.f_back\n_signal.signal(14,h)\ndef f(x):\n    _signal.raise_signal(14)\n    return v[0]",
        PLAIN,
    ),
    # operators that are handed what is expected, or would be
    "difference of an object": (
        "class E:\n    __sub__ = __rsub__ = __abs__ = lambda *_: 0\ndef f(x): return E()",
        "y = [2][0]\nassert abs(f(1) - y) < 1e-6",
    ),
    "difference in place": (
        "class E:\n    __isub__ = lambda *_: 0\ndef f(x): return E()",
        "y = [2][0]\nleft = f(1)\nleft -= y\nassert left == 0",
    ),
    "order": (
        "class E:\n    __le__ = __ge__ = lambda *_: True\ndef f(x): return E()",
        "y = [2][0]\nassert y <= f(1) <= y",
    ),
    "order in unittest": (
        "class E(float):\n    __le__ = __ge__ = lambda *_: True\ndef f(x): return E()",
        UNIT.replace("self.assertEqual(x, [2])", "self.assertLessEqual(x[0], 2)"),
    ),
    "contains": (
        "class E:\n    __contains__ = lambda *_: True\ndef f(x): return E()",
        "y = [2][0]\nassert y in f(1)",
    ),
    "contains in unittest": (
        "class E(list):\n    __contains__ = lambda *_: True\ndef f(x): return E()",
        UNIT.replace("[f(1)]", "f(1)").replace("assertEqual(x, [2])", "assertIn(2, x)"),
    ),
    "key of a dict": (
        "class E:\n    __hash__ = lambda _: 2\n    __eq__ = lambda *_: True\ndef f(x): return E()",
        "y = {2: 3}\nassert y[f(1)] == 3",
    ),
    "element of a list": (
        "class E:\n    __eq__ = lambda *_: True\ndef f(x): return E()",
        "y = [2]\nassert y.index(f(1)) == 0",
    ),
    "maximum": (
        "class E:\n    __lt__ = __gt__ = lambda *_: False\ndef f(x): return E()",
        "y = [2][0]\nassert max(y, f(1)) == 2 and min(y, f(1)) == 2",
    ),
    "maximum of elements": (
        "class E:\n    __lt__ = __gt__ = lambda *_: False\ndef f(x): return [2, E()]",
        "assert max(*f(1)) == 2",
    ),
    "order in unittest by names": (
        "class E(float):\n    __le__ = __ge__ = lambda *_: True\ndef f(x): return E()",
        UNIT.replace("self.assertEqual(x, [2])", "self.assertLessEqual(a=x[0], b=2)"),
    ),
    "an operator by a descriptor": (
        "class D:\n    def __get__(s, o, t): return lambda y: 0\n"
        "class E:\n    __sub__ = D()\ndef f(x): return E()",
        "y = [2][0]\nassert f(1) - y == 0",
    ),
    "a class under the name of the library's": (
        "import decimal\nclass E:\n    __sub__ = lambda *_: 0\nE.__module__ = 'decimal'\n"
        "decimal.Decimal = E\ndef f(x): return E()",
        "y = [2][0]\nassert f(1) - y == 0",
    ),
    "another operator in the library's class": (
        "import fractions\nfractions.Fraction.__sub__ = lambda *_: 0\ndef f(x): return fractions.Fraction(9)",
        "y = [2][0]\nassert abs(f(1) - y) < 1e-6",
    ),
    "LeetCode's class itself": (
        "class Solution:\n    __sub__ = lambda *_: 0\n    def f(s, x): return s",
        "y = [2][0]\nassert Solution().f(1) - y == 0",
    ),
    "a metaclass denies an equality": (
        "class M(type):\n    def __getattribute__(c, name):\n"
        "        return getattr(object, name) if name in ('__eq__', '__ne__') else type.__getattribute__(c, name)\n"
        "class E(metaclass=M):\n    def __eq__(s, o): return True\ndef f(x): return E()",
        PLAIN,
    ),
    "subclasses doubts": (
        "def f(x):\n    for c in object.__subclasses__():\n        if c.__name__=='Doubts': c._decides = lambda *_: False\n"
        "    class E: __sub__ = __abs__ = lambda *_: 0\n    return E()",
        "y = [2][0]\nassert abs(f(1) - y) < 1e-6",
    ),
    "doubts that cannot be raised": (
        "def f(x):\n    for c in object.__subclasses__():\n        if c.__name__=='Doubts': c.are_raised = property(lambda s: False, lambda *_: None)\n"
        "    class E: __sub__ = __abs__ = lambda *_: 0\n    return E()",
        "y = [2][0]\nassert abs(f(1) - y) < 1e-6",
    ),
}
