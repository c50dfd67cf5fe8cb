"""One HTTP client for everything: the user's certificates, proxies and credentials; secrets never in a message."""

from __future__ import annotations

import netrc
import ssl
from collections.abc import Generator, Iterable
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

import certifi
import httpx

from sampan.edge.pip_settings import IndexSettings

RETRY_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 522, 524, 527})


def redacted(url: str) -> str:
    """The address without user, password, query and fragment: safe to print."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def host_of(url: str) -> str:
    """``host:port`` as the address names it, or the scheme for a file."""
    parts = urlsplit(url)
    return parts.netloc.rpartition("@")[2] or parts.scheme


def file_path(url: str) -> Path | None:
    """The local path of a ``file:`` address, else None."""
    parts = urlsplit(url)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


class HostAuth(httpx.Auth):
    """Sends a host the credentials that the user's settings hold for exactly that scheme, host and port.

    Where the settings hold none, ``~/.netrc`` is asked, as pip does.
    """

    def __init__(self, urls: Iterable[str], netrc_file: Path | None = None) -> None:
        self._known: dict[tuple[str, str], httpx.BasicAuth] = {}
        for url in urls:
            parts = urlsplit(url)
            if parts.username:
                auth = httpx.BasicAuth(unquote(parts.username), unquote(parts.password or ""))
                self._known[(parts.scheme, host_of(url))] = auth
        self._netrc = _netrc(netrc_file or Path.home() / ".netrc")

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """See httpx.Auth."""
        auth = self._known.get((request.url.scheme, request.url.netloc.decode()), self._netrc)
        if auth is None or "Authorization" in request.headers:  # a hub's token, given by the environment
            yield request
        else:
            yield from auth.auth_flow(request)


def _netrc(path: Path) -> httpx.NetRCAuth | None:
    """A damaged ``.netrc`` is not ours to judge: most hosts need none."""
    try:
        return httpx.NetRCAuth(str(path))
    except (OSError, netrc.NetrcParseError):
        return None


def _tls(settings: IndexSettings) -> ssl.SSLContext:
    """The system's certificates (or SSL_CERT_FILE), certifi's, and the one that pip's settings name."""
    context = ssl.create_default_context()
    context.load_verify_locations(certifi.where())
    if settings.cert:
        path = Path(settings.cert)
        context.load_verify_locations(**({"capath": str(path)} if path.is_dir() else {"cafile": str(path)}))
    if settings.client_cert:
        context.load_cert_chain(settings.client_cert)
    return context


def make_client(settings: IndexSettings) -> httpx.Client:
    """A client that follows redirects and takes proxies from pip's settings, else from the environment."""
    proxy = httpx.Proxy(settings.proxy) if settings.proxy else None
    mounts = {
        f"all://{host}": httpx.HTTPTransport(verify=_unchecked(), proxy=proxy) for host in settings.trusted_hosts
    }
    urls = [url for url in (settings.index_url, *settings.extra_index_urls, *settings.find_links) if url]
    return httpx.Client(
        verify=_tls(settings),
        proxy=proxy,
        mounts=mounts,
        auth=HostAuth(urls),
        follow_redirects=True,
        timeout=httpx.Timeout(min(60.0, settings.timeout), connect=min(15.0, settings.timeout)),
        headers={"User-Agent": "sampan"},
    )


def _unchecked() -> ssl.SSLContext:
    """For hosts that the user's own settings trust without a certificate; every file is pinned by its hash."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
