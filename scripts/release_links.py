"""Makes a checkout's README and setup.cfg fit for a package index, where no file stands beside them.

    python scripts/release_links.py https://github.com/OWNER/swift-rlvr v1.2.3

The release workflow runs it before it builds. README's links become those of that tag, and setup.cfg
gets `project_urls`. The address is not in the sources, because a fork has another one.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IMAGES = (".png", ".svg")
# [text](target) or ![text](target), where target is neither an address nor a heading of the page.
RELATIVE = re.compile(r"(!?\[[^\]]*\]\()(?!https?:|#)([^)]+)\)")


def absolute_links(text: str, repository: str, tag: str) -> str:
    """
    >>> absolute_links("[a](docs/a.md#b) ![c](d.png) [e](https://f)", "https://g/h", "v1")
    '[a](https://g/h/blob/v1/docs/a.md#b) ![c](https://g/h/raw/v1/d.png) [e](https://f)'
    """

    def absolute(link: re.Match) -> str:
        before, target = link.groups()
        view = "raw" if target.endswith(IMAGES) else "blob"
        return f"{before}{repository}/{view}/{tag}/{target})"

    return RELATIVE.sub(absolute, text)


def with_project_urls(text: str, repository: str, tag: str) -> str:
    """
    >>> print(with_project_urls("[metadata]\\nname = a\\n", "https://g/h", "v1"))
    [metadata]
    project_urls =
        Source = https://g/h
        Documentation = https://g/h/blob/v1/docs/index.md
        Changelog = https://g/h/blob/v1/CHANGELOG.md
        Issues = https://g/h/issues
    name = a
    <BLANKLINE>
    """
    urls = {
        "Source": repository,
        "Documentation": f"{repository}/blob/{tag}/docs/index.md",
        "Changelog": f"{repository}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{repository}/issues",
    }
    lines = "".join(f"    {name} = {url}\n" for name, url in urls.items())
    return text.replace("[metadata]\n", f"[metadata]\nproject_urls =\n{lines}", 1)


if __name__ == "__main__":
    repository, tag = sys.argv[1:]
    for name, change in (("README.md", absolute_links), ("setup.cfg", with_project_urls)):
        path = ROOT / name
        path.write_text(change(path.read_text(encoding="utf-8"), repository, tag), encoding="utf-8")
