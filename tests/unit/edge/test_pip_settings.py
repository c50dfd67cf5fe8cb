"""Index settings come from pip's files, then its environment, then uv's."""

from __future__ import annotations

from pathlib import Path

import pytest

from sampan.edge.pip_settings import IndexSettings, config_files, read
from sampan.errors import BadInputError, ExitCode


def _read(tmp_path: Path, environ: dict[str, str]) -> IndexSettings:
    return read(environ, home=tmp_path / "home", prefix=tmp_path / "venv", etc=tmp_path / "etc")


def _config(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_with_nothing_set_no_index_is_named(tmp_path: Path) -> None:
    empty = _config(tmp_path / "none.conf", "")
    settings = _read(tmp_path, {"PIP_CONFIG_FILE": "/dev/null"})
    assert settings == IndexSettings()
    assert _read(tmp_path, {"PIP_CONFIG_FILE": str(empty)}).index_url is None


def test_the_stronger_file_wins_and_lists_are_split(tmp_path: Path) -> None:
    _config(
        tmp_path / "etc" / "xdg" / "pip" / "pip.conf",
        "[global]\nindex-url = https://g.example/simple\ntimeout = 7\n",
    )
    _config(
        tmp_path / "home" / ".config" / "pip" / "pip.conf",
        "[global]\nindex_url = https://user.example/simple\n"
        "extra-index-url =\n    https://one.example/simple\n    https://two.example/simple\n"
        "trusted-host = one.example\n[install]\nfind-links = /srv/wheels\n",
    )
    settings = _read(tmp_path, {})
    assert settings.index_url == "https://user.example/simple"
    assert settings.extra_index_urls == ("https://one.example/simple", "https://two.example/simple")
    assert settings.find_links == ("/srv/wheels",)
    assert settings.trusted_hosts == ("one.example",)
    assert settings.timeout == 7


def test_the_environment_wins_over_files_and_uv_over_pip(tmp_path: Path) -> None:
    _config(tmp_path / "venv" / "pip.conf", "[global]\nindex-url = https://site.example/simple\n")
    pip = {
        "PIP_INDEX_URL": "https://pip.example/simple",
        "PIP_CERT": "/ca.pem",
        "PIP_PROXY": "http://proxy.example:3128",
    }
    settings = _read(tmp_path, pip)
    assert settings.index_url == "https://pip.example/simple"
    assert (settings.cert, settings.proxy) == ("/ca.pem", "http://proxy.example:3128")
    uv = {
        "UV_DEFAULT_INDEX": "https://uv.example/simple",
        "UV_INDEX": "named=https://a.example/s https://b.example/s?x=1",
    }
    settings = _read(tmp_path, {**pip, **uv})
    assert settings.index_url == "https://uv.example/simple"
    assert settings.extra_index_urls == ("https://a.example/s", "https://b.example/s?x=1")


def test_no_index_is_understood(tmp_path: Path) -> None:
    assert _read(tmp_path, {"PIP_NO_INDEX": "true"}).no_index
    assert not _read(tmp_path, {"PIP_NO_INDEX": "0"}).no_index


def test_a_percent_sign_is_not_an_interpolation(tmp_path: Path) -> None:
    _config(tmp_path / "venv" / "pip.conf", "[global]\nindex-url = https://me:p%40ss@host.example/simple\n")
    assert _read(tmp_path, {}).index_url == "https://me:p%40ss@host.example/simple"


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = _config(tmp_path / "venv" / "pip.conf", "index-url = before any section\n")
    with pytest.raises(BadInputError) as caught:
        _read(tmp_path, {})
    assert caught.value.key == "net.pip-config"
    assert caught.value.exit_code is ExitCode.BAD_INPUT
    assert str(path) in str(caught.value)


def test_pip_config_file_comes_last_and_devnull_means_no_file(tmp_path: Path) -> None:
    files = config_files({"PIP_CONFIG_FILE": "/x/pip.conf"}, tmp_path, tmp_path)
    assert files[-1] == Path("/x/pip.conf")
    assert config_files({"PIP_CONFIG_FILE": "/dev/null"}, tmp_path, tmp_path) == ()
