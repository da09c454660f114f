"""The documentation site builds without a warning, and its API pages show what the docstrings say.

A page that is not in the nav of mkdocs.yml, a dead link and a dead anchor are warnings, and with
--strict errors.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from paths import ROOT

pytest.importorskip("mkdocs")
pytest.importorskip("mkdocstrings")

API = sorted(path.stem for path in (ROOT / "docs" / "api").glob("*.md"))


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    run = subprocess.run(build, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return folder


def test_every_page_is_in_the_site(site):
    for page in (ROOT / "docs").rglob("*.md"):
        path = page.relative_to(ROOT / "docs").with_suffix("")
        folder = path.parent if path.name == "index" else path
        assert (site / folder / "index.html").is_file(), path


@pytest.mark.parametrize("name", API)
def test_an_api_page_shows_docstrings_as_they_are_meant(site, name):
    page = (site / "api" / name / "index.html").read_text(encoding="utf-8")
    article = page.partition("<article")[2].partition("</article>")[0]
    source = (ROOT / "docs" / "api" / f"{name}.md").read_text(encoding="utf-8")
    for path in re.findall(r"^::: (\S+)", source, re.MULTILINE):
        assert f'id="{path}"' in article, path
    # A section of a docstring is a list with a title of its own, and an example is code.
    assert not re.search(r"<p>(Args|Returns|Raises|Attributes):", article)
    assert article.count("&gt;&gt;&gt;") == article.count('<span class="gp">&gt;&gt;&gt;')
    # Nothing private.
    assert not re.findall(r'id="(swift_rlvr[\w.]*\._\w+)"', article)


def test_fence_doctests():
    from griffe_doctests import fence_doctests

    fenced = "A sum.\n\n```pycon\n>>> 1 + 2\n3\n```\n\nThe end."
    assert fence_doctests("A sum.\n\n>>> 1 + 2\n3\n\nThe end.") == fenced
    assert fence_doctests("    >>> 1\n    1") == "    ```pycon\n    >>> 1\n    1\n    ```"
    assert fence_doctests("No example.") == "No example."
