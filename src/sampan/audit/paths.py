"""Search paths as the GNU loader reads them: ``$ORIGIN``, ``$LIB``, ``$PLATFORM``.

Source: ld.so(8), "Dynamic string tokens", and glibc elf/dl-load.c.
"""

from __future__ import annotations

import posixpath
import re

_TOKEN = re.compile(r"\$(?:(ORIGIN|LIB|PLATFORM)\b|\{(ORIGIN|LIB|PLATFORM)\})")


def expand(entry: str, file: str, lib: str, platform: str) -> str:
    """One entry of ``file``'s search path as a normalised folder; relative where it hangs on the working folder."""
    values = {"ORIGIN": posixpath.dirname(file), "LIB": lib, "PLATFORM": platform}
    return posixpath.normpath(_TOKEN.sub(lambda match: values[match[1] or match[2]], entry))


def from_origin(entry: str) -> bool:
    """Whether the entry moves with the file; any other names a folder of the machine it runs on."""
    match = _TOKEN.match(entry)
    return bool(match and "ORIGIN" in match.groups())
