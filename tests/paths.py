"""Where things are in the repository, for tests."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLUGIN = ROOT / "plugin"
DATASETS = ROOT / "datasets"


def words(text: str) -> list[str]:
    """`text.split()` where the folder of this checkout has a space in its name."""
    return [word.replace("\0", str(ROOT)) for word in text.replace(str(ROOT), "\0").split()]
