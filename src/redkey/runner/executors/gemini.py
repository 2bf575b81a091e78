"""Gemini CLI (`gemini -p`) as an agent. Its output is one JSON object: response, statistics by model, or an error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from redkey.runner.cost import Usage
from redkey.runner.executors.headless import Asked, Said


class Gemini:
    """`gemini --output-format json`."""

    program = "gemini"
    variables: tuple[str, ...] = (
        "GEMINI_API_KEY",
        "GOOGLE_API_KEY",
        "GOOGLE_CLOUD_LOCATION",
        "GOOGLE_CLOUD_PROJECT",
        "GOOGLE_GEMINI_BASE_URL",
        "GOOGLE_GENAI_USE_VERTEXAI",
    )
    has_system_prompt = False
    settings: tuple[str, ...] = (".gemini",)

    def command(self, asked: Asked) -> list[str]:
        # The runner created the working directory, and no user is there to confirm that it is trusted.
        command = [self.program, "--output-format", "json", "--skip-trust", *asked.model_options]
        command += ["--approval-mode", "yolo" if asked.sandboxed else "auto_edit"]
        if asked.allowed and not asked.sandboxed:
            command += ["--allowed-tools", ",".join(f"run_shell_command({prefix})" for prefix in asked.allowed)]
        # With an empty prompt Gemini reads the question from standard input.
        return [*command, "--prompt", ""]

    def environment(self, asked: Asked) -> Mapping[str, str]:
        return {}

    def read(self, output: bytes, model: str) -> Said:
        value = _object(output)
        models = (value.get("stats") or {}).get("models") or {}
        used = tuple(_usage(name, counted.get("tokens") or {}) for name, counted in models.items())
        if isinstance(value.get("error"), dict):
            error = value["error"]
            status = error.get("code") if isinstance(error.get("code"), int) and error["code"] >= 400 else None
            return Said(used=used, error=str(error.get("message") or "error"), status=status)
        return Said(text=str(value.get("response") or ""), used=used)


def _object(output: bytes) -> dict[str, Any]:
    """Return the JSON object in an output; other lines may come before it."""
    start = output.find(b"{")
    try:
        value = msgspec.json.decode(output[start:]) if start >= 0 else {}
    except msgspec.DecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _usage(model: str, tokens: dict[str, Any]) -> Usage:
    cached = int(tokens.get("cached") or 0)
    return Usage(
        model=model,
        input_tokens=max(0, int(tokens.get("prompt") or 0) - cached),
        output_tokens=int(tokens.get("candidates") or 0) + int(tokens.get("thoughts") or 0),
        cache_read_input_tokens=cached,
    )
