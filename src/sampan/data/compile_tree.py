"""Compile every .py below a folder, for a Python that need not be able to write there. Run by the private Python.

Usage: compile_tree.py FOLDER. The .pyc are unchecked-hash (no times in them, no stat at import), their file names
relative to FOLDER (the import system sets the real ones), made in one process in sorted order: equal sources give
equal bytes. Prints each file that does not compile and leaves it as source.
"""

from __future__ import annotations

import os
import py_compile
import sys
from collections.abc import Iterator


def sources(folder: str) -> Iterator[str]:
    """Every .py below ``folder``, in an order that does not depend on the disk."""
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(files):
            if name.endswith(".py"):
                yield f"{root}/{name}"


def main(folder: str) -> None:
    """Compile them all."""
    for path in sources(folder):
        try:
            py_compile.compile(
                path,
                dfile=os.path.relpath(path, folder),
                doraise=True,
                optimize=0,
                invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
            )
        except py_compile.PyCompileError as error:
            print(path, error.exc_value)


main(sys.argv[1])
