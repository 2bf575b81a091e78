"""The hooks of `plugins/redkey`, run as Claude Code runs them, beside a `redkey mcp` process of the same client.

The test is the client: it starts both, as Claude Code does.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp_types import Implementation

from redkey.client import RedKey
from tests.harness.server import Server
from tests.mcp.conftest import Agent, agent, parameters, run

HOOKS = json.loads((Path(__file__).parents[2] / "plugins" / "redkey" / "hooks" / "hooks.json").read_text())["hooks"]


def commands(event: str) -> list[str]:
    return [hook["command"] for group in HOOKS[event] for hook in group["hooks"]]


def fire(event: str, directory: Path, **more: str) -> str:
    """Run the hook of an event with what Claude Code writes to it; what the agent is shown."""
    (command,) = commands(event)
    given = {"session_id": "7d3c", "transcript_path": "/t.jsonl", "cwd": str(directory), "hook_event_name": event}
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        cwd=directory,
        env=environment,
        input=json.dumps({**given, **more}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    if not done.stdout.strip():
        return ""
    said: dict[str, Any] = json.loads(done.stdout)["hookSpecificOutput"]
    assert said["hookEventName"] == event
    return str(said["additionalContext"])


async def fired(event: str, directory: Path, **more: str) -> str:
    """The same, while the MCP client goes on."""
    return await asyncio.to_thread(fire, event, directory, **more)


def test_no_hook_runs_at_the_end_of_a_turn() -> None:
    assert set(HOOKS) == {"SessionStart", "UserPromptSubmit", "SessionEnd"}
    for groups in HOOKS.values():
        assert all("matcher" not in group for group in groups), "compaction and resume are session starts too"


def test_mail_and_the_held_task_are_shown_and_the_end_of_the_session_releases(
    shop: Path, server: Server, rk: RedKey
) -> None:
    made = rk.tasks.create(rk.queues.create("default").queue_id, title="Paint the shed").task_id

    async def test() -> None:
        assert await fired("SessionStart", shop, source="startup") == "", "before the first call there is nothing"
        async with agent(shop, server) as one:
            claim = (await one("wait_for_task"))["claim"]
            assert claim["task"]["task_id"] == made
            for source in ("compact", "resume"):
                shown = await fired("SessionStart", shop, source=source)
                assert made in shown
                assert "Paint the shed" in shown
                assert claim["claim_id"] in shown
            assert await fired("UserPromptSubmit", shop, prompt="go on") == "", "no mail"
            holder = rk.tasks.get(made).claim
            assert holder is not None
            rk.inbox.send(to=holder.agent_id, subject="Use green paint", body="The red is out.")
            for _ in range(2):
                shown = await fired("UserPromptSubmit", shop, prompt="go on")
                assert "Use green paint" in shown, "shown until read_inbox takes it"
                assert made not in shown, "the held task is not repeated at every turn"
            await one("read_inbox")
            assert await fired("UserPromptSubmit", shop, prompt="go on") == ""
            still = rk.tasks.get(made).claim
            assert still is not None, "turns release nothing"
            assert still.claim_id == claim["claim_id"]
            assert await fired("SessionEnd", shop, reason="clear") == ""
            assert (rk.tasks.get(made).state, rk.tasks.get(made).claim) == ("available", None)
            assert await fired("SessionStart", shop, source="clear") == ""
            assert (await one("wait_for_task"))["claim"]["task"]["task_id"] == made, "the session after it claims anew"

    run(test)


def test_hooks_leave_the_tasks_of_other_clients_alone(shop: Path, server: Server, rk: RedKey) -> None:
    queue = rk.queues.create("default").queue_id
    tasks = [rk.tasks.create(queue, title="T").task_id for _ in range(2)]
    given = parameters(shop, REDKEY_DATA=str(server.data))
    # A process between: it is the client of this one, not the test.
    between = "import subprocess, sys; sys.exit(subprocess.call(sys.argv[1:]))"
    arguments = ["-c", between, given.command, *given.args]
    beside = StdioServerParameters(command=sys.executable, args=arguments, cwd=shop, env=given.env)
    # A client that the test runs, as an agent runs another one in its shell.
    (command,) = commands("SessionEnd")
    inner = f"import subprocess; subprocess.run({command!r}, shell=True, input=b'{{}}', check=True)"
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    async def test() -> None:
        async with Client(beside, client_info=Implementation(name="claude-code", version="1")) as connected:
            other = Agent(connected)
            assert (await other("claim_task", task_id=tasks[0]))["claim"]["outcome"] == "claimed"
            assert await fired("SessionStart", shop, source="compact") == ""
            async with agent(shop, server) as own:
                assert (await own("claim_task", task_id=tasks[1]))["claim"]["outcome"] == "claimed"
                started = [sys.executable, "-c", inner]
                await asyncio.to_thread(
                    subprocess.run, started, cwd=shop, env={**os.environ, "PATH": path}, check=True, timeout=60
                )
                assert rk.tasks.get(tasks[1]).claim is not None, "the client inside ended what the outer one holds"
                await fired("SessionEnd", shop, reason="other")
                assert rk.tasks.get(tasks[1]).claim is None
            assert rk.tasks.get(tasks[0]).claim is not None

    run(test)


def test_a_hook_is_silent_when_the_server_is_gone(shop: Path, server: Server) -> None:
    async def test() -> None:
        async with agent(shop, server) as one:
            await one("list_tasks")
            server.stop()
            for event in HOOKS:
                assert await fired(event, shop) == ""

    run(test)
