"""The folder of a child, which may hold whatever the child has written.

The process that removes it imports this outside the package: only the standard library.
"""

import os
import time
from contextlib import suppress

_MOST_FILES = 256  # and folders
_DEEPEST = 16


def times(folder: str) -> tuple[int, ...]:
    """What a folder tells of those who have used it."""
    status = os.stat(folder)
    return status.st_mtime_ns, status.st_atime_ns, status.st_size


def reset_times(folder: str) -> tuple[int, ...]:
    """Set the times of a folder to long ago, before anybody can have used it."""
    os.utime(folder, ns=(0, 0))
    return times(folder)


def empty(path: str) -> None:
    """Remove all that is in a folder, however deep: what is deeper than one level is moved up first,
    so that no path gets too long and nothing recurses.
    """
    while entries := _entries(path):
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                os.unlink(entry.path)
                continue
            os.chmod(entry.path, 0o700)  # it may have been made so that nobody can read it
            for inside in _entries(entry.path):
                if inside.is_dir(follow_symlinks=False):
                    os.chmod(inside.path, 0o700)
                    os.rename(inside.path, f"{path}/{os.urandom(8).hex()}")
                else:
                    os.unlink(inside.path)
            os.rmdir(entry.path)


def _entries(folder: str) -> list[os.DirEntry]:
    with os.scandir(folder) as entries:
        return list(entries)


def remove(folder: str) -> None:
    """Remove a folder, as far as it is possible."""
    for _ in range(50):
        with suppress(OSError):
            empty(folder)
            os.rmdir(folder)
        if not os.path.exists(folder):
            return
        time.sleep(0.02)  # who was killed just now may still have been writing


def is_full(folder: str) -> bool:
    """Whether there are more files and folders in a folder, or deeper ones, than a child may make."""
    count = 0
    # By descriptors, not by paths, which may get too long: `place` is a text only.
    for place, folders, files, _ in os.fwalk(folder):
        count += len(folders) + len(files)
        if count > _MOST_FILES or place.count("/") - folder.count("/") > _DEEPEST:
            return True
    return False
