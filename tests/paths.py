"""Where things are in the repository, for tests."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLUGIN = ROOT / "plugin"
DATASETS = ROOT / "datasets"
