"""sampan's own files, as they are running here: the target runs the same version."""

from __future__ import annotations

import hashlib
from importlib import metadata
from pathlib import Path

import sampan
from sampan.errors import BadInputError
from sampan.spec.artefacts import Wheel
from sampan.wheelhouse.unpack import Written, write_file, write_record

_LICENCE = "Apache-2.0"


def files() -> tuple[tuple[str, bytes], ...]:
    """``(path below app/, content)`` of every file of the package, caches left out, sorted."""
    root = Path(sampan.__file__).parent
    paths = [path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return tuple((f"sampan/{path.relative_to(root).as_posix()}", path.read_bytes()) for path in sorted(paths))


def digest(contents: tuple[tuple[str, bytes], ...]) -> str:
    """One SHA-256 over all of them: a changed source gives another ``app/``."""
    whole = hashlib.sha256()
    for place, data in contents:
        whole.update(f"{place}\0{len(data)}\0".encode())
        whole.update(data)
    return whole.hexdigest()


def place_own(app: Path, contents: tuple[tuple[str, bytes], ...]) -> Wheel:
    """Write them below ``app`` with a dist-info of their own. Raises BadInputError where the licence is missing."""
    folder = f"sampan-{sampan.__version__}.dist-info"
    described = (
        f"Metadata-Version: 2.4\nName: sampan\nVersion: {sampan.__version__}\n"
        f"License-Expression: {_LICENCE}\nLicense-File: LICENSE\n"
    )
    whole = (
        *contents,
        (f"{folder}/METADATA", described.encode()),
        (f"{folder}/licenses/LICENSE", _licence_text().encode()),
    )
    written: list[Written] = [write_file(app, place, data) for place, data in whole]
    write_record(app, f"{folder}/RECORD", written)
    return Wheel("sampan", sampan.__version__, "", digest(contents), _LICENCE)


def _licence_text() -> str:
    """From the installed package; from the checkout where it runs from there."""
    try:
        text = metadata.distribution("sampan").read_text("licenses/LICENSE")
    except metadata.PackageNotFoundError:
        text = None
    checkout = Path(sampan.__file__).parents[2] / "LICENSE"
    if text is None and checkout.is_file():
        text = checkout.read_text(encoding="utf-8")
    if text is None:
        raise BadInputError("file.missing", path=str(checkout))
    return text
