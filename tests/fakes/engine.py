"""A stand-in for llama-server: same flags, same socket, same answers and refusals, no model.

A word is a token. A text can ask for trouble: ``please crash``, ``please hang``, ``please nan``, ``please fail``,
``please babble``. The real llama-server passes the same contract tests (tests/integration/test_gateway_contract.py).
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import json
import math
import os
import signal
import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aiohttp import web

DIMENSIONS = 8
VOCABULARY = 32000
_SPECIAL_TOKENS = 2  # BERT's start and end


def vector_of(text: str) -> list[float]:
    """A unit vector that depends on the text alone."""
    raw = [byte - 127.5 for byte in hashlib.sha256(text.encode()).digest()[:DIMENSIONS]]
    length = math.sqrt(sum(number * number for number in raw))
    return [struct.unpack("<f", struct.pack("<f", number / length))[0] for number in raw]


class FakeLlamaServer:
    """The HTTP side. ``computing`` counts generations that still run, ``cancelled`` those that a client left."""

    def __init__(
        self, *, embeddings: bool, ubatch: int = 512, context: int = 512, alias: str = "fake", reranking: bool = False
    ) -> None:
        self.reranking = reranking
        self.takes_tools = os.environ.get("FAKE_TOOLS", "yes") == "yes"
        self.embeddings = embeddings
        self.ubatch = ubatch
        self.context = context
        self.alias = alias
        self.computing = 0
        self.cancelled = 0
        self.ready_at = time.monotonic()
        self.bodies: list[dict[str, Any]] = []

    def app(self) -> web.Application:
        """The routes of llama-server that the gateway uses."""
        app = web.Application()
        app.router.add_get("/health", self.health)
        app.router.add_get("/props", self.props)
        app.router.add_post("/v1/embeddings", self.embed)
        app.router.add_post("/tokenize", self.tokenize)
        app.router.add_post("/v1/rerank", self.rerank)
        app.router.add_post("/v1/chat/completions", self.generate)
        app.router.add_post("/v1/completions", self.generate)
        return app

    async def health(self, _request: web.Request) -> web.Response:
        if time.monotonic() < self.ready_at:
            return _refuse(503, "Loading model", "unavailable_error")
        return web.json_response({"status": "ok"})

    async def props(self, _request: web.Request) -> web.Response:
        """What of its properties the gateway looks at."""
        return web.json_response({"chat_template_caps": {"supports_tools": self.takes_tools}})

    async def embed(self, request: web.Request) -> web.Response:
        if not self.embeddings:
            return _refuse(
                501, "This server does not support embeddings. Start it with `--embeddings`", "not_supported"
            )
        body = await self._body(request)
        texts = body["input"]
        data, total = [], 0
        for index, text in enumerate(texts if isinstance(texts, list) else [texts]):
            words = text.split() if isinstance(text, str) else text
            if not isinstance(text, str) and max(text) >= VOCABULARY:
                return _refuse(400, "Prompt contains invalid tokens", "invalid_request_error")
            tokens = len(words) + (_SPECIAL_TOKENS if isinstance(text, str) else 0)
            if tokens > self.ubatch:
                return _refuse(
                    500,
                    f"input ({tokens} tokens) is too large to process. increase the physical batch size "
                    f"(current batch size: {self.ubatch})",
                    "server_error",
                )
            total += tokens
            trouble = await self._trouble(str(text))
            if trouble is not None:
                return trouble
            vector = [math.nan] * DIMENSIONS if text == "please nan" else vector_of(str(text))
            packed = base64.b64encode(struct.pack(f"<{DIMENSIONS}f", *vector)).decode()
            wants_base64 = body.get("encoding_format") == "base64"
            data.append({"object": "embedding", "index": index, "embedding": packed if wants_base64 else vector})
        usage = {"prompt_tokens": total, "total_tokens": total}
        return web.json_response({"object": "list", "data": data, "model": self.alias, "usage": usage})

    async def tokenize(self, request: web.Request) -> web.Response:
        """Strings and numbers mixed; only the first piece gets the special tokens, as in the original."""
        body = await self._body(request)
        content = body["content"]
        special = bool(body.get("add_special"))
        found: list[int] = []
        for index, piece in enumerate(content if isinstance(content, list) else [content]):
            if isinstance(piece, int):
                found.append(piece)
                continue
            words = [2000 + sum(word.encode()) % 1000 for word in piece.split()]
            found += [101, *words, 102] if special and index == 0 else words
        return web.json_response({"tokens": found})

    async def rerank(self, request: web.Request) -> web.Response:
        """The score is the number of words that query and document share."""
        if not self.reranking:
            return _refuse(
                501, "This server does not support reranking. Start it with `--reranking`", "not_supported"
            )
        body = await self._body(request)
        query = set(body["query"].split())
        results = [
            {"index": index, "relevance_score": float(len(query & set(text.split())))}
            for index, text in enumerate(body["documents"])
        ]
        usage = {"prompt_tokens": sum(len(text.split()) + len(query) for text in body["documents"])}
        return web.json_response({"results": results[::-1], "usage": usage})

    async def _trouble(self, text: str) -> web.Response | None:
        if text == "please crash":
            os._exit(3)
        if text == "please hang":
            await self._hang()
        if text.startswith("please wait"):
            await asyncio.sleep(0.1)
        if text == "please freeze":
            os.kill(os.getpid(), signal.SIGSTOP)
        if text == "please fail":
            return _refuse(500, "decode failed", "server_error")
        if text == "please babble":
            return web.Response(text="<html>", content_type="text/html")
        return None

    async def _hang(self) -> None:
        self.computing += 1
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.computing -= 1

    async def generate(self, request: web.Request) -> web.StreamResponse:
        body = await self._body(request)
        try:
            return await self._generate(request, body)
        except (KeyError, IndexError, TypeError):
            return _refuse(400, "the body has another shape", "invalid_request_error")
        except ConnectionResetError:  # whoever asked has left
            return web.Response()

    async def _generate(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
        chat = "messages" in body
        if chat and any(not isinstance(each, dict) or "content" not in each for each in body["messages"]):
            return _refuse(400, "message must contain 'content'", "invalid_request_error")
        prompt = str(body["messages"][-1]["content"] if chat else body["prompt"])
        words = prompt.split()
        if len(words) >= self.context:
            message = (
                f"request ({len(words)} tokens) exceeds the available context size ({self.context} tokens), "
                "try increasing it"
            )
            return _refuse(400, message, "exceed_context_size_error", n_prompt_tokens=len(words), n_ctx=self.context)
        if body.get("stream"):
            counted = (body.get("stream_options") or {}).get("include_usage") is True
            return await self._stream(request, chat, words, counted=counted)
        trouble = await self._trouble(prompt)
        if trouble is not None:
            return trouble
        choice = {"index": 0, "finish_reason": "stop"}
        text: dict[str, object] = (
            {"message": {"role": "assistant", "content": f"You said: {prompt}"}} if chat else {"text": prompt}
        )
        kind = "chat.completion" if chat else "text_completion"
        usage = {"prompt_tokens": len(words), "completion_tokens": 2, "total_tokens": len(words) + 2}
        whole = {"id": "1", "object": kind, "created": 1, "model": self.alias, "usage": usage}
        return web.json_response({**whole, "choices": [{**choice, **text}]})

    async def _stream(
        self, request: web.Request, chat: bool, words: Sequence[str], *, counted: bool
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        kind = "chat.completion.chunk" if chat else "text_completion"
        chunk = {"id": "1", "object": kind, "created": 1, "model": self.alias}
        for word in words:
            part: dict[str, object] = {"delta": {"content": f"{word} "}} if chat else {"text": f"{word} "}
            event = {**chunk, "choices": [{"index": 0, "finish_reason": None, **part}]}
            await response.write(f"data: {json.dumps(event)}\n\n".encode())
            if word == "slow":
                await asyncio.sleep(0.4)
            if word == "hang":
                await self._hang()
            if word == "break" and request.transport is not None:
                await asyncio.sleep(0.02)  # what was written must leave before the connection breaks
                request.transport.abort()
                return response
            if word == "crash":
                os._exit(3)
        if counted:
            usage = {"prompt_tokens": len(words), "completion_tokens": len(words), "total_tokens": 2 * len(words)}
            await response.write(f"data: {json.dumps({**chunk, 'choices': [], 'usage': usage})}\n\n".encode())
        await response.write(b"data: [DONE]\n\n")
        return response

    async def _body(self, request: web.Request) -> dict[str, Any]:
        body: dict[str, Any] = await request.json()
        self.bodies.append(body)
        return body


def _refuse(status: int, message: str, kind: str, **more: object) -> web.Response:
    return web.json_response({"error": {"code": status, "message": message, "type": kind, **more}}, status=status)


def _arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="llama-server")
    for flag in ("--model", "--alias", "--host", "--load-mode", "--fit", "--log-colors", "--pooling"):
        parser.add_argument(flag)
    for flag in (
        "--ctx-size",
        "--batch-size",
        "--ubatch-size",
        "--parallel",
        "--threads",
        "--threads-batch",
        "--log-verbosity",
    ):
        parser.add_argument(flag, type=int, default=0)
    parser.add_argument("--cache-ram", type=int)
    for flag in (
        "--kv-unified",
        "--no-kv-unified",
        "--offline",
        "--no-ui",
        "--no-slots",
        "--embeddings",
        "--reranking",
    ):
        parser.add_argument(flag, action="store_true")
    return parser.parse_args(argv)


async def _run(arguments: argparse.Namespace) -> None:
    fake = FakeLlamaServer(
        embeddings=arguments.embeddings,
        reranking=arguments.reranking,
        ubatch=arguments.ubatch_size,
        context=arguments.ctx_size,
        alias=arguments.alias,
    )
    fake.ready_at += float(os.environ.get("FAKE_LOADING_SECONDS", "0"))
    runner = web.AppRunner(fake.app(), handler_cancellation=True)
    await runner.setup()
    await web.UnixSite(runner, arguments.host).start()
    print("fake llama-server listens", flush=True)
    await asyncio.Event().wait()


def main(argv: Sequence[str]) -> int:
    """Run as a process, as llama-server is run. A model that is not there ends it at once, as in the original."""
    arguments = _arguments(argv)
    print(f"environment: {' '.join(sorted(os.environ))}", flush=True)
    if not Path(arguments.model).is_file():
        print(f"error: failed to load model '{arguments.model}'", file=sys.stderr)
        return 1
    asyncio.run(_run(arguments))
    return 0


def write_executable(folder: Path) -> Path:
    """A file that can be started as if it were llama-server."""
    script = folder / "llama-server"
    root = Path(__file__).parents[2]
    script.write_text(f'#!/bin/sh\nPYTHONPATH={root} exec {sys.executable} -m tests.fakes.engine "$@"\n')
    script.chmod(0o755)
    return script


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
