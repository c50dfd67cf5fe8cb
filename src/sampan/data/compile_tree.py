"""Compile every .py below a folder, for a Python that need not be able to write there. Run by the private Python.

Usage: compile_tree.py FOLDER. The .pyc are unchecked-hash (no times in them, no stat at import), their file names
relative to FOLDER (the import system sets the real ones), made in one process in sorted order: equal sources give
equal bytes. Prints each file that does not compile and leaves it as source.
"""

import os
import py_compile
import sys


def sources(folder):
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != "__pycache__")
        for name in sorted(files):
            if name.endswith(".py"):
                yield f"{root}/{name}"


def main(folder):
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
