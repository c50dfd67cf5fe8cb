"""What a file is that is not a GGUF: people give the safetensors, the archive or the error page instead."""

from __future__ import annotations

from pathlib import Path

from sampan.errors import BadInputError
from sampan.i18n import text
from sampan.weights.files import refuse_lfs_pointer

MAGIC = b"GGUF"
_STARTS = (
    (b"PK\x03\x04", "zip"),
    (b"\x80\x02", "pickle"),
    (b"\x80\x03", "pickle"),
    (b"\x80\x04", "pickle"),
    (b"\x80\x05", "pickle"),
    (b"\x1f\x8b", "gzip"),
    (b"\xfd7zXZ\x00", "xz"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\x7fELF", "elf"),
    (b"\x89HDF\r\n", "hdf5"),
    (b"ggjt", "old_ggml"),
    (b"tjgg", "old_ggml"),
    (b"lmgg", "old_ggml"),
    (b"fmgg", "old_ggml"),
)


def require_gguf(path: Path) -> None:
    """Return only if the file starts like a GGUF; else raise BadInputError that says what it is instead."""
    try:
        if not path.exists():
            raise BadInputError("file.missing", path=str(path))
        if not path.is_file():
            raise BadInputError("weights.not_gguf", path=str(path), kind=text("weights.kind.special"))
        if path.stat().st_size == 0:
            raise BadInputError("weights.empty", path=str(path))
        refuse_lfs_pointer(path)
        with path.open("rb") as stream:
            start = stream.read(512)
    except OSError as error:
        raise BadInputError("file.unreadable", path=str(path), detail=error.strerror or str(error)) from error
    if not start.startswith(MAGIC):
        raise BadInputError("weights.not_gguf", path=str(path), kind=text(f"weights.kind.{kind_of(start)}"))


def kind_of(start: bytes) -> str:
    """A short name for the format of a file, from its first 512 bytes; ``unknown`` where it tells nothing."""
    for magic, kind in _STARTS:
        if start.startswith(magic):
            return kind
    if start[257:262] == b"ustar":
        return "tar"
    if start[8:9] == b"{" and int.from_bytes(start[:8], "little") < 1 << 32:
        return "safetensors"  # eight bytes of length, then JSON
    lowered = start.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if lowered.startswith((b"<!doctype html", b"<html", b"<?xml")):
        return "html"
    return "json" if lowered.startswith(b"{") else "unknown"
