"""What docs/results/upstream.md says of other packages is still so: its examples print what the
page shows.
"""

import doctest
import re
import subprocess
import sys
from importlib.metadata import version

import pytest

from paths import ROOT

TEXT = (ROOT / "docs" / "results" / "upstream.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
RUN = """
import doctest, sys
test = doctest.DocTestParser().get_doctest(sys.stdin.read(), {}, "upstream.md", "upstream.md", 0)
sys.exit(bool(doctest.DocTestRunner().run(test).failed))
"""


# What ms-swift does, of the version that is pinned.
OF_MS_SWIFT = pytest.param(True, marks=[pytest.mark.slow, pytest.mark.weekly])


@pytest.mark.parametrize("of_ms_swift", [False, OF_MS_SWIFT])
def test_the_examples_print_what_the_page_says(of_ms_swift):
    """In a process of their own: they set alarms and start threads."""
    examples = "".join(block for block in BLOCKS if ("swift" in block) is of_ms_swift)
    assert len(doctest.DocTestParser().get_examples(examples)) > (0 if of_ms_swift else 40)
    result = subprocess.run(
        [sys.executable, "-c", RUN], input=examples, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize("package", ["math-verify", "latex2sympy2_extended", "sympy", "ms-swift"])
def test_the_page_names_the_installed_version(package):
    assert f"{package} {version(package)}" in TEXT
