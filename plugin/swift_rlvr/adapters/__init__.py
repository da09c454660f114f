"""Our rewards under other trainers, each named in its own configuration by import path:
docs/guides/other_trainers.md.

Nothing here is needed for ms-swift and TRL's trainers. A module imports its trainer's package, if
it needs it at all, and no other.
"""
