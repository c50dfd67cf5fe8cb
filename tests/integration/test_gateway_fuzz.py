"""Hostile bytes and senseless requests: no 500, no hang, no leak.

Seconds for each kind of model: SAMPAN_FUZZ_SECONDS (2).
"""

from __future__ import annotations

import os
import random
import socket
import time
from pathlib import Path

import pytest
from tests.fakes.served import Served, served

from sampan.gateway import process_facts

pytestmark = pytest.mark.integration
SECONDS = float(os.environ.get("SAMPAN_FUZZ_SECONDS", "2"))
SEEDS = (
    b'POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Length: 14\r\n\r\n{"input": "a"}',
    b'POST /v1/similarity HTTP/1.1\r\nHost: x\r\nContent-Length: 21\r\n\r\n{"pairs":[["a","bc"]]}',
    b'POST /v1/embeddings HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"inp\r\n9\r\nut": "a"}\r\n0\r\n\r\n',
    b"GET /v1/models HTTP/1.1\r\nX-Request-Id: a\r\nConnection: keep-alive\r\n\r\nGET /health HTTP/1.1\r\n\r\n",
    b"GET /metrics HTTP/1.0\r\nAuthorization: Bearer sk-sampan-00000000-x\r\n\r\n",
    b"POST /v1/embeddings HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 99999999999999999999\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n",
)
BODIES = (
    b'{"input":["a","bc"],"model":"served","encoding_format":"base64","truncate":"end","input_type":"query"}',
    b'{"input":[[1,2,3],[4]],"dimensions":8,"user":"u"}',
    b'{"source":"a","targets":["b","c\xc3\xa9"]}',
    b'{"query":"a","documents":["b",{"text":"c"}],"top_n":1,"return_documents":true}',
    b'{"messages":[{"role":"user","content":"a"}],"stream":true,"max_tokens":3,"stop":["x"]}',
    b'{"prompt":"a","max_tokens":1e3,"temperature":-0}',
    b'{"content":"a","add_special":false}',
)
PATHS = (
    b"/v1/embeddings",
    b"/v1/similarity",
    b"/v1/rerank",
    b"/tokenize",
    b"/v1/completions",
    b"/v1/chat/completions",
)
JSON_PIECES = (
    b"null",
    b"1e999",
    b"-1",
    b"9" * 400,
    b'"\\ud800"',
    b'"\\u0000"',
    b'{"a":',
    b"[]",
    b"true",
    b'"' + b"a" * 3000 + b'"',
    b"\xed\xa0\x80",
    b"[" * 2000,
)
PIECES = (
    b"\r\n",
    b"\0",
    b"\xff\xfe",
    b": ",
    b"Content-Length: -1\r\n",
    b"9" * 40,
    b"Transfer-Encoding: chunked\r\n",
    b"{",
    b"[" * 99,
)


def with_json(source: random.Random) -> bytes:
    """Sound HTTP around a damaged body, its length right."""
    body = bytearray(source.choice(BODIES))
    for _ in range(source.randint(1, 3)):
        place = source.randrange(len(body) + 1)
        body[place : place + source.choice((0, 0, 1, 3, 9))] = source.choice((*JSON_PIECES, source.randbytes(2)))
    path = source.choice(PATHS)
    return b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (path, len(body), body)


def mutated(source: random.Random) -> bytes:
    """One of the seeds, damaged."""
    if source.random() < 0.4:
        return with_json(source)
    data = bytearray(source.choice(SEEDS))
    for _ in range(source.randint(0, 4)):
        place = source.randrange(len(data) + 1)
        match source.randrange(4):
            case 0:
                data[place:place] = source.choice(PIECES)
            case 1:
                del data[place : place + source.randint(1, 12)]
            case 2:
                data[place:place] = source.randbytes(source.randint(1, 8))
            case _:
                data += source.choice(SEEDS)
    return bytes(data)


def throw(port: int, data: bytes) -> bytes:
    """What comes back within a moment."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
        except ConnectionError:
            return b""
    return answer


def rss(service: Served) -> int:
    return process_facts.resident_bytes(Path(f"/proc/{service.process.pid}")) or 0


@pytest.mark.parametrize("task", ["embedding", "chat", "rerank"])
def test_damaged_http_is_answered_or_hung_up_on(task: str) -> None:
    source = random.Random(5)
    with served(task=task) as service:
        for _ in range(2000):
            throw(service.port, mutated(source))
        before, until, count = rss(service), time.monotonic() + SECONDS, 0
        while time.monotonic() < until:
            data = mutated(source)
            answer = throw(service.port, data)  # a hang is a timeout here
            assert b"HTTP/1.1 500" not in answer, data
            assert b"HTTP/1.1 502" not in answer, data
            count += 1
        assert service.get("/ready")[0] == 200
        log = (service.folder / "log").read_text()
        after = rss(service)
    assert "Traceback" not in log.replace("sampan.engine", "")
    assert count > 20
    print(f"{count} requests in {SECONDS:g} s, RSS {before} -> {after} bytes")
    assert after - before < 4 << 20
