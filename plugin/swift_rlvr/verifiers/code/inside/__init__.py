"""What runs inside the sandbox: the code of a completion, and the program that tests it, each in a
process of its own.

The process that forks them imports this folder outside the package: only the standard library, and
relative imports.
"""
