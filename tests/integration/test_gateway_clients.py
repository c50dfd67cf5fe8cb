"""LangChain and LlamaIndex make their usual calls against a running gateway.

They come from tests/clients.lock, in an environment of their own (see ``client_tools``).
"""

from __future__ import annotations

import json

import pytest
from tests.fakes.engine import vector_of
from tests.fakes.served import Served, served
from tests.integration.client_tools import run_client

pytestmark = pytest.mark.integration
# Unless told not to, LangChain cuts by OpenAI's vocabulary and sends ids of that vocabulary in place of texts.
LANGCHAIN_EMBEDDINGS = """
from langchain_openai import OpenAIEmbeddings
made = OpenAIEmbeddings(base_url=url, api_key="x", model="served", check_embedding_ctx_length=False)
async def later():
    return {"many": await made.aembed_documents(texts), "one": await made.aembed_query("a")}
found = {"many": made.embed_documents(texts), "one": made.embed_query("a"), "later": asyncio.run(later())}
"""
LLAMA_INDEX_EMBEDDINGS = """
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
made = OpenAILikeEmbedding(model_name="served", api_base=url, api_key="x")
async def later():
    return {"many": await made.aget_text_embedding_batch(texts), "one": await made.aget_query_embedding("a")}
found = {"many": made.get_text_embedding_batch(texts), "one": made.get_query_embedding("a"), "later": asyncio.run(later())}
"""  # noqa: E501
LANGCHAIN_CHAT = """
from langchain_openai import ChatOpenAI
chat = ChatOpenAI(base_url=url, api_key="x", model="served", stream_usage=True)
async def later():
    return "".join([str(chunk.content) async for chunk in chat.astream("one two three")])
chunks = list(chat.stream("one two three"))
used = [chunk.usage_metadata["output_tokens"] for chunk in chunks if chunk.usage_metadata]
answer = chat.invoke([("system", "be short"), ("human", "hi there")], stop=["never"], max_tokens=20)
found = {"whole": answer.content, "streamed": "".join(str(chunk.content) for chunk in chunks), "later": asyncio.run(later())}
found |= {"used": sum(used), "counted": answer.usage_metadata["output_tokens"]}
"""  # noqa: E501
LLAMA_INDEX_CHAT = """
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike
chat = OpenAILike(model="served", api_base=url, api_key="x", is_chat_model=True, context_window=512)
asked = [ChatMessage(content="one two three")]
async def later():
    return "".join([chunk.delta or "" async for chunk in await chat.astream_chat(asked)])
whole = chat.chat([ChatMessage(role="system", content="be short"), ChatMessage(role="user", content="hi there")])
streamed = "".join(chunk.delta or "" for chunk in chat.stream_chat(asked))
found = {"whole": whole.message.content, "streamed": streamed, "later": asyncio.run(later())}
found |= {"used": 3, "counted": whole.raw.usage.completion_tokens}
"""
REFUSED = """
import openai
from langchain_openai import OpenAIEmbeddings
made = OpenAIEmbeddings(base_url=url, api_key="x", model="served", check_embedding_ctx_length=False, max_retries=0)
try:
    found = made.embed_query("word " * 600)
except openai.BadRequestError as error:
    found = {"code": error.code, "param": error.param, "status": error.status_code}
"""


def run(service: Served, program: str) -> dict[str, object]:
    """What the program puts into ``found``."""
    head = f"import asyncio, json\nurl = '{service.url}/v1'\ntexts = ['a', 'b c', '你 好']\n"
    ran = run_client(["-c", f"{head}{program}\nprint(json.dumps(found))"], cwd=service.folder, timeout=240)
    assert ran.returncode == 0, ran.stderr[-2000:]
    found: dict[str, object] = json.loads(ran.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("program", [LANGCHAIN_EMBEDDINGS, LLAMA_INDEX_EMBEDDINGS], ids=["langchain", "llama-index"])
def test_embeddings(program: str) -> None:
    with served() as service:
        found = run(service, program)
    later = found["later"]
    assert isinstance(later, dict)
    for each in (found, later):
        assert each["one"] == pytest.approx(vector_of("a"), abs=1e-6)
        assert each["many"] == [pytest.approx(vector_of(text), abs=1e-6) for text in ("a", "b c", "你 好")]


@pytest.mark.parametrize("program", [LANGCHAIN_CHAT, LLAMA_INDEX_CHAT], ids=["langchain", "llama-index"])
def test_chats(program: str) -> None:
    with served(task="chat") as service:
        found = run(service, program)
    assert found["whole"] == "You said: hi there"
    assert found["streamed"] == found["later"] == "one two three "
    assert found["used"] == 3
    assert found["counted"] == 2


def test_a_refusal_arrives_with_its_code() -> None:
    with served() as service:
        found = run(service, REFUSED)
    assert found == {"code": "context_length_exceeded", "param": "input", "status": 400}
