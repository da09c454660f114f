"""Launches training with ms-swift: what will run where, whether it can, and a supervisor that
watches it.
"""
