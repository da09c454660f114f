"""Verifies on the machine it runs on what the documentation says of GPUs, and writes a report:
`bash scripts/gpu_check.sh`.

steps.py has what a step is; each group of steps is a file: environment.py, sampling.py, weights.py,
trainings.py, times.py, faults.py. names.py has the names of recipes, flags and variables.
"""
