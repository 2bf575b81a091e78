"""A model server on the loopback: Anthropic Messages, OpenAI Chat Completions, OpenAI Responses and Gemini.

A test scripts the model's answers; the server answers in the protocol of the request, streamed if the request asks for
a stream. So one script works for every executor and the real command lines.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Reply:
    """One turn of the model: text, tool calls, and usage."""

    text: str = ""
    tools: tuple[tuple[str, dict[str, Any]], ...] = ()
    input_tokens: int = 10
    output_tokens: int = 5
    cached_tokens: int = 0


@dataclass(frozen=True)
class Problem:
    """A refusal of the server."""

    status: int
    body: dict[str, Any] = field(default_factory=lambda: {"error": {"type": "error", "message": "no"}})
    headers: dict[str, str] = field(default_factory=dict)


Answer = Callable[[int, dict[str, Any]], Reply | Problem]
MODEL_PATHS = ("/v1/messages", "/v1/chat/completions", "/v1/responses")


class ModelServer:
    """The requests that were received, and the answers."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""
        self._lock = threading.Lock()

    def take(self, request: dict[str, Any], headers: dict[str, str]) -> int:
        with self._lock:
            self.requests.append(request)
            self.headers.append(headers)
            return len(self.requests)


@contextlib.contextmanager
def model_server(answer: Answer) -> Iterator[ModelServer]:
    """Run a model server for the duration of a block."""
    served = ModelServer(answer)

    class Handler(_Handler):
        model = served

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    served.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield served
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    model: ModelServer

    def do_HEAD(self) -> None:
        self._send(200, b"", "application/json")

    def do_GET(self) -> None:
        self._send(200, json.dumps({"object": "list", "data": [], "models": []}).encode(), "application/json")

    def do_POST(self) -> None:
        path = self.path.partition("?")[0]
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        gemini = ":generateContent" in path or ":streamGenerateContent" in path
        if path not in MODEL_PATHS and not gemini:
            # Command lines also send other requests, which do not concern the model.
            self._send(200, b'{"input_tokens": 1}', "application/json")
            return
        number = self.model.take(body, {name.lower(): value for name, value in self.headers.items()})
        said = self.model.answer(number, body)
        if isinstance(said, Problem):
            self._send(said.status, json.dumps(said.body).encode(), "application/json", said.headers)
            return
        streamed = bool(body.get("stream")) or ":streamGenerateContent" in path
        if gemini:
            spoken = _gemini(said)
        else:
            spoken = {
                "/v1/messages": _messages_stream if streamed else _messages,
                "/v1/chat/completions": _chat_stream if streamed else _chat,
                "/v1/responses": _responses,
            }[path](said, str(body.get("model", "")))
        if isinstance(spoken, dict):
            self._send(200, json.dumps([spoken] if gemini and not streamed else spoken).encode(), "application/json")
        else:
            self._send(200, b"".join(spoken), "text/event-stream")

    def _send(self, status: int, data: bytes, kind: str, headers: dict[str, str] | None = None) -> None:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(data)))
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        return


def _event(value: dict[str, Any], name: str = "") -> bytes:
    return (f"event: {name}\n" if name else "").encode() + b"data: " + json.dumps(value).encode() + b"\n\n"


def _messages(reply: Reply, model: str) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": reply.text}] if reply.text else []
    for number, (name, given) in enumerate(reply.tools):
        content.append({"type": "tool_use", "id": f"toolu_{number}_{id(reply)}", "name": name, "input": given})
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": "tool_use" if reply.tools else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": reply.input_tokens,
            "output_tokens": reply.output_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": reply.cached_tokens,
        },
    }


def _messages_stream(reply: Reply, model: str) -> Iterator[bytes]:
    whole = _messages(reply, model)
    usage = whole["usage"]
    begun = {**whole, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield _event({"type": "message_start", "message": begun}, "message_start")
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        at = {"index": index}
        yield _event({"type": "content_block_start", **at, "content_block": empty}, "content_block_start")
        yield _event({"type": "content_block_delta", **at, "delta": delta}, "content_block_delta")
        yield _event({"type": "content_block_stop", **at}, "content_block_stop")
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    used = {"output_tokens": reply.output_tokens}
    yield _event({"type": "message_delta", "delta": ended, "usage": used}, "message_delta")
    yield _event({"type": "message_stop"}, "message_stop")


def _chat_usage(reply: Reply) -> dict[str, Any]:
    return {
        "prompt_tokens": reply.input_tokens + reply.cached_tokens,
        "completion_tokens": reply.output_tokens,
        "total_tokens": reply.input_tokens + reply.cached_tokens + reply.output_tokens,
        "prompt_tokens_details": {"cached_tokens": reply.cached_tokens},
    }


def _calls(reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            "index": number,
            "id": f"call_{number}_{id(reply)}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(given)},
        }
        for number, (name, given) in enumerate(reply.tools)
    ]


def _chat(reply: Reply, model: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
    if reply.tools:
        message["tool_calls"] = _calls(reply)
    ended = "tool_calls" if reply.tools else "stop"
    choice = {"index": 0, "message": message, "finish_reason": ended}
    return {
        "id": "chatcmpl_1",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [choice],
        "usage": _chat_usage(reply),
    }


def _chat_stream(reply: Reply, model: str) -> Iterator[bytes]:
    plain = {"id": "chatcmpl_1", "object": "chat.completion.chunk", "created": 1, "model": model}

    def chunk(delta: dict[str, Any], ended: str | None = None) -> bytes:
        return _event({**plain, "choices": [{"index": 0, "delta": delta, "finish_reason": ended}], "usage": None})

    yield b": hello\n\n" + chunk({"role": "assistant", "content": ""})
    # In halves, as real servers split text and arguments anywhere.
    middle = len(reply.text) // 2
    for part in (reply.text[:middle], reply.text[middle:]):
        if part:
            yield chunk({"content": part})
    for call in _calls(reply):
        words = call["function"]["arguments"]
        yield chunk({"tool_calls": [{**call, "function": {**call["function"], "arguments": words[:3]}}]})
        yield chunk({"tool_calls": [{"index": call["index"], "function": {"arguments": words[3:]}}]})
    yield chunk({}, "tool_calls" if reply.tools else "stop")
    yield _event({**plain, "choices": [], "usage": _chat_usage(reply)})
    yield b"data: [DONE]\n\n"


def _responses(reply: Reply, model: str) -> Iterator[bytes]:
    items: list[dict[str, Any]] = []
    if reply.text:
        part = {"type": "output_text", "text": reply.text, "annotations": []}
        items.append({"type": "message", "id": "m_1", "role": "assistant", "status": "completed", "content": [part]})
    for call in _calls(reply):
        # A tool of a namespace is named `namespace/tool`.
        namespace, _, name = call["function"]["name"].rpartition("/")
        function = {"name": name, "arguments": call["function"]["arguments"]}
        if namespace:
            function["namespace"] = namespace
        items.append({"type": "function_call", "id": f"fc_{call['id']}", "call_id": call["id"], **function})
    response = {"id": "resp_1", "object": "response", "created_at": 1, "model": model, "status": "in_progress"}
    yield _event({"type": "response.created", "response": {**response, "output": []}}, "response.created")
    for index, item in enumerate(items):
        at = {"output_index": index}
        yield _event({"type": "response.output_item.added", **at, "item": item}, "response.output_item.added")
        yield _event({"type": "response.output_item.done", **at, "item": item}, "response.output_item.done")
    usage = {
        "input_tokens": reply.input_tokens + reply.cached_tokens,
        "input_tokens_details": {"cached_tokens": reply.cached_tokens},
        "output_tokens": reply.output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": reply.input_tokens + reply.cached_tokens + reply.output_tokens,
    }
    ended = {**response, "status": "completed", "output": items, "usage": usage}
    yield _event({"type": "response.completed", "response": ended}, "response.completed")


def _gemini(reply: Reply) -> Iterator[bytes]:
    parts: list[dict[str, Any]] = [{"text": reply.text}] if reply.text else []
    parts += [{"functionCall": {"name": name, "args": given}} for name, given in reply.tools]
    counts = {
        "promptTokenCount": reply.input_tokens + reply.cached_tokens,
        "cachedContentTokenCount": reply.cached_tokens,
        "candidatesTokenCount": reply.output_tokens,
        "totalTokenCount": reply.input_tokens + reply.cached_tokens + reply.output_tokens,
    }
    candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}
    yield _event({"candidates": [candidate], "usageMetadata": counts, "modelVersion": "m"})
