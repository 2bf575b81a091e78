"""Codex (`codex exec`) as an agent. Its JSON lines have messages, errors and the tokens of each turn, but no cost."""

from __future__ import annotations

from collections.abc import Mapping

from redkey.runner.cost import Usage
from redkey.runner.executors.headless import Asked, Said, lines


class Codex:
    """`codex exec --json`, in its own sandbox for the working directory."""

    program = "codex"
    variables: tuple[str, ...] = ("CODEX_API_KEY", "CODEX_HOME", "OPENAI_API_KEY", "OPENAI_BASE_URL")
    has_system_prompt = False
    settings: tuple[str, ...] = (".codex",)

    def command(self, asked: Asked) -> list[str]:
        free = "--dangerously-bypass-approvals-and-sandbox"
        return [
            *(self.program, "exec", "--json", "--color", "never", "--ephemeral", "--skip-git-repo-check"),
            *((free,) if asked.sandboxed else ("--sandbox", "workspace-write")),
            *asked.model_options,
            *("--output-schema", str(asked.schema_file)),
            *("--cd", str(asked.directory), "-"),
        ]

    def environment(self, asked: Asked) -> Mapping[str, str]:
        return {}

    def read(self, output: bytes, model: str) -> Said:
        text, error, ended = "", "", False
        used = []
        for event in lines(output):
            item = event.get("item") or {}
            if event.get("type") == "item.completed" and item.get("type") == "agent_message":
                text = str(item.get("text") or "")
            elif event.get("type") == "turn.completed":
                usage, ended, error = event.get("usage") or {}, True, ""
                cached = int(usage.get("cached_input_tokens") or 0)
                used.append(
                    Usage(
                        model=model,
                        input_tokens=max(0, int(usage.get("input_tokens") or 0) - cached),
                        output_tokens=int(usage.get("output_tokens") or 0),
                        cache_read_input_tokens=cached,
                    )
                )
            elif event.get("type") == "turn.failed":
                error = str((event.get("error") or {}).get("message") or "the turn failed")
            elif event.get("type") == "error":
                error = str(event.get("message") or "") or error
        if not ended and not error:
            error = "it ended without an answer"
        return Said(text=text, used=tuple(used), error=error)
