"""LangChain and LlamaIndex make their usual calls against a running gateway; and Dify's requests, as it sends them.

The two libraries are no dependency of this project: name a Python that has them by SAMPAN_TEST_CLIENTS
(`pip install langchain-openai llama-index-embeddings-openai-like llama-index-llms-openai-like`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request

import pytest
from tests.fakes.engine import vector_of
from tests.fakes.served import Served, served

pytestmark = pytest.mark.integration
PYTHON = os.environ.get("SAMPAN_TEST_CLIENTS", sys.executable)
LANGCHAIN_EMBEDDINGS = """
from langchain_openai import OpenAIEmbeddings
made = OpenAIEmbeddings(base_url=url, api_key="x", model="served", check_embedding_ctx_length=False)
print(json.dumps({"many": made.embed_documents(["a", "b c"]), "one": made.embed_query("a")}))
"""
LANGCHAIN_CHAT = """
from langchain_openai import ChatOpenAI
chat = ChatOpenAI(base_url=url, api_key="x", model="served")
streamed = "".join(str(chunk.content) for chunk in chat.stream("one two three"))
print(json.dumps({"whole": chat.invoke("hi there").content, "streamed": streamed}))
"""
LLAMA_INDEX_EMBEDDINGS = """
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
made = OpenAILikeEmbedding(model_name="served", api_base=url, api_key="x")
print(json.dumps({"many": made.get_text_embedding_batch(["a", "b c"]), "one": made.get_query_embedding("a")}))
"""
LLAMA_INDEX_CHAT = """
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike
chat = OpenAILike(model="served", api_base=url, api_key="x", is_chat_model=True, context_window=512)
streamed = "".join(chunk.delta or "" for chunk in chat.stream_chat([ChatMessage(content="one two three")]))
whole = chat.chat([ChatMessage(role="user", content="hi there")]).message.content
print(json.dumps({"whole": whole, "streamed": streamed}))
"""


def run(service: Served, program: str, module: str) -> dict[str, object]:
    """What the program prints, run by the Python that has the libraries."""
    if subprocess.run([PYTHON, "-c", f"import {module}"], capture_output=True, check=False).returncode:
        pytest.skip(f"no {module}; see the head of this file")
    words = [PYTHON, "-c", f"import json\nurl = '{service.url}/v1'\n{program}"]
    ran = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr[-2000:]
    found: dict[str, object] = json.loads(ran.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    ("program", "module"),
    [(LANGCHAIN_EMBEDDINGS, "langchain_openai"), (LLAMA_INDEX_EMBEDDINGS, "llama_index.embeddings.openai_like")],
)
def test_embeddings(program: str, module: str) -> None:
    with served() as service:
        found = run(service, program, module)
    assert found["one"] == pytest.approx(vector_of("a"), abs=1e-6)
    assert found["many"] == [pytest.approx(vector_of(text), abs=1e-6) for text in ("a", "b c")]


@pytest.mark.parametrize(
    ("program", "module"),
    [(LANGCHAIN_CHAT, "langchain_openai"), (LLAMA_INDEX_CHAT, "llama_index.llms.openai_like")],
)
def test_chats(program: str, module: str) -> None:
    with served(task="chat") as service:
        found = run(service, program, module)
    assert found == {"whole": "You said: hi there", "streamed": "one two three "}


def test_difys_requests() -> None:
    """Dify's "OpenAI-API-compatible" provider: it checks credentials with such requests, then embeds in lists."""
    with served() as service:
        for body in (
            {"input": "ping", "model": "served"},
            {"input": ["a", "b"], "model": "served", "encoding_format": "float"},
        ):
            request = urllib.request.Request(
                f"{service.url}/v1/embeddings",
                json.dumps(body).encode(),
                {"Content-Type": "application/json", "Authorization": "Bearer anything"},
            )
            with urllib.request.urlopen(request, timeout=10) as response:
                data = json.load(response)
            assert all(len(item["embedding"]) == 8 for item in data["data"])
            assert data["usage"]["total_tokens"] > 0
