"""Claude Code (`claude -p`) as an agent. Its JSON lines end with a result: the text, the usage and the cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from redkey.runner.cost import Usage
from redkey.runner.executors.headless import ENVELOPE_SCHEMA, Asked, Said, lines


class ClaudeCode:
    """`claude -p --output-format stream-json`."""

    program = "claude"
    variables: tuple[str, ...] = (
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_BASE_URL",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CONFIG_DIR",
    )
    has_system_prompt = True
    settings: tuple[str, ...] = (".claude", ".claude.json")

    def command(self, asked: Asked) -> list[str]:
        command = [
            *(self.program, "-p", "--output-format", "stream-json", "--verbose"),
            *asked.model_options,
            *("--append-system-prompt-file", str(asked.prompt_file)),
            *("--json-schema", msgspec.json.encode(ENVELOPE_SCHEMA).decode()),
            *("--permission-mode", "bypassPermissions" if asked.sandboxed else "acceptEdits"),
            "--no-session-persistence",
        ]
        if asked.allowed and not asked.sandboxed:
            command.append("--allowedTools")
            command += [f"Bash({prefix}{rest})" for prefix in asked.allowed for rest in ("", " *")]
        if asked.left_usd is not None:
            command += ["--max-budget-usd", f"{max(asked.left_usd, 0.01):.2f}"]
        return command

    def environment(self, asked: Asked) -> Mapping[str, str]:
        # No traffic but to the model. As root it refuses to skip permissions unless IS_SANDBOX is set.
        quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
        return quiet | ({"IS_SANDBOX": "1"} if asked.sandboxed else {})

    def read(self, output: bytes, model: str) -> Said:
        events = lines(output)
        result = next((event for event in reversed(events) if event.get("type") == "result"), None)
        if result is None:
            return Said(used=_so_far(events, model), error="it ended without a result")
        usage = result.get("usage") or {}
        used = Usage(cost_usd=result.get("total_cost_usd"), model=model, **_tokens(usage))
        structured = result.get("structured_output")
        text = msgspec.json.encode(structured).decode() if structured is not None else str(result.get("result") or "")
        if not result.get("is_error"):
            return Said(text=text, used=(used,))
        error = text or str(result.get("subtype") or "error")
        return Said(used=(used,), error=error, status=result.get("api_error_status"))


def _so_far(events: list[dict[str, Any]], model: str) -> tuple[Usage, ...]:
    """Return the usage of a run that was cut off: the last token counts of each message."""
    messages = [event["message"] for event in events if isinstance(event.get("message"), dict)]
    last = {one["id"]: one["usage"] for one in messages if isinstance(one.get("usage"), dict) and "id" in one}
    return tuple(Usage(model=model, **_tokens(usage)) for usage in last.values())


def _tokens(usage: dict[str, Any]) -> dict[str, int]:
    names = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    return {name: int(usage.get(name) or 0) for name in names}
