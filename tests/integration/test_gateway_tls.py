"""TLS by files, with a certificate that openssl makes."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.fakes import certificates
from tests.unit.gateway.engines import ScriptedEngine

from sampan.errors import BadInputError, ServiceError
from sampan.flow import asking, doctoring
from sampan.gateway import selftest
from sampan.gateway.app import create_app
from sampan.gateway.http_server import GuardedProtocol, make_server
from sampan.gateway.settings import Files, ServedModel

pytestmark = pytest.mark.integration
ASK = b'POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\nConnection: close\r\n\r\n{"input": "a"}'


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Files:
    certificate, key = certificates.make(tmp_path_factory.mktemp("tls"))
    return Files(certificate=certificate, certificate_key=key)


@contextlib.asynccontextmanager
async def served(files: Files) -> AsyncIterator[int]:
    server = make_server(create_app(ScriptedEngine(), ServedModel("m", "embedding", 8)), 1, files)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        task = asyncio.ensure_future(server.serve([listener]))
        try:
            yield listener.getsockname()[1]
        finally:
            server.should_exit = True
            await task


async def test_a_client_that_checks_the_certificate_is_answered(certificate: Files) -> None:
    context = ssl.create_default_context(cafile=certificate.certificate)
    async with served(certificate) as port:
        reader, writer = await asyncio.open_connection("localhost", port, ssl=context, family=socket.AF_INET)
        writer.write(ASK)
        answer = await asyncio.wait_for(reader.read(), 10)
        writer.close()
    assert answer.startswith(b"HTTP/1.1 200")


async def test_a_handshake_that_never_comes_is_hung_up_on(
    certificate: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(GuardedProtocol, "header_seconds", 0.2)
    context = ssl.create_default_context(cafile=certificate.certificate)
    async with served(certificate) as port:
        reader, writer = await asyncio.open_connection("localhost", port, ssl=context, family=socket.AF_INET)
        writer.write(b"GET /health HTTP/1.1\r\n")  # a handshake, and headers that never end
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()


def _encrypted(files: Files, folder: Path) -> Path:
    words = ["openssl", "ec", "-aes256", "-passout", "pass:x", "-in", str(files.certificate_key)]
    subprocess.run([*words, "-out", folder / "locked.pem"], check=True, capture_output=True)
    return folder / "locked.pem"


def test_files_that_are_no_certificate_are_said_before_anything_starts(certificate: Files, tmp_path: Path) -> None:
    damaged = tmp_path / "cert.pem"
    damaged.write_text("no certificate")
    for files in (
        Files(certificate=damaged, certificate_key=certificate.certificate_key),
        Files(certificate=certificate.certificate, certificate_key=tmp_path / "none.pem"),
        Files(certificate=tmp_path / "none.pem"),
        Files(certificate=certificate.certificate),
        Files(certificate_key=certificate.certificate_key),
        Files(certificate=certificate.certificate, certificate_key=_encrypted(certificate, tmp_path)),
    ):
        with pytest.raises(BadInputError) as caught:
            make_server(create_app(ScriptedEngine(), ServedModel("m", "embedding", 8)), 1, files)
        assert caught.value.key == "gateway.tls"


async def test_the_probes_of_this_machine_ask_over_tls_whatever_the_name(certificate: Files) -> None:
    async with served(certificate) as port:
        health = await asyncio.to_thread(asking.probe_health, "127.0.0.1", port, True)
        assert health.state == "ready"
        assert await asyncio.to_thread(doctoring.probe, "127.0.0.1", port, False, tls=True) == "ready"
        plain = await asyncio.to_thread(asking.probe_health, "127.0.0.1", port, False)
        assert plain.state == "unreachable"


async def test_the_self_test_talks_only_to_who_shows_the_services_certificate(
    certificate: Files, tmp_path: Path
) -> None:
    own = str(certificate.certificate)
    other, _ = certificates.make(tmp_path)
    async with served(certificate) as port:
        url = f"https://127.0.0.1:{port}"
        result = await asyncio.to_thread(selftest.consistency, url, "embedding", certificate=own)
        assert result.model == "m"
        for wrong in (str(other), str(certificate.certificate_key), str(tmp_path / "none")):
            with pytest.raises(ServiceError) as caught:
                await asyncio.to_thread(selftest.consistency, url, "embedding", token="secret", certificate=wrong)
            assert caught.value.key == "gateway.unreachable"
