"""Where things are in the repository, for tests."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLUGIN = ROOT / "plugin"
DATASETS = ROOT / "datasets"


def words(text: str, *folders: str) -> list[str]:
    """`text.split()` where the folder of this checkout, or another one, has a space in its name."""
    places = {f"\0{number}\0": folder for number, folder in enumerate((str(ROOT), *folders))}
    for mark, folder in places.items():
        text = text.replace(folder, mark)
    split = text.split()
    for mark, folder in places.items():
        split = [word.replace(mark, folder) for word in split]
    return split
