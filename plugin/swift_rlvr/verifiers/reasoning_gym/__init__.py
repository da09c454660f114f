"""The tasks of reasoning-gym (github.com/open-thought/reasoning-gym, arXiv:2505.24760) as rows, and
their grades.

README.md beside this file says which tasks are safe to train on, how that was found, and what is
scored in another way.
"""
