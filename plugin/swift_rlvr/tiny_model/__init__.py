"""The tiny Countdown model: 0.9 million parameters, made by this project, so that everything runs without a download.

`WEIGHTS` is the folder with its config, tokenizer and weights; scripts/build_tiny_model.py builds one like it.
"""

from pathlib import Path

WEIGHTS = Path(__file__).parent / "weights"
