"""ARCHITECTURE.md names files and packages that exist, and leaves out no package."""

import re

from paths import PLUGIN, ROOT

TEXT = (ROOT / "ARCHITECTURE.md").read_text()
PACKAGE = PLUGIN / "swift_rlvr"


def test_every_file_that_is_named_exists():
    names = set(re.findall(r"`([\w/]+\.(?:py|sh|yaml|md|cfg))`", TEXT))
    assert len(names) > 20
    missing = [
        name for name in names if not (PACKAGE / name).is_file() and not (ROOT / name).is_file()
    ]
    assert not missing


def test_every_package_has_its_layer():
    layers = TEXT.partition("## Layers")[2].partition("## Three walks")[0]
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert packages <= set(re.findall(r"`(\w+)`", layers))


def test_it_is_one_screen():
    assert len(TEXT.splitlines()) <= 60
