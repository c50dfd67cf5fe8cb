"""Asks a running service its golden texts and has the answers compared (``comparison.py``)."""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from sampan.errors import ServiceError
from sampan.gateway import vectors
from sampan.gateway.comparison import SelfTest, TextResult, judge_chat, judge_embedding, judge_pair
from sampan.gateway.engine import EngineBrokenError
from sampan.spec.weights import GoldenChat, GoldenEmbedding, GoldenPair, GoldenSet

_SECONDS = 600.0  # an emulated CPU needs minutes for what a real one does at once
_CHAT_TOKENS = 32
_UNIX = "unix:"
_TEXTS = ("How do I reset my password?", "怎样重置密码？", "The invoice is attached; please pay within 30 days.")
_PROMPT = "The capital of France is"
_SAME_COSINE = 0.999  # kernels for one row and for many round differently
_SAME_SCORE = 0.01
Json = dict[str, Any]
__all__ = ["SelfTest", "TextResult", "consistency", "run_selftest", "selftest"]


def selftest(
    url: str, golden: GoldenSet, *, once: bool = False, token: str | None = None, certificate: str | None = None
) -> SelfTest:
    """Ask the service at ``url`` (``http://host:port`` or ``unix:/path.sock``). Raises ServiceError.

    Over TLS it must show the certificate in the file ``certificate``, where one is given; its name does not matter.

    ``token`` is sent in the place of a key.

    ``once``: ask for each text in one batch only, not alone as well, and for no more of a continuation than is
    compared; for CPUs so slow that it matters.
    """
    return asyncio.run(run_selftest(url, golden, once=once, token=token, certificate=certificate))


def consistency(url: str, task: str, *, token: str | None = None, certificate: str | None = None) -> SelfTest:
    """For want of a golden set: a text alone and in a batch, a prompt twice. Raises ServiceError."""
    return asyncio.run(_consistency(url, task, token, certificate))


async def _consistency(url: str, task: str, token: str | None, certificate: str | None) -> SelfTest:
    async with _asking(url, token, certificate) as asker:
        model = await asker.model()
        if task == "rerank":
            return SelfTest(model, url, pairs=await _ranked_twice(asker, model), basis="consistency")
        if task == "chat":
            first, second = [await asker.complete(model, _PROMPT, _CHAT_TOKENS) for _ in range(2)]
            chats = (judge_chat(GoldenChat(_PROMPT, first), second, len(first)),)
            return SelfTest(model, url, chats=chats, basis="consistency")
        together = await asker.embed(model, list(_TEXTS))
        alone = [(await asker.embed(model, [text]))[0] for text in _TEXTS]
        golden = [GoldenEmbedding(text, tuple(vector)) for text, vector in zip(_TEXTS, together, strict=True)]
        pairs = zip(golden, alone, strict=True)
        results = tuple(judge_embedding(one, [other], _SAME_COSINE) for one, other in pairs)
        return SelfTest(model, url, embeddings=results, basis="consistency")


async def _ranked_twice(asker: _Asker, model: str) -> tuple[TextResult, ...]:
    first, second = [await asker.rank(model, _TEXTS[0], _TEXTS) for _ in range(2)]
    known = (GoldenPair(_TEXTS[0], text, score) for text, score in zip(_TEXTS, first, strict=True))
    return tuple(judge_pair(one, other, _SAME_SCORE) for one, other in zip(known, second, strict=True))


def _fingerprint(certificate: str, url: str) -> bytes:
    """SHA-256 of the first certificate in the file: only a service that shows it is told the token."""
    try:
        text = Path(certificate).read_text("ascii", "replace")
        first = text[text.index(ssl.PEM_HEADER) : text.index(ssl.PEM_FOOTER) + len(ssl.PEM_FOOTER)]
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(first)).digest()
    except (OSError, ValueError) as error:
        raise ServiceError("gateway.unreachable", url=url, detail=f"{certificate}: {error}") from error


@asynccontextmanager
async def _asking(url: str, token: str | None, certificate: str | None = None) -> AsyncIterator[_Asker]:
    connector: aiohttp.BaseConnector | None = None
    if url.startswith(_UNIX):
        connector = aiohttp.UnixConnector(path=url.removeprefix(_UNIX))
    elif certificate is not None:
        connector = aiohttp.TCPConnector(ssl=aiohttp.Fingerprint(_fingerprint(certificate, url)))
    base = "http://service" if url.startswith(_UNIX) else url.rstrip("/").removesuffix("/v1")
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    headers = {"Authorization": f"Bearer {token}"} if token else None
    async with aiohttp.ClientSession(base, connector=connector, timeout=timeout, headers=headers) as session:
        yield _Asker(session, url)


async def run_selftest(
    url: str, golden: GoldenSet, *, once: bool = False, token: str | None = None, certificate: str | None = None
) -> SelfTest:
    """See ``selftest``."""
    async with _asking(url, token, certificate) as asker:
        model = await asker.model()
        return SelfTest(
            model=model,
            url=url,
            embeddings=await _embeddings(asker, model, golden, once) if golden.embeddings else (),
            chats=tuple([await _chat(asker, model, chat, golden.minimum_prefix, once) for chat in golden.chats]),
            pairs=await _pairs(asker, model, golden),
        )


async def _pairs(asker: _Asker, model: str, golden: GoldenSet) -> tuple[TextResult, ...]:
    """All documents of one query together, as clients ask."""
    found: list[TextResult] = []
    for query in dict.fromkeys(pair.query for pair in golden.pairs):
        pairs = [pair for pair in golden.pairs if pair.query == query]
        scores = await asker.rank(model, query, [pair.document for pair in pairs])
        found += [judge_pair(*each, golden.maximum_difference) for each in zip(pairs, scores, strict=True)]
    return tuple(found)


async def _embeddings(asker: _Asker, model: str, golden: GoldenSet, once: bool) -> tuple[TextResult, ...]:
    texts = [item.text for item in golden.embeddings]
    together = await asker.embed(model, texts)
    alone = together if once else [(await asker.embed(model, [text]))[0] for text in texts]
    return tuple(
        judge_embedding(item, pair, golden.minimum_cosine)
        for item, *pair in zip(golden.embeddings, together, alone, strict=True)
    )


async def _chat(asker: _Asker, model: str, golden: GoldenChat, minimum: int, once: bool) -> TextResult:
    # A token is at least one byte, so as many tokens as the needed part has bytes are always enough.
    tokens = len(golden.continuation[:minimum].encode()) if once else _CHAT_TOKENS
    return judge_chat(golden, await asker.complete(model, golden.prompt, tokens), minimum)


class _Asker:
    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session = session
        self._url = url

    async def model(self) -> str:
        """The id that the service answers to."""
        data = await self.ask("/v1/models", None)
        try:
            return str(data["data"][0]["id"])
        except (KeyError, IndexError, TypeError) as error:
            raise self.wrong_answer("/v1/models", repr(error)) from error

    async def complete(self, model: str, prompt: str, tokens: int) -> str:
        """The greedy continuation of a raw prompt."""
        body = {"model": model, "prompt": prompt, "temperature": 0, "max_tokens": tokens}
        data = await self.ask("/v1/completions", body)
        try:
            return str(data["choices"][0]["text"])
        except (KeyError, IndexError, TypeError) as error:
            raise self.wrong_answer("/v1/completions", repr(error)) from error

    async def embed(self, model: str, texts: list[str]) -> list[Sequence[float]]:
        """One vector per text."""
        body = {"model": model, "input": texts, "encoding_format": "base64"}
        data = await self.ask("/v1/embeddings", body)
        try:
            found = [vectors.to_floats(vectors.from_base64(item["embedding"])) for item in data["data"]]
        except (KeyError, TypeError, EngineBrokenError) as error:
            raise self.wrong_answer("/v1/embeddings", repr(error)) from error
        if len(found) != len(texts):
            raise self.wrong_answer("/v1/embeddings", f"{len(found)} vectors for {len(texts)} texts")
        return [list(vector) for vector in found]

    async def rank(self, model: str, query: str, documents: Sequence[str]) -> list[float]:
        """The model's own score of each document, in their order."""
        body = {"model": model, "query": query, "documents": list(documents), "raw_scores": True}
        data = await self.ask("/v1/rerank", body)
        try:
            scores = {int(item["index"]): float(item["relevance_score"]) for item in data["results"]}
            return [scores[number] for number in range(len(documents))]
        except (KeyError, TypeError, ValueError) as error:
            raise self.wrong_answer("/v1/rerank", repr(error)) from error

    async def ask(self, path: str, body: Mapping[str, object] | None) -> Json:
        """The JSON answer of the service. Raises ServiceError."""
        method, content = ("GET", None) if body is None else ("POST", orjson.dumps(body))
        headers = {"Content-Type": "application/json"}
        try:
            async with self._session.request(method, path, data=content, headers=headers) as response:
                raw = await response.read()
        except (OSError, aiohttp.ClientError, asyncio.TimeoutError) as error:
            raise ServiceError("gateway.unreachable", url=self._url, detail=str(error) or "timeout") from error
        if response.status != 200:
            raise self.wrong_answer(path, f"HTTP {response.status}: {raw[:300].decode('utf-8', 'replace')}")
        try:
            data: Json = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise self.wrong_answer(path, str(error)) from error
        return data

    def wrong_answer(self, path: str, detail: str) -> ServiceError:
        return ServiceError("gateway.wrong-answer", url=self._url, path=path, detail=detail)
