"""A model behind an OpenAI-compatible endpoint as an agent: OpenAI, Ollama, vLLM, llama.cpp, and gateways before them.

Chat Completions with streaming, tools and usage, over plain HTTP, because these servers have little in common. If a
server does not know `stream_options`, the request is repeated without it; then zero tokens are counted, with a warning.
The key is the runner's (`OPENAI_API_KEY`, if the server needs one); the model never sees it.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from redkey.client.problem import retry_after
from redkey.errors import ConfigRefused, StepFailed
from redkey.runner.cost import Usage
from redkey.runner.executors.conversation import Answered, Call, Turn, converse
from redkey.runner.executors.patience import Busy, patiently
from redkey.runner.executors.port import Produced, Step, Terms
from redkey.runner.executors.tools import Tools

_log = logging.getLogger("redkey.runner")
_BUSY: Final = frozenset({408, 409, 429, 500, 502, 503, 504})
_REFUSED: Final = frozenset({401, 403, 404})
_CONNECT_SECONDS: Final = 10.0
# Seconds between two pieces of a stream; a model on a slow machine may need minutes for its first token.
_SILENT_SECONDS: Final = 600.0
_REPLY_BYTES: Final = 64 * 1024 * 1024
# OpenAI's format: `x-ratelimit-reset-tokens: 1m30.5s`.
_DURATION = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:([\d.]+)s)?(?:(\d+)ms)?")


class OpenAiExecutor:
    """Calls a model until it returns its envelope. `url` is the base URL, usually ending in `/v1`."""

    def __init__(self, url: str, model: str, terms: Terms) -> None:
        self._url, self._model, self._terms = check_url(url), model, terms

    async def run(self, step: Step) -> Produced:
        import httpx2

        key = os.environ.get("OPENAI_API_KEY")
        headers = {"authorization": f"Bearer {key}"} if key else {}
        timeout = httpx2.Timeout(_SILENT_SECONDS, connect=_CONNECT_SECONDS)
        async with httpx2.AsyncClient(timeout=timeout, headers=headers, follow_redirects=False) as http:
            model = _Chat(http, f"{self._url}/chat/completions", self._model, self._terms.patience_seconds)
            return await converse(model, step, Tools(step, self._terms), self._terms.limits)


def check_url(url: str) -> str:
    """Return the base URL without its last slash; ConfigRefused if it is not a URL."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.username or parts.query or parts.fragment:
        text = f"{url[:200]!r} is not the base URL of a model server, such as http://127.0.0.1:11434/v1"
        raise ConfigRefused(text, code="url_invalid")
    return url.rstrip("/")


def answers(url: str) -> bool:
    """Return whether a server answers; any answer counts."""
    import httpx2

    try:
        httpx2.get(f"{check_url(url)}/models", timeout=2.0)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError):
        return False
    return True


class _Chat:
    """Chat Completions."""

    def __init__(self, http: Any, url: str, model: str, patience_seconds: float) -> None:
        self._http, self._url, self._model, self._patience_seconds = http, url, model, patience_seconds
        self._asks_usage = True

    def first(self, text: str) -> Any:
        return {"role": "user", "content": text}

    def results(self, answered: Sequence[Answered]) -> list[Any]:
        return [{"role": "tool", "tool_call_id": one.call.id, "content": one.text} for one in answered]

    async def ask(self, system: str, said: Sequence[Any], tools: Sequence[dict[str, Any]]) -> Turn:
        request: dict[str, Any] = {
            "model": self._model,
            "messages": [{"role": "system", "content": system}, *said],
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": tool["name"],
                        "description": tool["description"],
                        "parameters": tool["input_schema"],
                    },
                }
                for tool in tools
            ],
            "stream": True,
        }
        return await patiently(lambda: self._ask(request), self._patience_seconds)

    async def _ask(self, request: dict[str, Any]) -> Turn:
        import httpx2

        options = {"stream_options": {"include_usage": True}} if self._asks_usage else {}
        try:
            async with self._http.stream("POST", self._url, json={**request, **options}) as reply:
                if reply.status_code != 200:
                    return await self._refused(reply, request)
                kind = reply.headers.get("content-type", "")
                if kind.startswith("application/json"):
                    # The server does not stream.
                    return self._turn(_whole(json.loads(await _body(reply))))
                return self._turn([chunk async for chunk in _chunks(reply)])
        except (httpx2.TransportError, httpx2.InvalidURL) as cause:
            raise Busy(f"the model server cannot be reached: {type(cause).__name__} {cause}") from cause
        except ValueError as cause:
            raise StepFailed(
                f"the model server does not speak Chat Completions: {cause}", code="remote_failed"
            ) from cause

    async def _refused(self, reply: Any, request: dict[str, Any]) -> Turn:
        words = _words(await _body(reply))
        if reply.status_code == 400 and self._asks_usage and "stream_options" in words:
            self._asks_usage = False
            return await self._ask(request)
        text = f"the model server answered {reply.status_code}: {words}"
        if reply.status_code in _REFUSED:
            raise StepFailed(text, code="spawn_failed")
        if reply.status_code not in _BUSY:
            raise StepFailed(text, code="remote_failed")
        if "insufficient_quota" in words:
            raise StepFailed(text, code="spawn_failed")
        headers = reply.headers
        after = retry_after(headers.get("retry-after")) or _duration(headers.get("x-ratelimit-reset-tokens", ""))
        raise Busy(text, after_seconds=after)

    def _turn(self, chunks: Sequence[dict[str, Any]]) -> Turn:
        """Join the pieces of a stream into one turn."""
        text, stopped = "", ""
        calls: dict[int, dict[str, str]] = {}
        usage: dict[str, Any] = {}
        for chunk in chunks:
            if "error" in chunk:
                raise Busy(f"the model server stopped its answer: {_words(json.dumps(chunk).encode())}")
            usage = chunk.get("usage") or usage
            for choice in chunk.get("choices") or ():
                delta = choice.get("delta") or {}
                text += delta.get("content") or ""
                stopped = choice.get("finish_reason") or stopped
                for number, piece in enumerate(delta.get("tool_calls") or ()):
                    call = calls.setdefault(piece.get("index", number), {"id": "", "name": "", "arguments": ""})
                    function = piece.get("function") or {}
                    call["id"] = piece.get("id") or call["id"]
                    call["name"] = function.get("name") or call["name"]
                    call["arguments"] += function.get("arguments") or ""
        if not stopped and not text and not calls:
            raise Busy("the model server ended its answer before it began")
        if not usage:
            _log.warning("the model server does not say how many tokens it used; none are counted")
        return Turn(
            text=text,
            calls=tuple(_call(number, call) for number, call in sorted(calls.items())),
            used=_usage(self._model, usage),
            stopped=stopped or "nothing",
            raw=_repeated(text, calls),
        )


def _call(number: int, call: dict[str, str]) -> Call:
    try:
        given = json.loads(call["arguments"] or "{}")
    except ValueError:
        # Pass them on: the tool reports the error, and the model tries again.
        given = None
    return Call(call["id"] or f"call_{number}", call["name"], given)


def _repeated(text: str, calls: dict[int, dict[str, str]]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [
            {
                "id": call["id"] or f"call_{number}",
                "type": "function",
                "function": {"name": call["name"], "arguments": call["arguments"]},
            }
            for number, call in sorted(calls.items())
        ]
    return message


def _usage(model: str, usage: dict[str, Any]) -> Usage:
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    return Usage(
        model=model,
        input_tokens=max(0, (usage.get("prompt_tokens") or 0) - cached),
        output_tokens=usage.get("completion_tokens") or 0,
        cache_read_input_tokens=cached,
    )


async def _chunks(reply: Any) -> AsyncIterator[dict[str, Any]]:
    """Yield the JSON objects of an event stream, up to `[DONE]`."""
    size = 0
    async for line in reply.aiter_lines():
        size += len(line)
        if size > _REPLY_BYTES:
            raise StepFailed(f"the model server sent more than {_REPLY_BYTES:,} bytes", code="output_too_large")
        if not line.startswith("data:"):
            continue
        data = line[5:].strip()
        if data == "[DONE]":
            return
        value = json.loads(data)
        if not isinstance(value, dict):
            raise ValueError("an event that is not an object")
        yield value


async def _body(reply: Any) -> bytes:
    data = bytearray()
    async for piece in reply.aiter_bytes():
        data += piece
        if len(data) > _REPLY_BYTES:
            raise StepFailed(f"the model server sent more than {_REPLY_BYTES:,} bytes", code="output_too_large")
    return bytes(data)


def _whole(value: Any) -> list[dict[str, Any]]:
    """Convert a reply that was not streamed to the single chunk of a stream."""
    if not isinstance(value, dict):
        raise ValueError("an answer that is not an object")
    choices = [{**choice, "delta": choice.get("message") or {}} for choice in value.get("choices") or ()]
    return [{**value, "choices": choices}]


def _words(body: bytes) -> str:
    """Return the message of an error body, on one line."""
    return " ".join(body.decode("utf-8", "replace").split())[:500] or "nothing"


def _duration(text: str) -> float | None:
    found = _DURATION.fullmatch(text)
    if not text or not found:
        return None
    hours, minutes, seconds, milliseconds = (float(part or 0) for part in found.groups())
    return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000
