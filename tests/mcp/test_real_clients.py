"""The real Claude Code and Codex on a loopback model server: each claims and completes a task by MCP. Opt-in.

They run with `REDKEY_TEST_CLIS=DIR`, where `npm install` has put what `tests/runner/command_lines/package.json` pins,
in a throw-away home.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from redkey.client import RedKey
from tests.harness.models import Reply, model_server
from tests.harness.server import Server

CLIS = os.environ.get("REDKEY_TEST_CLIS", "")
pytestmark = pytest.mark.skipif(
    not CLIS, reason="the real command lines are opt-in: REDKEY_TEST_CLIS=DIR with node_modules"
)
COMMANDS = {
    "claude-code": [
        *("claude", "-p", "Work the queue.", "--output-format", "stream-json", "--verbose"),
        *("--model", "claude-sonnet-4-6", "--permission-mode", "acceptEdits", "--no-session-persistence"),
        *("--allowedTools", "mcp__redkey", "--mcp-config", ".mcp.json"),
    ],
    "codex": [
        *("codex", "exec", "--json", "--skip-git-repo-check", "--model", "gpt-5.4"),
        *("--config", 'mcp_servers.redkey.default_tools_approval_mode="approve"', "Work the queue."),
    ],
}


def tool_names(request: dict[str, Any]) -> list[str]:
    """The tools that the client offers to the model; those of a namespace as `namespace/tool`."""
    found: list[str] = []
    for tool in request.get("tools") or ():
        if tool.get("type") == "namespace":
            found += [f"{tool['name']}/{one['name']}" for one in tool["tools"]]
        else:
            found.append(tool.get("name", ""))
    return found


def worker(number: int, request: dict[str, Any]) -> Reply:
    """A model that gets a task, completes it and stops."""
    names, asked = tool_names(request), json.dumps(request)
    wait = next((name for name in names if name.endswith("wait_for_task")), None)
    complete = next((name for name in names if name.endswith("complete_task")), None)
    if wait is None or complete is None:
        return Reply("I have no queue.")
    if "clm_" not in asked:
        return Reply("Getting a task.", ((wait, {"wait_seconds": 20}),))
    if "evt_" not in asked:
        return Reply("Done.", ((complete, {"summary": "Done by a real client."}),))
    return Reply("The queue is empty.")


@pytest.mark.parametrize("client", COMMANDS)
def test_a_real_client_claims_and_completes_a_task(client: str, shop: Path, server: Server, rk: RedKey) -> None:
    home = shop.parent / "home"
    (home / ".codex").mkdir(parents=True)
    rk.queues.create("default")
    made = rk.tasks.create("default", title="Say hello").task_id
    with model_server(worker) as model:
        provider = f'{{name="loopback", base_url="{model.url}/v1", env_key="CODEX_API_KEY", wire_api="responses"}}'
        config = f'model_provider = "loopback"\nmodel_providers.loopback = {provider}\n'
        (home / ".codex" / "config.toml").write_text(config)
        environment = {
            **os.environ,
            "HOME": str(home),
            "PATH": f"{Path(CLIS) / 'node_modules' / '.bin'}{os.pathsep}{os.environ['PATH']}",
            "REDKEY_DATA": str(server.data),
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "sk-test",
            "CODEX_API_KEY": "sk-test",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "MCP_TIMEOUT": "60000",
            # Else the model has to look for the tools first.
            "ENABLE_TOOL_SEARCH": "false",
        }
        install = [sys.executable, "-m", "redkey", "mcp", "install", client]
        subprocess.run(install, cwd=shop, env=environment, check=True, capture_output=True, timeout=120)
        done = subprocess.run(
            COMMANDS[client], cwd=shop, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=300
        )
    task = rk.tasks.get(made)
    told = done.stdout.decode()[:6000] + done.stderr.decode()[-2000:]
    assert task.state == "completed", told
    assert task.summary == "Done by a real client."
    agent = rk.agents.get(task.completed_by)
    assert agent.name.endswith("@shop"), agent.name
