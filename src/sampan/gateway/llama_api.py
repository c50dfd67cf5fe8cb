"""Asking a running llama-server, and telling its refusals apart from its failures."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import aiohttp
import orjson

from sampan.gateway import llama_answers
from sampan.gateway.connection import Answer
from sampan.gateway.engine import Embedded, EngineBrokenError, Generation, Ranked, TextOrTokens
from sampan.gateway.upstream import UnixClient
from sampan.spec.plan import EngineSettings

_OK = 200
_NO_TOKEN = -1


class LlamaApi:
    """The half of the Engine protocol that answers requests."""

    def __init__(self, client: UnixClient, settings: EngineSettings) -> None:
        self._client = client
        self._settings = settings
        self._specials: int | None = None  # tokens that are added to every text

    async def embed(self, inputs: Sequence[TextOrTokens]) -> Embedded:
        """See Engine. Vectors travel as base64: fewer bytes, no digits to print, and NaN survives."""
        body = orjson.dumps({"input": inputs, "encoding_format": "base64"})
        answer = await self._client.post("/v1/embeddings", body)
        if answer.status != _OK:
            raise llama_answers.fault(answer, self._settings)
        return llama_answers.embedded(answer.body, len(inputs))

    async def count(self, texts: Sequence[str]) -> tuple[int, ...]:
        """See Engine. One call: between the texts goes a number that is no token, so the answer can be cut."""
        if self._specials is None:
            self._specials = len(await self.tokenize(""))
        mixed: list[str | int] = []
        for text in texts:
            mixed += (text, _NO_TOKEN)
        found = await self._tokens({"content": mixed[:-1], "add_special": False})
        counts = llama_answers.counts(found, _NO_TOKEN)
        if len(counts) != len(texts):
            raise EngineBrokenError(f"{len(counts)} counts for {len(texts)} texts")
        return tuple(count + self._specials for count in counts)

    async def tokenize(self, text: str, *, special: bool = True) -> tuple[int, ...]:
        """See Engine."""
        return await self._tokens({"content": text, "add_special": special})

    async def _tokens(self, body: dict[str, object]) -> tuple[int, ...]:
        answer = await self._client.post("/tokenize", orjson.dumps({**body, "parse_special": True}))
        if answer.status != _OK:
            raise llama_answers.fault(answer, self._settings)
        return llama_answers.tokens(answer.body)

    async def rerank(self, query: str, documents: Sequence[str]) -> Ranked:
        """See Engine."""
        answer = await self._client.post("/v1/rerank", orjson.dumps({"query": query, "documents": documents}))
        if answer.status != _OK:
            raise llama_answers.fault(answer, self._settings)
        return llama_answers.ranked(answer.body, len(documents))

    async def takes_tools(self) -> bool:
        """See Engine. llama-server itself drops tools that the template has no place for, without a word."""
        answer = await self._client.get("/props")
        if answer.status != _OK:
            raise llama_answers.fault(answer, self._settings)
        return llama_answers.takes_tools(answer.body)

    async def generate(self, path: str, body: bytes) -> Generation:
        """See Engine."""
        response = await self._client.open(path, body)
        if response.status == _OK:
            return LlamaGeneration(self._client, response)
        try:
            pieces = [chunk async for chunk in self._client.chunks(response)]
        finally:
            response.close()
        raise llama_answers.fault(Answer(response.status, b"".join(pieces)), self._settings)


class LlamaGeneration:
    """See engine.Generation."""

    def __init__(self, client: UnixClient, response: aiohttp.ClientResponse) -> None:
        self._client = client
        self._response = response

    @property
    def content_type(self) -> str:
        """See Generation."""
        return self._response.content_type

    def chunks(self) -> AsyncIterator[bytes]:
        """See Generation."""
        return self._client.chunks(self._response)

    async def close(self) -> None:
        """See Generation. The connection is dropped: closed early, llama-server stops computing by it; and after a
        stream llama-server closes it itself, unannounced, so it must not be used again.
        """
        self._response.close()
