"""The user's own package index, as pip and uv are told of it: files and environment, never a host of ours."""

from __future__ import annotations

import configparser
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from sampan.errors import BadInputError

_SECTIONS = ("global", "download", "install")  # later wins, as for `pip download` and `pip install`
_TRUE = frozenset({"1", "true", "yes", "on", "t", "y"})


@dataclass(frozen=True)
class IndexSettings:
    """``index_url`` None means the client library's own default index. Lists keep the user's order."""

    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    trusted_hosts: tuple[str, ...] = ()
    cert: str | None = None
    client_cert: str | None = None
    proxy: str | None = None
    timeout: float = 30.0
    no_index: bool = False


def config_files(environ: Mapping[str, str], home: Path, prefix: Path, etc: Path = Path("/etc")) -> tuple[Path, ...]:
    """pip's files in pip's order, the strongest last: global, user, site, then PIP_CONFIG_FILE."""
    named = environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return ()
    xdg_global = environ.get("XDG_CONFIG_DIRS") or str(etc / "xdg")
    xdg_home = environ.get("XDG_CONFIG_HOME") or str(home / ".config")
    files = [Path(folder) / "pip" / "pip.conf" for folder in xdg_global.split(":") if folder]
    files += [etc / "pip.conf", home / ".pip" / "pip.conf", Path(xdg_home) / "pip" / "pip.conf"]
    files += [prefix / "pip.conf"]
    return (*files, Path(named)) if named else tuple(files)


def read(
    environ: Mapping[str, str] | None = None,
    home: Path | None = None,
    prefix: Path | None = None,
    etc: Path = Path("/etc"),
) -> IndexSettings:
    """Files first, PIP_* over them, then UV_* over both where set. Raises BadInputError for a damaged file."""
    environ = os.environ if environ is None else environ
    values: dict[str, str] = {}
    for path in config_files(environ, home or Path.home(), prefix or Path(sys.prefix), etc):
        values.update(_read_file(path))
    values.update(
        {
            name[4:].lower().replace("_", "-"): value
            for name, value in environ.items()
            if name.startswith("PIP_") and value
        }
    )
    values.update(_uv(environ))
    return _settings(values)


def _read_file(path: Path) -> dict[str, str]:
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(path.read_text(encoding="utf-8"), source=str(path))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}
    except (configparser.Error, UnicodeDecodeError) as error:
        raise BadInputError("net.pip-config", path=str(path), detail=" ".join(str(error).split())) from error
    values: dict[str, str] = {}
    for section in _SECTIONS:
        if parser.has_section(section):
            values.update({name.replace("_", "-"): value for name, value in parser.items(section)})
    return values


def _uv(environ: Mapping[str, str]) -> dict[str, str]:
    """uv's names for the same things. ``UV_INDEX`` entries may be ``name=url``."""
    pairs = (
        ("index-url", environ.get("UV_DEFAULT_INDEX") or environ.get("UV_INDEX_URL")),
        ("extra-index-url", environ.get("UV_INDEX") or environ.get("UV_EXTRA_INDEX_URL")),
        ("find-links", (environ.get("UV_FIND_LINKS") or "").replace(",", " ")),
        ("trusted-host", environ.get("UV_INSECURE_HOST")),
    )
    return {name: " ".join(map(_unnamed, value.split())) for name, value in pairs if value}


def _unnamed(entry: str) -> str:
    name, equals, url = entry.partition("=")
    return url if equals and "/" not in name and ":" not in name else entry


def _settings(values: Mapping[str, str]) -> IndexSettings:
    def words(name: str) -> tuple[str, ...]:
        return tuple(values.get(name, "").split())

    def number(name: str, default: float) -> float:
        try:
            return float(values.get(name) or default)
        except ValueError:
            return default

    return IndexSettings(
        index_url=values.get("index-url") or None,
        extra_index_urls=words("extra-index-url"),
        find_links=words("find-links"),
        trusted_hosts=words("trusted-host"),
        cert=values.get("cert") or None,
        client_cert=values.get("client-cert") or None,
        proxy=values.get("proxy") or None,
        timeout=number("timeout", number("default-timeout", 30.0)),
        no_index=values.get("no-index", "").lower() in _TRUE,
    )
