"""A product of two matrices in bfloat16 on each visible device, against the same in float64; the
last line is JSON.
"""

import json
import time

import torch

SIZE = 4096
REPETITIONS = 20


def main() -> None:
    """Print one line, of JSON."""
    devices = [f"cuda:{index}" for index in range(torch.cuda.device_count())] or ["cpu"]
    size = SIZE if torch.cuda.is_available() else 512
    errors, speeds = [], []
    for device in devices:
        torch.manual_seed(0)
        left = torch.randn(size, size, device=device)
        right = torch.randn(size, size, device=device)
        product = left.bfloat16() @ right.bfloat16()
        exact = left.double() @ right.double()
        errors.append(float((product.double() - exact).norm() / exact.norm()))
        speeds.append(_speed(left.bfloat16(), right.bfloat16()))
    text = f"torch {torch.__version__} on {', '.join(devices)}: "
    text += ", ".join(
        f"error {error:.4f}, {speed:.1f} TFLOP/s"
        for error, speed in zip(errors, speeds, strict=True)
    )
    found = {"passed": max(errors) < 0.01, "text": text, "errors": errors, "tflops": speeds}
    print(json.dumps(found))


def _speed(left: torch.Tensor, right: torch.Tensor) -> float:
    """TFLOP/s."""
    left @ right
    _synchronize()
    start = time.perf_counter()
    for _ in range(REPETITIONS):
        left @ right
    _synchronize()
    seconds = (time.perf_counter() - start) / REPETITIONS
    return 2 * len(left) ** 3 / seconds / 1e12


def _synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


if __name__ == "__main__":
    main()
