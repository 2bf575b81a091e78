"""What type checkers, and so editors, know of the SDK."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

CODE = """
from redkey.client import AsyncContext, AsyncRedKey, Claimed, Context, NewTask, RedKey

rk = RedKey()
reveal_type(rk.tasks.create)
reveal_type(rk.tasks.create("podcast", title="A"))
reveal_type(rk.queues.claim_next("podcast", "agt_1"))
reveal_type(rk.agents.list())
reveal_type(rk.events.follow())
rk.tasks.create("podcast")
rk.tasks.create("podcast", title="A", priorty="high")
rk.claims.block("clm_1", "why", blocker_type="nonsense")

@rk.worker(queue="podcast")
def handle(ctx: Context) -> str:
    reveal_type(ctx.artifact("a", 1))
    return "x"

reveal_type(handle)

async def main(rk: AsyncRedKey) -> None:
    reveal_type(await rk.tasks.get("task_1"))
    async for event in rk.events.follow():
        reveal_type(event)
    async for agent in rk.agents.list():
        reveal_type(agent)
    rk.tasks.get(1)

async def handle_async(ctx: AsyncContext) -> None:
    reveal_type(await ctx.progress("half"))
"""
REVEALED = [
    "resources.tasks.PendingTask",
    "shapes.claims.Claimed",
    "operation.Pages[redkey.shapes.agents.Agent]",
    "connection.Emission[redkey.shapes.events.Event]",
    "shapes.claims.ArtifactAdded",
    "def (ctx: redkey.client.worker.context.WorkContext[redkey.client.operation.Sync]) -> ",
    "shapes.tasks.Task",
    "shapes.events.Event",
    "shapes.agents.Agent",
    "shapes.claims.ProgressReported",
]


def test_type_checkers_know_parameters_and_replies_of_both_clients(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text(CODE)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "", "--cache-dir", str(tmp_path), "code.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=300)
    notes = [line for line in done.stdout.splitlines() if "Revealed type" in line]
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    for expected in REVEALED:
        assert any(expected in note for note in notes), f"{expected}\n{done.stdout}"
    assert not any("Any" in note for note in notes[1:]), notes
    assert len(errors) == 5, done.stdout
    wrong = " ".join(errors)
    for word in ('"title"', '"priorty"', "nonsense", '"int"', "must be used"):
        assert word in wrong
