"""JSON form of every frozen value: a ``schema`` field, then the fields, in a stable order.

Reading is strict on types and on the schema, and keeps unknown top-level fields where the value has ``extra``.
"""

from __future__ import annotations

import dataclasses
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from sampan.errors import BadInputError

if TYPE_CHECKING:
    from cattrs import Converter

T = TypeVar("T")


@cache
def _converter() -> Converter:
    from cattrs import Converter  # noqa: PLC0415  (60 ms of import that `--help` need not pay)

    converter = Converter()
    for kind in (int, float, str, bool):
        converter.register_structure_hook(kind, _exactly(kind))
    return converter


def _exactly(kind: type) -> Any:
    """cattrs turns "12" into 12 by default; an artefact with such a field is damaged, not lenient."""

    def structure(value: object, _: type) -> object:
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if type(value) is not kind:
            msg = f"expected {kind.__name__}, found {type(value).__name__}"
            raise TypeError(msg)
        return value

    return structure


def to_data(value: Any) -> dict[str, Any]:
    """The JSON-ready dict of a spec value, its schema first."""
    data = _converter().unstructure(value)
    extra = data.pop("extra", {})
    return {"schema": value.SCHEMA, **data, **extra}


def to_json(value: Any) -> str:
    """Pretty JSON with a final newline: equal values give equal bytes."""
    return json.dumps(to_data(value), ensure_ascii=False, indent=2) + "\n"


def from_data(kind: type[T], data: object, *, where: str) -> T:
    """Rebuild a spec value; ``where`` names the file in errors. Raises BadInputError."""
    schema = getattr(kind, "SCHEMA")  # noqa: B009  (kind is any spec class)
    if not isinstance(data, dict) or data.get("schema") != schema:
        found = data.get("schema") if isinstance(data, dict) else type(data).__name__
        raise BadInputError("artefact.schema", path=where, expected=schema, found=found)
    names = {field.name for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    fields = {name: item for name, item in data.items() if name in names}
    if "extra" in names:
        fields["extra"] = {k: v for k, v in data.items() if k not in names and k != "schema"}
    try:
        return _converter().structure(fields, kind)
    except Exception as error:
        raise BadInputError("artefact.fields", path=where, detail=_reasons(error)) from error


def _reasons(error: Exception) -> str:
    from cattrs import transform_error  # noqa: PLC0415

    return "; ".join(transform_error(error))


def from_json(kind: type[T], text: str, *, where: str) -> T:
    """Parse JSON text into a spec value. Raises BadInputError."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadInputError("artefact.json", path=where, detail=str(error)) from error
    return from_data(kind, data, where=where)


def load(kind: type[T], path: Path) -> T:
    """Read one artefact from disk. Raises BadInputError."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise BadInputError("file.missing", path=str(path)) from error
    except IsADirectoryError as error:
        raise BadInputError("artefact.folder", path=str(path)) from error
    except UnicodeDecodeError as error:
        raise BadInputError("artefact.binary", path=str(path)) from error
    except OSError as error:
        raise BadInputError("file.unreadable", path=str(path), detail=str(error)) from error
    return from_json(kind, text, where=str(path))
