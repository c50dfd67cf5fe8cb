"""A service that asks for keys, as a process: the self-test on its machine passes, and nothing else of it leaks."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
from tests.fakes.load import until
from tests.fakes.served import served

from sampan.errors import ServiceError
from sampan.flow import api_keys
from sampan.gateway import keys, local_token
from sampan.gateway.selftest import consistency

pytestmark = pytest.mark.integration


@pytest.mark.asyncio
async def test_the_self_test_passes_where_keys_are_set_and_after_a_handover(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    api_keys.add(path, keys.Key("", "somebody", ""), None)
    audit = tmp_path / "audit.log"
    with served(files={"keys": str(path), "audit_log": str(audit)}, json_logs=True) as service:
        token = local_token.find([service.folder], service.port)
        assert token is not None
        with pytest.raises(ServiceError) as refused:
            await asyncio.to_thread(consistency, service.url, "embedding")
        assert "401" in str(refused.value)
        result = await asyncio.to_thread(consistency, service.url, "embedding", token=token)
        assert result.ok
        assert '"key":"selftest"' in (service.folder / "log").read_text().replace(" ", "")
        service.process.send_signal(signal.SIGUSR2)
        await until(lambda: local_token.find([service.folder], service.port) not in (token, None), 30)
        await asyncio.to_thread(service.process.wait, 30)
        later = local_token.find([service.folder], service.port)
        assert later not in (token, None)
        assert (await asyncio.to_thread(consistency, service.url, "embedding", token=later)).ok
        with pytest.raises(ServiceError):
            await asyncio.to_thread(consistency, service.url, "embedding", token=token)
        written = (service.folder / "log").read_text() + audit.read_text()
    assert token not in written
    assert later not in written
