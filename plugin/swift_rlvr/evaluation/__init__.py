"""How well a model does, before, during and after a training.

Sampling: `evaluate.py` and `probe.py` are the commands. Both read rows and sample them with
`sample_dataset.py`, through an engine of `sampling/`, and grade the completions with
`grade_samples.py`. `prompts.py` says what a model sees of a row, `models.py` where it is. `pay.py`
compares, before a training, what its rewards pay for a right completion and for a wrong one.

Files of completions, of any tool: `completion_forms.py` reads a line, `completion_files.py` the files and
their golds, `score.py` grades them, `graded_files.py` makes records of them.

What records say: `compare.py`, and `report/` with a page.

Further tests for programming tasks: `added_cases.py` for a dataset, `added_tests/` for a row.
"""
