"""The tiny Countdown model: 0.9 million parameters, made by this project, so that everything runs without a download.

`WEIGHTS` is the folder with its config, tokenizer and weights; `python -m swift_rlvr.tiny_model.build` builds it again.
The modules beside this one need torch and transformers; this one needs neither.
"""

from pathlib import Path

WEIGHTS = Path(__file__).parent / "weights"
